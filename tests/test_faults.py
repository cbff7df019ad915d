"""Environments that leave by unusual doors: each is one sentence that names it, and the run is saved."""

import re
import threading
from functools import partial

import gymnasium
import numpy as np
import pytest
from faulty import FAULTS, RAISED, Faulty, Odd, Unwritable, with_property
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from refusals import UNSAID, check_names, refusal

import td3
from td3.environments import faults, make_envs, serial
from td3.errors import ConfigError, EnvironmentFailure, Interrupted, SpaceError
from td3.storage import verify

SMALL = {"hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "film": False, "eval_every": 0}


def play(made, steps=8):
    """Plays on until it fails."""
    try:
        made.reset(list(range(made.num_envs)))
        for _ in range(steps):
            made.step(np.zeros((made.num_envs, 1), np.float32))
    finally:
        made.close()


def one_sentence(problem, name="Faulty"):
    words = str(problem)
    assert len(words.splitlines()) == 1 and len(words) < 1_000 and words.endswith(".")
    assert name in words
    return words


def second_faulty(place, fault):
    """Makes two environments, the second of which is faulty."""
    made = iter([partial(Faulty, place, fault, after=100), partial(Faulty, place, fault)])
    return lambda: next(made)()


@pytest.mark.parametrize(("place", "fault"), FAULTS)
def test_a_fault_in_this_process_is_told_with_environment_step_and_field(place, fault):
    with pytest.raises(EnvironmentFailure) as caught:
        play(make_envs(second_faulty(place, fault), 2))
    words = one_sentence(caught.value, "second_faulty")
    assert re.match(r"Environment 1 \(.*\), step 4(, reset)?: ", words)
    assert place.split()[0] in words.split(", step 4")[1]  # the field, or the call


def is_put_right(place, fault):
    """Whether SyncVectorEnv makes something good of it before we see it: any sequence, the truth of most things."""
    if place in ("terminated", "truncated"):
        return fault not in ("a tensor that is learned", "a hostile thing")
    return place.endswith("answers") and fault in ("a list", "a tuple without a length")


@pytest.mark.parametrize(("place", "fault"), [one for one in FAULTS if not is_put_right(*one)])
def test_a_fault_in_a_vector_environment_is_told_with_environment_and_step(place, fault):
    mode = AutoresetMode.SAME_STEP  # so that a reset comes with the step before it
    make = partial(SyncVectorEnv, [partial(Faulty, place, fault)] * 2, autoreset_mode=mode)
    with pytest.raises(EnvironmentFailure) as caught:
        play(make_envs(make))
    words = one_sentence(caught.value, "SyncVectorEnv")
    assert re.match(r"Environment 0(, 1)? \(.*\), step 4: ", words)


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("step", "no exception"),
        ("step", "no words"),
        ("reset", "an exit"),
        ("observation", "a tensor that is learned"),
        ("reward", "a hostile thing"),
    ],
)
def test_a_fault_in_a_worker_is_told_as_in_this_process(place, fault):
    with pytest.raises(EnvironmentFailure) as caught:
        play(make_envs(partial(Faulty, place, fault), 1, workers=1))
    words = one_sentence(caught.value)
    assert re.match(r"Environment 0 \(.*\), step 4(, reset)?: ", words) and place in words


def test_a_worker_whose_environment_interrupts_itself_fails_in_one_sentence():
    class Impatient(Faulty):
        def step(self, action):
            raise KeyboardInterrupt

    with pytest.raises(EnvironmentFailure) as caught:
        play(make_envs(partial(Impatient, "step", ""), 1, workers=1))
    assert "KeyboardInterrupt" in one_sentence(caught.value, "Impatient")


@pytest.mark.parametrize("name", ["observation_space", "action_space", "unwrapped", "metadata", "render_mode"])
@pytest.mark.parametrize("fault", ["an error", "no words", "no exception", "an exit"])
def test_a_property_that_raises_is_refused_by_its_name(name, fault):
    make = partial(with_property(name, fault), "nowhere", "")
    with pytest.raises(ConfigError) as caught:
        make_envs(make)
    check_names(one_sentence(caught.value), name)


@pytest.mark.parametrize("fault", list(RAISED))
def test_an_environment_that_cannot_be_made_is_refused(fault):
    def make():
        raise RAISED[fault]()

    with refusal(ConfigError, "env") as caught:
        make_envs(make)
    one_sentence(caught.value, "make")


