"""Joined observations of numbers: rows, memory, statistics, resuming and acting, beside an explicit stack of them."""

import json
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
import torch
from engines import needs_native
from example_envs import Counting
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation
from refusals import refusal
from runs import SMALL, contents

import td3
from td3 import seeding
from td3.collection import Collector
from td3.config import Config
from td3.environments import ObservationMap, Wrappers, make_envs
from td3.errors import ConfigError, EnvironmentFailure
from td3.learner import Learner, switched
from td3.learner.preprocessing import Normalizer
from td3.offline import COLUMNS
from td3.replay import FrameMemory, Memory, bytes_per_transition, make_memory, smallest_capacity
from td3.types import Layout
from td3.views.env_report import check_environment, lines_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT)) if str(ROOT) not in sys.path else None

from examples import hidden_velocity
from examples.hidden_velocity import HiddenVelocity

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that a worker need not import this file, and PyTorch
GAMMA = 0.9


class Nested(gymnasium.Env):
    """An image, numbers, categories: all say the seed, the episode and the step. Ends after 3 to 7 steps."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)
    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (8, 8), np.uint8),
            "bytes": spaces.Box(0, 255, (9,), np.uint8),  # stacked, it would look like an image
            "place": spaces.Tuple([spaces.Box(-np.inf, np.inf, (2, 1), np.float64), spaces.Discrete(8, start=3)]),
            "switches": spaces.MultiDiscrete([4, 5]),
            "lamps": spaces.MultiBinary(3),
        }
    )

    def __init__(self, camera=True, again=False):
        self.inner, self.camera, self.again = Counting(), camera, again
        if not camera:
            parts = {name: space for name, space in self.observation_space.items() if name != "camera"}
            self.observation_space = spaces.Dict(parts)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.again:  # the same random state begins the same episode
            seed, self.inner.episode = (int(number) for number in self.np_random.integers(5, size=2))
        return self._observation(self.inner.reset(seed=seed)[0]), {}

    def step(self, action):
        observation, *others = self.inner.step(action)
        return self._observation(observation), *others

    def _observation(self, label):
        identity, episode, step = (int(number) for number in label)
        parts = {
            "bytes": np.full(9, 10 * episode + step, np.uint8),
            "place": (np.array([[identity + 0.1], [step]]), 3 + step),
            "switches": np.array([episode % 4, step % 5]),
            "lamps": np.array([step & 1, step & 2, step & 4], bool).astype(np.int8),
        }
        return parts | ({"camera": np.full((8, 8), step, np.uint8)} if self.camera else {})


def stacked(history):
    return FrameStackObservation(Counting(), history, padding_type="reset")


def config(**settings):
    return Config(**{**SMALL, "env": Counting, "eval_every": 0, "threads": 1, **settings})


@pytest.mark.parametrize("capacity", [0, 37, 1_000], ids=["smallest ring", "a ring of 37", "no wrap"])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("num_envs", [1, 2])
@pytest.mark.parametrize("history", [2, 3, 6])
def test_sampled_rows_are_those_of_gymnasiums_own_stacks_bit_for_bit(history, num_envs, n_step, capacity):
    ours = make_envs(Counting, num_envs, wrappers=Wrappers(history=history))
    theirs = make_envs(partial(stacked, history), num_envs)
    layout = ours.observation.layout
    memory = make_memory(capacity or smallest_capacity(layout, num_envs), layout, 2, n_step, GAMMA)
    whole = make_memory(10_000, theirs.observation.layout, 2, n_step, GAMMA)
    assert (type(memory), type(whole)) == (FrameMemory, Memory)
    rng, actions = np.random.default_rng(0), np.zeros((num_envs, 2), np.float32)
    collectors = [Collector(envs, [5, 6][:num_envs], np.random.default_rng(0), 0, 0.0) for envs in (ours, theirs)]
    where, moments = {}, []  # of each action: its row in `whole`, and the number of the oldest time step it needs
    for _ in range(150):
        actions = rng.uniform(-1, 1, (num_envs, 2)).astype(np.float32)
        rows, expected = (one.collect(lambda _, now=actions: now).transitions for one in collectors)
        for column, other in zip(rows, expected, strict=True):
            assert column.tobytes() == other.tobytes()
        for env, (action, first) in enumerate(zip(rows.action, rows.first, strict=True)):
            moments += [(env, None)] if first else []
            moments.append((env, action.tobytes()))
            where[action.tobytes()] = len(where)
        memory.add(rows)
        whole.add(expected)
        indices = np.flatnonzero(memory.can_sample(np.arange(min(memory.written, memory.capacity))))
        assert len(indices) == len(memory) == sampleable(moments, memory.capacity, history) > 0
        batch = memory.batch(indices)
        wanted = whole.batch(np.array([where[action.numpy().tobytes()] for action in batch.action]))
        for column, other in zip(batch, wanted, strict=True):
            assert column.numpy().tobytes() == other.numpy().tobytes()
    assert memory.written > 3 * memory.capacity or capacity == 1_000
    assert set(memory.sample(rng, 500)) <= set(indices)


def sampleable(moments, capacity, history):
    """Counts the transitions that have all their time steps among the last `capacity`, from a log in plain lists."""
    held, oldest, count = {}, len(moments) - capacity, 0
    for number, (env, action) in enumerate(moments):
        episode = held.setdefault(env, [])
        if action is None:
            episode.clear()
        episode.append(number)
        count += action is not None and episode[max(0, len(episode) - 1 - history)] >= oldest
    return count


@pytest.mark.parametrize(("history", "frame_stack"), [(3, 1), (3, 2), (2, 4)])
def test_numbers_and_categories_are_joined_oldest_first_wherever_they_are_nested(history, frame_stack):
    single = make_envs(Nested, wrappers=Wrappers(frame_stack=frame_stack))
    joined = make_envs(Nested, wrappers=Wrappers(frame_stack=frame_stack, history=history))
    one, many = single.observation.layout, joined.observation.layout
    assert (one.numbers, many.numbers, many.step_numbers) == (31, 31 * history, 31)  # 9 + 2 + 8 + 4 + 5 + 3
    assert (many.stack, many.history, many.frame) == (frame_stack, history, 64)
    rng, seen = np.random.default_rng(1), [single.reset([7])]
    assert_joined(joined.reset([7]), seen, one, many)
    memory = make_memory(200, many, 2, 1, GAMMA)
    collector = Collector(
        make_envs(Nested, wrappers=Wrappers(frame_stack=frame_stack, history=history)), [7], rng, 0, 0
    )
    rows = []
    for _ in range(20):
        action = rng.uniform(-1, 1, (1, 2)).astype(np.float32)
        expected, result = single.step(action), joined.step(action)
        seen.append(expected.next_observation)
        assert_joined(result.next_observation, seen, one, many)
        if expected.terminated[0] or expected.truncated[0]:
            seen = [expected.observation]
        assert_joined(result.observation, seen, one, many)
        rows.append(collector.collect(lambda _, now=action: now).transitions)
        memory.add(rows[-1])
    batch = memory.batch(np.flatnonzero(memory.can_sample(np.arange(memory.written))))
    assert batch.observation.numpy().tobytes() == np.concatenate([row.observation for row in rows]).tobytes()
    assert batch.next_observation.numpy().tobytes() == np.concatenate([row.next_observation for row in rows]).tobytes()


def assert_joined(row, seen, one, many):
    last = [seen[max(0, len(seen) - back)] for back in range(many.history, 0, -1)]
    expected = many.joined(one.frames(seen[-1]), np.concatenate([one.vectors(each) for each in last], axis=1))
    assert row.tobytes() == expected.tobytes()


def test_workers_and_no_workers_join_the_same_rows():
    all_rows = []
    for workers in (0, 2):
        envs = make_envs(Nested, 2, workers, wrappers=Wrappers(frame_stack=2, history=3))
        rng, rows = np.random.default_rng(0), [envs.reset([1, 2])]
        for _ in range(15):
            result = envs.step(rng.uniform(-1, 1, (2, 2)).astype(np.float32))
            rows += [result.next_observation, result.observation]
        envs.close()
        all_rows.append(np.concatenate(rows).tobytes())
    assert all_rows[0] == all_rows[1]


def test_an_observation_is_stored_once_however_long_the_history_is():
    bytes_of = {history: bytes_per_transition(Layout(17, history=history), 6) for history in (1, 2, 8, 64)}
    assert bytes_of == {1: 165, 2: 126, 8: 126, 64: 126}
    report = check_environment(config(env="HalfCheetah-v5", history=8))
    memory = make_memory(1_000, Layout(17, history=8), 6, 1, GAMMA)
    assert report["bytes_per_transition"] == memory.nbytes / 1_000 == 126
    assert report["observation_size"] == report["observation"][0]["numbers"] == 136
    assert "17 numbers × 8 observations, each stored once" in lines_of(report)[1]
    started = next(iter(td3.train(config(env="HalfCheetah-v5", history=4))))
    assert started.summary["sees"] == "17 numbers × 4 observations"
    assert (started.summary["bytes_per_transition"], started.summary["memory_bytes"]) == (126, 12_600)


def test_statistics_are_those_of_single_observations_and_all_copies_are_normalised_alike():
    layout, single = Layout(3, history=4), Layout(3)
    joined, plain = Normalizer(layout), Normalizer(single)
    envs = [make_envs(Counting, 2, wrappers=Wrappers(history=history)) for history in (4, 1)]
    collectors = [Collector(one, [1, 2], np.random.default_rng(0), 10**6, 0.0) for one in envs]
    for _ in range(30):
        many, one = (collector.collect(lambda _: None).transitions for collector in collectors)
        joined.add(many)
        plain.add(one)
    for name, tensor in plain.tensors().items():
        assert torch.equal(tensor, joined.tensors()[name])
    rows = many.observation
    expected = np.concatenate([plain(rows[:, 3 * step : 3 * step + 3]) for step in range(4)], axis=1)
    assert joined(rows).tobytes() == expected.tobytes() != rows.tobytes()


@needs_native
@pytest.mark.parametrize("settings", [{}, {"n_step": 3, "normalize_observations": True}])
def test_both_engines_learn_the_same_from_joined_observations(settings):
    config_ = config(history=3, hidden=(16, 16), buffer_size=200, **settings)
    envs = make_envs(Counting, 2, wrappers=Wrappers.of(config_))
    torch_learner, native = (Learner(envs.observation.layout, 2, config_, 3) for _ in range(2))
    native = switched(native, "native")
    collector = Collector(envs, [1, 2], np.random.default_rng(0), 10**6, 0.0)
    for _ in range(60):
        rows = collector.collect(lambda _: None).transitions
        rows = rows._replace(**{name: getattr(rows, name) / 10 for name in ("observation", "next_observation")})
        torch_learner.store(rows)
        native.store(rows)
    for number in range(6):
        updates = [
            learner.learn(np.random.default_rng(number), np.random.default_rng(1))
            for learner in (torch_learner, native)
        ]
        assert updates[0].q1.numpy() == pytest.approx(updates[1].q1.numpy(), rel=1e-4, abs=1e-5)
        assert updates[0].target.numpy() == pytest.approx(updates[1].target.numpy(), rel=1e-4, abs=1e-5)
    assert native.act(rows.observation) == pytest.approx(torch_learner.act(rows.observation), abs=1e-4)


@pytest.mark.parametrize("engine", ["torch", pytest.param("native", marks=needs_native)])
def test_an_agent_acts_on_what_its_own_environment_observes(engine, tmp_path):
    settings = config(env=HiddenVelocity, history=3, engine=engine, normalize_observations=True, steps=60)
    events = list(td3.train(settings, tmp_path / "run"))
    assert events[0].summary["engine"].startswith(engine)
    agent = td3.load(tmp_path / "run", env=HiddenVelocity)
    env = agent.make_env()
    assert env.observation_space.shape == (3, 2)
    observation, _ = env.reset(seed=seeding.environment_seeds(0, "final evaluation environments", 1)[0])
    assert observation.shape == (3, 2) and (observation == observation[0]).all()
    total, over = 0.0, False
    while not over:
        before = observation
        observation, reward, _, over, _ = env.step(agent.act(observation))
        assert env.observation_space.contains(observation)
        assert observation[:-1].tobytes() == before[1:].tobytes()
        total += float(np.float32(reward))
    assert td3.evaluate(agent, episodes=1).returns == pytest.approx([total], rel=1e-6)
    both = agent.act(np.stack([before, observation]))
    assert both.shape == (2, 1) and both[1] == pytest.approx(agent.act(observation), abs=1e-6)
    with refusal(ConfigError, "observation", (2,), (3, 2)):
        agent.act(observation[-1])


@pytest.mark.parametrize("camera", [False, True])
def test_a_run_learns_from_nested_joined_observations_and_is_resumed_to_the_same_bytes(camera, tmp_path):
    env = partial(Nested, camera, again=True)
    small = {"encoder_channels": (2,), "encoder_features": 3, "frame_stack": 2} if camera else {}
    settings = config(
        env=env, history=3, num_envs=2, n_step=3, buffer_size=50, normalize_observations=True, log_every=1, **small
    )
    for event in td3.train(settings, tmp_path / "stopped"):
        if isinstance(event, td3.Stepped) and event.step == 70:
            break
    resumed = list(td3.resume(tmp_path / "stopped", env=env))
    list(td3.train(settings, tmp_path / "whole"))
    assert resumed[1].notes == () and resumed[-1].step == 120
    for one, other in zip(contents(tmp_path / "whole"), contents(tmp_path / "stopped"), strict=True):
        assert one == other
    assert td3.evaluate(td3.load(tmp_path / "whole", env=env), episodes=2).episodes == 2
    update = json.loads((tmp_path / "whole" / "updates.jsonl").read_text().splitlines()[-1])
    assert update["observation_size"] == 93 and len(update["rows"]["observation"][0]) == 24  # 31 numbers, cut


def test_recorded_numbers_are_those_of_the_newest_observations(tmp_path):
    list(td3.train(config(env=HiddenVelocity, history=3, log_every=1), tmp_path / "short"))
    list(td3.train(config(history=10, log_every=1), tmp_path / "long"))
    short, long = (
        json.loads((tmp_path / name / "updates.jsonl").read_text().splitlines()[-1]) for name in ("short", "long")
    )
    assert short["history"] == {"observations": 3, "transition_bytes": 46} and short["observation_size"] == 6
    assert long["history"]["observations"] == 10 and long["observation_size"] == 30
    rows, next_rows = (np.array(long["rows"][name]) for name in ("observation", "next_observation"))
    assert rows.shape == (6, 24)  # 8 observations of 3 numbers: the newest, which s' has all but the oldest of
    assert (next_rows[:, :-3] == rows[:, 3:]).all()
    assert (next_rows[:, -1] == rows[:, -1] + 1).all()  # the step that the newest observation counts


def test_a_dataset_of_single_observations_is_joined_as_they_were_played():
    played = make_envs(Counting, wrappers=Wrappers(history=3))
    collector = Collector(played, [4], np.random.default_rng(0), 10**6, 0.0)
    rows = [collector.collect(lambda _: None).transitions for _ in range(40)]
    columns = {name: np.concatenate([getattr(row, name) for row in rows]) for name in COLUMNS}
    single = {name: column[:, -3:] if "observation" in name else column for name, column in columns.items()}
    data = td3.Dataset(single, config(history=3), None).collect(lambda _: None).transitions
    for name in ("observation", "next_observation"):
        assert getattr(data, name).tobytes() == columns[name].tobytes()


def images_alone():
    env = Nested()
    return gymnasium.wrappers.TransformObservation(env, lambda seen: seen["camera"], env.observation_space["camera"])


@pytest.mark.parametrize(
    ("env", "settings", "value", "facts"),
    [
        (images_alone, {"history": 3}, 3, ("frame_stack",)),
        ("Pendulum-v1", {"history": 3, "pixels": 8}, 3, ("frame_stack",)),
        (lambda: SyncVectorEnv([Counting] * 2), {"history": 3}, None, ("vector environment",)),
        (Counting, {"history": 0}, 0, (1,)),
        (Counting, {"history": 65}, 65, (64,)),
        (Counting, {"history": 2.5}, 2.5, ()),
    ],
)
def test_a_history_that_cannot_be_is_refused(env, settings, value, facts):
    with refusal(ConfigError, "history", *(() if value is None else (value,))) as caught:
        next(iter(td3.train(config(env=env, **settings))))
    for fact in facts:
        assert str(fact) in str(caught.value)


def test_a_ring_too_small_for_its_history_is_refused():
    with refusal(ConfigError, "buffer_size", 17, 18, "observation"):
        next(iter(td3.train(config(history=8, buffer_size=17))))
    assert smallest_capacity(Layout(3, history=8), 1) == 18
    assert list(td3.train(config(history=8, buffer_size=18)))[-1].step == 120


class Shrinking(Counting):
    """Observes two numbers in place of three from its second step on."""

    def _observe(self):
        return super()._observe()[: 3 if self.count < 2 else 2]


def test_an_observation_of_another_shape_is_refused_as_the_environment_returned_it():
    envs = make_envs(Shrinking, wrappers=Wrappers(history=4))
    envs.reset([0])
    envs.step(np.zeros((1, 2), np.float32))
    with refusal(EnvironmentFailure, "observation", (2,), (3,), "step 2"):
        envs.step(np.zeros((1, 2), np.float32))


class Reusing(Counting):
    """Writes each observation into the same array."""

    array = np.zeros(3)

    def _observe(self):
        self.array[:] = super()._observe()
        return self.array


def test_an_environment_may_reuse_its_array():
    envs = make_envs(Reusing, wrappers=Wrappers(history=2))
    envs.reset([9])
    row = envs.step(np.zeros((1, 2), np.float32)).next_observation
    assert row.tolist() == [[9, 0, 0, 9, 0, 1]]


def test_the_map_of_joined_observations_keeps_the_space_of_one():
    wrappers = Wrappers(history=5)
    observation = make_envs(Counting, wrappers=wrappers).observation
    assert observation.space == Counting.observation_space
    assert wrappers.map_of(observation.space).layout == observation.layout == Layout(observation.layout.parts, 1, 5)
    assert ObservationMap(observation.space).layout.history == 1


def test_the_example_trains_with_and_without_a_history(capsys):
    returns = hidden_velocity.main(1_030, 1)
    assert {history: len(each) for history, each in returns.items()} == {1: 2, 3: 2}
    assert all(-2_500 < each < 0 for both in returns.values() for each in both)
    assert capsys.readouterr().out.count("\n") == 4
