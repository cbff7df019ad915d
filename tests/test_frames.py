"""What is sampled from the memory, against a log in plain lists: every stack, every look ahead, nothing else.

Each frame tells which environment showed it, in which episode and at which step, and no two are alike: a row that
mixes two episodes, reaches over the write head or leaves something out cannot look right by chance.
"""

import sys
from dataclasses import replace
from functools import lru_cache, partial

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from layouts import image_part, layout_of

from td3.collection import Collector
from td3.config import Config
from td3.environments import Wrappers, make_envs
from td3.errors import ConfigError
from td3.loop import advance
from td3.replay import FrameMemory, Memory, bytes_per_transition, make_memory
from td3.replay.links import NONE, Links
from td3.session import Session
from td3.types import Layout, Transitions

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that a worker need not import this file, and PyTorch
LENGTHS = (1, 2, 3, 5, 8)
GAMMA = 0.9
EYE = spaces.Box(0, 255, (8, 8), np.uint8)
SPACES = {
    "image": EYE,
    "dict": spaces.Dict(
        {
            "head": spaces.Dict({"left": EYE, "right": spaces.Box(0, 255, (9, 8, 3), np.uint8)}),
            "touch": spaces.Tuple([spaces.Box(-np.inf, np.inf, (3,), np.float32)]),
        }
    ),
    "vector": spaces.Box(-np.inf, np.inf, (3,), np.float32),
}