class Spaced(Faulty):
    def __init__(self, name, space):
        super().__init__("nowhere", "")
        setattr(self, name, space)


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
@pytest.mark.parametrize(
    "space", [None, "Box", (2,), Unwritable(-1, 1, (2,))], ids=["none", "text", "shape", "hostile"]
)
def test_what_is_no_space_is_refused_by_its_name(name, space):
    with pytest.raises((ConfigError, SpaceError)) as caught:
        make_envs(partial(Spaced, name, space))
    assert name in one_sentence(caught.value, "Spaced")


class Vectorlike(VectorEnv):
    """As much of a vector environment as is looked at before the first step."""

    single_observation_space = spaces.Box(-1, 1, (2,), np.float32)
    single_action_space = spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    num_envs = 2

    def reset(self, *, seed=None, options=None):
        return np.zeros((2, 2), np.float32), {}

    def step(self, actions):
        return np.zeros((2, 2), np.float32), np.zeros(2), np.ones(2, bool), np.zeros(2, bool), self.info


@pytest.mark.parametrize("num_envs", [0, -1, "two", None])
def test_a_vector_of_no_environments_is_refused(num_envs):
    make = type("Vectorlike", (Vectorlike,), {"num_envs": num_envs})
    with refusal((ConfigError, SpaceError), "num_envs"):
        make_envs(make)


@pytest.mark.parametrize("metadata", [None, [], "quick", {"autoreset_mode": []}])
def test_a_vector_with_odd_metadata_is_refused(metadata):
    make = type("Vectorlike", (Vectorlike,), {"metadata": metadata})
    with pytest.raises(SpaceError) as caught:
        make_envs(make)
    assert "autoreset_mode" in one_sentence(caught.value, "Vectorlike")


@pytest.mark.parametrize("info", [None, [], 3])
def test_a_vector_whose_info_is_needed_and_is_no_dict_is_told(info):
    make = type("Vectorlike", (Vectorlike,), {"info": info})
    with pytest.raises(EnvironmentFailure) as caught:
        play(make_envs(make))
    check_names(one_sentence(caught.value, "Vectorlike"), "info", UNSAID, "dict")


class Odder(Faulty):
    """Odd where nobody looks: that is its own affair."""

    class Reward(float):
        def __lt__(self, other):
            raise RuntimeError("incomparable")

        __gt__ = __le__ = __ge__ = __lt__

    metadata = None

    def __init__(self):
        super().__init__("nowhere", "")

    def step(self, action):
        observation, _, terminated, truncated, _ = super().step(action)
        return observation, self.Reward(2.5), np.int8(terminated), truncated, "no dict"

    @property
    def np_random(self):
        raise Odd

    @property
    def _np_random(self):
        raise Odd

    def __repr__(self):
        raise Odd


def test_what_is_odd_but_not_needed_is_let_be():
    made = make_envs(Odder, 2)
    made.reset([1, 2])
    assert made.step(np.zeros((2, 1), np.float32)).reward.tolist() == [2.5, 2.5]
    assert [one.random for one in made.capture()] == [None, None]
    made.close()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, partial(Interrupted, 2)])
@pytest.mark.parametrize("call", ["step", "reset", "close"])
def test_the_users_own_interruption_stays_one(stop, call):
    class Interrupting(Faulty):
        pass

    def stopped(self, *_, **__):
        raise stop()

    made = make_envs(partial(Interrupting, "nowhere", ""))
    made.reset([0])
    setattr(Interrupting, call, stopped)
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        {
            "step": lambda: made.step(np.zeros((1, 1), np.float32)),
            "reset": lambda: made.reset([0]),
            "close": made.close,
        }[call]()


@pytest.mark.parametrize("fault", list(RAISED))
def test_a_farewell_that_fails_is_no_failure(fault):
    closed = []

    class Parting(Faulty):
        def close(self):
            closed.append(self)
            raise RAISED[fault]()

    made = make_envs(partial(Parting, "nowhere", ""), 2)
    made.close()
    assert len(closed) == 2