def pixels(env, episode, step, count):
    """Bytes that tell whose they are, wherever one looks."""
    return np.resize(np.array([env // 256, env % 256, episode, step], np.uint8), count)


class Telling(gymnasium.Env):
    """Shows its number (its seed), its episode and its step; the reward tells them too, and the action."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, kind="image", ends="terminated"):
        self.kind, self.ends, self.observation_space = kind, ends, SPACES[kind]
        self.number, self.episode = 0, -1

    def reset(self, *, seed=None, options=None):
        self.episode += 1
        self.count = 0
        if seed is not None:
            self.number = seed % 65_521
            self.began = self.number, self.episode
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        reward = paid(self.number, self.episode, self.count, action)
        return self._seen(), reward, *over(self.number, self.episode, self.count, self.ends), {}

    def _seen(self):
        label = self.number, self.episode, self.count
        left = pixels(*label, 64).reshape(8, 8)
        if self.kind == "image":
            return left
        touch = np.array(label, np.float32)
        if self.kind == "vector":
            return touch
        right = np.stack([pixels(*label, 72).reshape(9, 8) + np.uint8(channel) for channel in range(3)], axis=2)
        return {"head": {"left": left, "right": right}, "touch": (touch,)}


def paid(env, episode, step, action):
    return 100.0 * (env % 7) + 10.0 * (episode % 7) + step + float(action[0])


def over(env, episode, step, ends):
    """(terminated, truncated)"""
    last = step == LENGTHS[(env + episode) % len(LENGTHS)]
    terminated = ends == "terminated" or (ends == "in turn" and episode % 2 == 0)
    return last and terminated, last and not terminated


@lru_cache(maxsize=100_000)
def frame(kind, env, episode, step):
    """The bytes of one frame: the left eye, then the right one channel by channel."""
    left = pixels(env, episode, step, 64)
    right = pixels(env, episode, step, 72)
    return left if kind == "image" else np.concatenate([left, right, right + np.uint8(1), right + np.uint8(2)])


@lru_cache(maxsize=100_000)
def shown(kind, env, episode, step, stack):
    """The row an environment shows at this step; the first frame stands for those there were not yet."""
    touch = np.array([env, episode, step], np.float32)
    if kind == "vector":
        return touch
    frames = [frame(kind, env, episode, max(0, step - back)) for back in reversed(range(stack))]
    return np.concatenate([*frames, touch.view(np.uint8)] if kind == "dict" else frames)


class Log:
    """What really happened, in plain lists, and what the memory must make of it."""

    def __init__(self, kind, ends, num_envs, stack, n_step, resting=False):
        self.kind, self.ends, self.stack, self.n_step = kind, ends, stack, n_step
        self.resting = resting  # whether a step is lost after each episode, only to reset
        self.written = []  # (environment, episode, step) of every moment, or of every transition of vectors
        self.number = {}  # the place of each in that list
        self.done = {}  # what led there: action, reward, whether it terminated
        # The number, episode and step of each environment; the step is −1 in a step that is lost.
        self.at = [(env, 0, 0) for env in range(num_envs)]

    def step(self, actions):
        """One action in each environment; tells (environment, episode, step) of where each led."""
        led_to = []
        for place, action in enumerate(actions):
            env, episode, step = self.at[place]
            if step < 0:
                self.at[place] = env, episode, 0
                continue
            if step == 0 and self.kind != "vector":
                self.write(env, episode, 0)
            self.write(env, episode, step + 1)
            terminated, truncated = over(env, episode, step + 1, self.ends)
            reward = np.float32(paid(env, episode, step + 1, action))
            self.done[env, episode, step + 1] = action.copy(), reward, terminated
            next_one = env, episode + 1, -1 if self.resting else 0
            self.at[place] = next_one if terminated or truncated else (env, episode, step + 1)
            led_to.append((env, episode, step + 1))
        return led_to

    def shown(self, env, episode, step):
        return shown(self.kind, env, episode, step, self.stack)

    def write(self, *moment):
        self.number[moment] = len(self.written)
        self.written.append(moment)

    def drawable(self, capacity):
        """place → (environment, episode, step) of every transition whose frames are all held."""
        oldest = max(0, len(self.written) - capacity)
        found = {}
        for number, (env, episode, step) in list(enumerate(self.written))[oldest:]:
            needed = [step] if self.kind == "vector" else [max(0, step - back) for back in range(self.stack + 1)]
            if step > 0 and all(self.number[env, episode, one] >= oldest for one in needed):
                found[number % capacity] = (env, episode, step)
        return found

    def expected(self, env, episode, step):
        """(s, a, Σ γⁱ r, s', terminated, γᵏ) of up to n steps, as far as they were played."""
        action, total, worth = self.done[env, episode, step][0], 0.0, 1.0
        for last in range(step, step + self.n_step):
            if (env, episode, last) not in self.done:
                break
            _, reward, terminated = self.done[env, episode, last]
            total, worth, reached = total + worth * float(reward), worth * GAMMA, (last, terminated)
        s, s2 = (self.shown(env, episode, one) for one in (step - 1, reached[0]))
        return s, action, total, s2, reached[1], worth


def check(memory, log, rng):
    """Every place that can be drawn is a transition of the log, all of those are there, and each is told rightly."""
    expected = log.drawable(memory.capacity)
    assert len(memory) == len(expected) > 0 and memory.written == len(log.written)
    if isinstance(memory, FrameMemory):
        held = np.arange(min(memory.written, memory.capacity))
        assert np.flatnonzero(memory.can_sample(held)).tolist() == sorted(expected)
    assert set(memory.sample(rng, 64).tolist()) <= set(expected)
    indices = rng.permutation(sorted(expected))
    batch = [column.numpy() for column in memory.batch(indices)]
    wanted = [log.expected(*expected[place]) for place in indices.tolist()]
    s, a, r, s2, terminated, discount = (np.array(column) for column in zip(*wanted, strict=True))
    assert (batch[0] == s).all() and (batch[1] == a).all() and (batch[3] == s2).all()
    assert (batch[2] == r.astype(np.float32)).all() and (batch[4] == terminated).all()
    assert (batch[5] == discount.astype(np.float32)).all()


def poisoned(memory):
    """What was never written would be noticed: no environment shows or pays this."""
    for column in memory.columns.values():
        column[:] = np.nan if column.dtype == np.float32 else 0xEE if column.dtype == np.uint8 else False
    return memory


class Play:
    """The real door, collector and memory, and the log beside them."""

    def __init__(self, envs, log, capacity):
        self.envs, self.log, self.rng = envs, log, np.random.default_rng(5)
        self.memory = poisoned(make_memory(capacity, envs.observation.layout, 2, log.n_step, GAMMA))
        self.collector = Collector(envs, list(range(envs.num_envs)), np.random.default_rng(0), 0, 0.0)
        self.broken_off = False  # whether the next step is the first of new episodes

    def step(self, checked=True):
        actions = self.rng.uniform(-1, 1, (self.envs.num_envs, 2)).astype(np.float32)
        rows = self.collector.collect(lambda observation: actions).transitions
        if self.broken_off:
            self.log.at = [(*env.unwrapped.began, 0) for env in self.envs.envs]
            self.broken_off = False
        led_to = self.log.step(actions)
        assert len(led_to) == len(rows.reward)
        for (env, episode, step), before, after in zip(led_to, rows.observation, rows.next_observation, strict=True):
            assert (before == self.log.shown(env, episode, step - 1)).all()  # the policy saw what the memory will tell
            assert (after == self.log.shown(env, episode, step)).all()
        self.memory.add(rows)
        if checked:
            check(self.memory, self.log, self.rng)
        return rows


def smallest(num_envs, stack):
    """The smallest ring that is allowed."""
    return 2 * num_envs * (stack + 1)


def playing(kind, ends, num_envs, n_step, capacity, stack=3, workers=0):
    stack = 1 if kind == "vector" else stack
    wrappers = Wrappers(frame_stack=stack)
    envs = make_envs(partial(Telling, kind, ends), num_envs, workers, wrappers=wrappers)
    return Play(envs, Log(kind, ends, num_envs, stack, n_step), capacity or smallest(num_envs, stack))


@pytest.mark.parametrize("capacity", [0, 61, 1_000], ids=["smallest ring", "a ring of 61", "no wrap"])
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("kind", ["image", "dict", "vector"])
def test_whatever_can_be_drawn_is_what_really_happened(kind, num_envs, n_step, ends, capacity):
    play = playing(kind, ends, num_envs, n_step, capacity)
    assert isinstance(play.memory, Memory if kind == "vector" else FrameMemory)
    for _ in range(240 // num_envs if capacity < 1_000 else 100 // num_envs):
        play.step()
    wraps = play.memory.written // play.memory.capacity
    assert wraps == 0 if capacity == 1_000 else wraps >= 3


@pytest.mark.parametrize("stack", [1, 2, 5])
@pytest.mark.parametrize("n_step", [2, 10])
def test_stacks_and_looks_ahead_of_any_depth_end_with_the_episode(stack, n_step):
    play = playing("dict", "in turn", 2, n_step, 47, stack)
    for _ in range(80):
        play.step()  # compares every place with the log
    assert play.memory.written > 3 * 47


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("kind", ["image", "dict"])
@pytest.mark.parametrize("n_step", [1, 3])
def test_ready_made_vectors_of_images_are_remembered_alike_in_each_autoreset_mode(mode, kind, n_step):
    make = partial(Telling, kind, "in turn")
    envs = make_envs(lambda: SyncVectorEnv([make] * 3, autoreset_mode=mode))
    resting = mode is AutoresetMode.NEXT_STEP
    play = Play(envs, Log(kind, "in turn", 3, 1, n_step, resting), 41)
    counts = [len(play.step().reward) for _ in range(80)]
    envs.close()
    assert (min(counts) < 3) == resting and play.memory.written > 3 * 41


def test_images_from_worker_processes_are_remembered_alike():
    play = playing("dict", "in turn", 4, 3, 67, workers=2)
    try:
        for _ in range(60):
            play.step()
    finally:
        play.envs.close()
    assert play.memory.written > 3 * 67


@pytest.mark.parametrize("kind", ["image", "vector"])
def test_a_row_that_looks_ahead_grows_with_what_is_remembered(kind):
    play = playing(kind, "truncated", 1, 3, 1_000)
    grown = {}
    for _ in range(19):
        play.step()
        for place, who in play.log.drawable(1_000).items():
            discount = play.memory.batch(np.array([place])).discount.item()
            grown.setdefault(who, []).append(round(np.log(discount) / np.log(GAMMA)))
    assert grown[0, 4, 1] == [1, 2, 3, 3, 3, 3, 3, 3]  # of an episode of eight: first to newest, then all three
    assert grown[0, 4, 7] == [1, 2] and grown[0, 4, 8] == [1] and grown[0, 0, 1] == [1] * 19


def test_draws_are_uniform_over_what_can_be_drawn():
    play = playing("image", "in turn", 4, 1, 61)
    for _ in range(70):
        play.step(checked=False)
    indices = sorted(play.log.drawable(61))
    drawn = play.memory.sample(np.random.default_rng(1), 1_000 * len(indices))
    found, counts = np.unique(drawn, return_counts=True)
    assert found.tolist() == indices and 20 < len(indices) < 61  # there were others to avoid
    freedom = len(indices) - 1
    assert abs(((counts - 1_000) ** 2 / 1_000).sum() - freedom) < 4 * np.sqrt(2 * freedom)


def test_draws_of_a_seed_are_always_the_same():
    play = playing("image", "in turn", 2, 1, 61)
    for _ in range(70):
        play.step(checked=False)
    first, again = (play.memory.sample(np.random.default_rng(3), 500) for _ in range(2))
    assert first.tolist() == again.tolist()


@pytest.mark.parametrize("kind", ["image", "dict", "vector"])
@pytest.mark.parametrize("chunk", [2, 7, 30, 300])
def test_rows_of_several_environments_and_more_than_fit_may_come_at_once(kind, chunk):
    play = playing(kind, "in turn", 4, 3, 53)
    results = [play.step() for _ in range(75)]
    rows = Transitions._make(np.concatenate(column) for column in zip(*results, strict=True))
    layout = play.envs.observation.layout
    other = poisoned(make_memory(53, layout, 2, 3, GAMMA))
    for first in range(0, 300, chunk):
        other.add(Transitions._make(column[first : first + chunk] for column in rows))
    check(other, play.log, play.rng)
    for mine, its in zip(play.memory.columns.values(), other.columns.values(), strict=True):
        assert mine.tobytes() == its.tobytes()


SEGMENTS = {
    "what is held": (0, [0]),
    "rows that the ring has lost since": (9, [0]),
    "in three pieces": (4, [0, 20, 30]),
}


@pytest.mark.parametrize("kind", ["image", "dict", "vector"])
@pytest.mark.parametrize("kept", list(SEGMENTS))
def test_a_memory_filled_with_kept_rows_goes_on_as_if_it_had_never_been_away(kind, kept):
    play = playing(kind, "in turn", 4, 3, 53)
    everything = make_memory(1_000, play.envs.observation.layout, 2, 3, GAMMA)
    for _ in range(40):
        everything.add(play.step())
    more, starts = SEGMENTS[kept]
    starts = [play.memory.oldest - more + start for start in starts]
    end = play.memory.written
    play.memory = poisoned(make_memory(53, play.envs.observation.layout, 2, 3, GAMMA))
    play.memory.written = starts[0]
    for first, last in zip(starts, [*starts[1:], end], strict=True):
        play.memory.load(everything.rows(first, last))
    check(play.memory, play.log, play.rng)
    for _ in range(40):
        play.step()  # compares every place with the log
    assert play.memory.written > end + 53


def interrupted(play):
    """A step that nobody knows the end of; the next one begins every episode anew."""

    def never(actions):
        raise KeyboardInterrupt

    play.envs.step, step = never, play.envs.step
    with pytest.raises(KeyboardInterrupt):
        play.collector.collect(lambda observation: np.zeros((4, 2), np.float32))
    play.envs.step = step


def brought_back_in_vain(play):
    """Collected again, episodes lead elsewhere here, for their numbers are others: they are closed."""
    notes = play.collector.restore(*play.collector.capture(), [11, 12, 13, 14])
    assert len(notes) == 4 and all("cannot be brought back" in note for note in notes)


@pytest.mark.parametrize("seam", [interrupted, brought_back_in_vain])
@pytest.mark.parametrize("kind", ["image", "dict", "vector"])
def test_nothing_spans_a_seam_where_an_episode_broke_off(kind, seam):
    play = playing(kind, "in turn", 4, 3, 67)
    for stretch in (6, 11, 30):
        for _ in range(stretch):
            play.step()
        seam(play)
        play.broken_off = True
    for _ in range(30):
        play.step()  # compares every place with the log
    assert play.memory.written >= 4 * 77  # four rows a step, and where there are frames the beginnings


def test_no_stack_and_no_look_ahead_spans_the_seam_of_a_resumed_run(tmp_path):
    small = {"hidden": (8,), "batch_size": 8, "encoder_channels": (4,), "encoder_features": 8, "film": False}
    config = Config(
        env=Telling, steps=200, warmup_steps=300, num_envs=2, frame_stack=3, n_step=3, gamma=GAMMA, buffer_size=200,
        eval_every=0, threads=1, **small,
    )  # fmt: skip
    session = Session(config, tmp_path / "run")
    stretch = advance(session, 100)
    while session.step < 85:
        next(stretch)
    stretch.close()
    session.close()
    numbers = {env.unwrapped.number for env in session.collector.envs.envs}
    session = Session.resumed(tmp_path / "run", {}, Telling, False)
    assert [note[:13] for note in session.resumed_notes] == ["Environment 0", "Environment 1"]
    list(advance(session, 130))
    numbers |= {env.unwrapped.number for env in session.collector.envs.envs}
    assert len(numbers) == 4  # two from before, two from after
    memory = session.learner.memory
    batch = memory.batch(np.flatnonzero(memory.can_sample(np.arange(memory.written))))
    session.close()
    seen = [memory.layout.frames(rows.numpy())[:, :, :4].astype(int) for rows in (batch.observation, batch[3])]
    stamps = np.concatenate(seen, axis=1)  # (n, six frames, four bytes)
    assert set((stamps[:, 0, 0] * 256 + stamps[:, 0, 1]).tolist()) == numbers and len(stamps) > 100
    assert (stamps[:, :, :3] == stamps[:, :1, :3]).all()  # one environment, one episode
    (before, after), back = (one[:, -1, 3] for one in seen), np.arange(2, -1, -1)
    assert (seen[0][:, :, 3] == np.maximum(0, before[:, None] - back)).all()
    assert (seen[1][:, :, 3] == np.maximum(0, after[:, None] - back)).all()
    assert batch.discount.numpy() == pytest.approx(GAMMA ** (after - before))
    assert set((after - before).tolist()) == {1, 2, 3}


@pytest.mark.parametrize("most", [1, 5, 16])
def test_each_row_knows_its_neighbours_in_its_own_episode(most):
    rng, links, capacity = np.random.default_rng(most), Links(16), 16
    env, begins, before, after, newest = [], [], [], [], {}
    while len(env) < 400:
        count = int(rng.integers(1, most + 1))
        fresh, starts = rng.integers(0, 3, count), rng.random(count) < 0.3
        links.add(len(env), fresh.astype(np.int32), starts)
        for one, start in zip(fresh.tolist(), starts.tolist(), strict=True):
            number = len(env)
            env.append(one), begins.append(start), after.append(NONE)
            before.append(number if start else newest.get(one, NONE))
            if not start and one in newest:
                after[newest[one]] = number
            newest[one] = number
        for number in range(max(0, len(env) - capacity), len(env)):
            assert links.before(np.array(number % capacity)) == before[number]
            assert links.after(np.array(number % capacity)) == (
                after[number] % capacity if after[number] != NONE else NONE
            )


def test_stacks_that_are_not_made_of_the_frames_before_are_never_written():
    play = playing("image", "terminated", 1, 1, 61)
    rows = play.step()
    torn = rows._replace(next_observation=rows.next_observation[:, ::-1].copy())
    with pytest.raises(AssertionError):
        play.memory.add(torn)
    assert play.memory.written == 2


def test_gathered_frames_are_copies():
    play = playing("dict", "in turn", 1, 3, 61)
    for _ in range(10):
        play.step()
    indices = np.array(sorted(play.log.drawable(61)))
    batch = play.memory.batch(indices)
    again = [column.clone() for column in batch]
    poisoned(play.memory)
    assert all(one.equal(other) for one, other in zip(batch, again, strict=True))


def test_a_hundred_thousand_stacked_colour_images_take_little_more_than_one_frame_each():
    colour = layout_of(0, (image_part("observation", 3, 84, 84),), stack=3)
    assert 2.1e9 <= bytes_per_transition(colour, 6) * 100_000 <= 2.2e9
    images = (image_part("observation", 1, 32, 32),)
    grey, both = layout_of(0, images, stack=3), layout_of(7, images, stack=3)
    assert 1_024 < bytes_per_transition(grey, 1) <= 1_070
    assert bytes_per_transition(grey, 1, n_step=5) == bytes_per_transition(grey, 1)
    assert bytes_per_transition(both, 1) == bytes_per_transition(grey, 1) + 28
    memory = make_memory(50, grey, 1, 1, GAMMA)
    assert memory.nbytes == 50 * bytes_per_transition(grey, 1)


def test_looking_ahead_costs_a_vector_its_two_links_and_whose_it_is():
    assert bytes_per_transition(Layout(17), 6, n_step=3) == 165 + 8 + 8 + 4 + 1


def test_a_ring_too_small_for_its_stacks_is_refused_and_the_smallest_is_enough():
    small = {"hidden": (8,), "batch_size": 8, "encoder_channels": (4,), "encoder_features": 8, "eval_every": 0}
    config = Config(env=Telling, frame_stack=3, num_envs=4, buffer_size=32, warmup_steps=4, steps=60, **small)
    with pytest.raises(ConfigError, match="buffer_size must be at least 32 here: each frame is stored once"):
        Session(replace(config, buffer_size=31))
    session = Session(config)
    list(advance(session, 60))
    session.close()
    assert session.learner.updates == 56 and session.learner.memory.written > 64
    Session(replace(config, env=partial(Telling, "vector"), frame_stack=1, buffer_size=1)).close()  # whole by itself