@pytest.mark.parametrize("vector", [False, True])
def test_a_farewell_that_hangs_is_cut_short(vector, monkeypatch):
    monkeypatch.setattr(serial, "CLOSING", 0.0)
    monkeypatch.setattr(faults.close_quietly, "__defaults__", (1.0,))
    cut = []

    class Clinging(Faulty):
        def close(self):
            try:
                threading.Event().wait()
            except BaseException as problem:
                cut.append(type(problem))
                raise

    make = partial(Clinging, "nowhere", "")
    made = make_envs(partial(SyncVectorEnv, [make]) if vector else make)
    made.reset([0])
    made.close()
    assert cut == [faults.TooLong]


def test_a_run_whose_environment_fails_in_an_unusual_way_is_saved(tmp_path):
    for where in (("step", "no exception"), ("observation", "an array that exits"), ("reset", "no words")):
        run = tmp_path / where[1]
        with refusal(EnvironmentFailure, "step 31"):
            list(td3.train(td3.Config(env=partial(Faulty, *where, after=30), steps=100, **SMALL), run))
        assert list(verify(run).items())[-1][0].startswith("000000030") and not list(verify(run).values())[-1]


# ---- which step it was ----


class Failing(gymnasium.Env):
    """Fails when the file is there; its episodes have 7 steps."""

    observation_space, action_space = Faulty.observation_space, Faulty.action_space

    def __init__(self, file, after=0):
        self.file, self.left = file, after

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.count += 1
        if self.file.exists():
            if not self.left:
                raise RuntimeError("worn out")
            self.left -= 1
        return np.full(2, self.count / 10, np.float32), 0.0, False, self.count == 7, {}


def vector_of(file, mode):
    return partial(SyncVectorEnv, [partial(Failing, file, 5)] * 2, autoreset_mode=mode)


@pytest.mark.parametrize("way", ["alone", "two", "workers", "vector"])
def test_the_failing_step_is_counted_from_the_beginning_of_the_run_across_a_resume(way, tmp_path):
    file = tmp_path / "worn"
    env = vector_of(file, AutoresetMode.SAME_STEP) if way == "vector" else partial(Failing, file, 8)
    several = {"two": {"num_envs": 2}, "workers": {"num_envs": 2, "workers": 2}}.get(way, {})
    n = 1 if way == "alone" else 2
    config = td3.Config(env=lambda: env(), steps=200, **{**SMALL, **several})
    for event in td3.train(config, tmp_path / "run"):
        if event.step == 30 * n:
            break
    del event
    file.touch()
    with pytest.raises(EnvironmentFailure) as caught:
        list(td3.resume(tmp_path / "run", env=lambda: env()))
    first = one_sentence(caught.value, "lambda")
    # An episode of 7 steps is brought back by playing its last 2 again; a vector's cannot be.
    assert re.search(r"step (\d+)", first)[1] == ("36" if way == "vector" else "37")
    with pytest.raises(EnvironmentFailure) as caught:  # what failed half way counts for nobody
        list(td3.resume(tmp_path / "run", env=lambda: env()))
    later = int(re.search(r"step (\d+)", one_sentence(caught.value, "lambda"))[1])
    assert later == {"alone": 44, "two": 44, "workers": 45, "vector": 41}[way]


def test_a_checkpoint_that_counts_no_steps_per_environment_is_understood(tmp_path):
    from td3.collection import Collector

    made = make_envs(partial(Faulty, "step", "an error", 12), 2)
    collector = Collector(made, [1, 2], np.random.default_rng(0), 100, 0.0)
    for _ in range(5):
        collector.collect(lambda _: None)
    data, arrays = collector.capture()
    assert data["env_steps"] == [5, 5]
    del data["env_steps"]
    again = Collector(made, [1, 2], np.random.default_rng(0), 100, 0.0)
    again.restore(data, arrays, [1, 2])
    assert made.steps == [5, 5] and again.steps == 10
    data["env_steps"] = [5]
    with refusal(ValueError, "env_steps"):
        again.restore(data, arrays, [1, 2])


def test_an_evaluation_counts_from_the_beginning_of_its_episode(tmp_path):
    made = []

    def env():
        made.append(Faulty("step", "an error", after=1_000 if len(made) == 0 else 25))
        return gymnasium.wrappers.TimeLimit(made[-1], 10)

    config = td3.Config(env=env, steps=100, **{**SMALL, "eval_every": 10, "eval_episodes": 1, "diagnose": False})
    with refusal(EnvironmentFailure, "Evaluation environment 0", UNSAID, "step 6"):
        list(td3.train(config, tmp_path / "run"))
