"""Exact resume: a run stopped anywhere, any number of times, ends with the same bytes as one never stopped."""

import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from engines import BOTH, WHY_NOT, needs_native
from runs import contents

import td3
from td3.learner import making
from td3.session import Session
from td3.storage import RunFolder, read_metrics
from td3.storage.checkpoint import find

SMALL = {
    "hidden": (16, 16), "batch_size": 16, "threads": 1, "log_every": 30, "eval_episodes": 2, "eval_every": 70,
    "film": False,
}  # fmt: skip
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that a worker need not import this file, and PyTorch
EYES = {"encoder_channels": (4,), "encoder_features": 8, "steps": 130}


class Wandering(gymnasium.Env):
    """Draws from its own stream at every reset and step; ends at random or by a time limit."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 3, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.normal(size=2).astype(np.float32), 0
        return self.place, {}

    def step(self, action):
        self.count += 1
        self.place = self.place + self.np_random.normal(size=2).astype(np.float32) * 0.1 + action * 0.1
        over = bool(self.np_random.random() < 0.05)
        return self.place, -float(np.abs(self.place).sum()), over, self.count == 40, {}


class Clockwork(Wandering):
    """Is deterministic, and has no random state at all."""

    def reset(self, *, seed=None, options=None):
        self.place, self.count = np.float32([0.5, -0.5]), 0
        return self.place, {}

    def step(self, action):
        self.count += 1
        self.place = self.place * np.float32(0.9) + action * np.float32(0.1)
        return self.place, -float(np.abs(self.place).sum()), False, self.count == 17, {}


class Forgetful(Wandering):
    """Draws from a stream of its own making, which nobody can bring back."""

    def reset(self, *, seed=None, options=None):
        self.own = np.random.default_rng()
        _, info = super().reset(seed=seed)
        self.place = self.own.normal(size=2).astype(np.float32)
        return self.place, info


class Seeing(Wandering):
    """The same, shown as a speckled picture whose speckles are drawn from its stream too."""

    observation_space = gymnasium.spaces.Box(0, 255, (10, 12, 3), np.uint8)

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        return self._seen(), info

    def step(self, action):
        return self._seen(), *super().step(action)[1:]

    def _seen(self):
        speckles = self.np_random.integers(0, 40, (10, 12, 3))
        return np.uint8(np.clip(100 + 50 * self.place[0] + speckles * [1, 2, 3] * self.place[1], 0, 255))


class Both(Seeing):
    """Numbers beside the picture, in an order that is not the row's."""

    observation_space = gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32),
            "b": gymnasium.spaces.Tuple([Seeing.observation_space, gymnasium.spaces.Discrete(41)]),
        }
    )

    def _seen(self):
        return {"a": self.place, "b": (super()._seen(), self.count)}


class Drawable(Wandering):
    """Can draw itself: a square where it is."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        picture = np.full((32, 48, 3), 200, np.uint8)
        top, left = np.clip(np.int64(8 + 8 * self.place), 0, 24)
        picture[top : top + 8, left : left + 8] = [10, 120, 250]
        return picture


ALL_AT_ONCE = {
    "env": Both, "frame_stack": 3, "num_envs": 4, "n_step": 3, "random_shift": 2, "buffer_size": 32,
    "normalize_observations": True, "reward_scale": 0.1, "grey": True, "resize": 8, **EYES,
}  # fmt: skip
ENVIRONMENTS = {one.__name__: one for one in (Wandering, Clockwork, Seeing, Both, Drawable)}


def config(**settings):
    return td3.Config(
        **{"env": Wandering, "steps": 300, "warmup_steps": 50, "checkpoint_every": 45, **SMALL, **settings}
    )


def finish(run, settings, stops):
    """Trains, leaving the loop at each of these steps and resuming, and returns the last events."""
    events = td3.train(settings, run)
    for stop in stops:
        for event in events:
            if event.step >= stop and isinstance(event, td3.Stepped):
                break
        events.close()
        events = td3.resume(run, env=settings.env)
    return list(events)


def ended(run):
    """The bytes of everything in the last checkpoint, but for the time it took."""
    chosen, _, wrong = RunFolder.open(run).newest(lambda one: one.check())
    assert wrong == []
    state = chosen.state()
    del state["seconds"]
    networks, optimizers, playing = (chosen.arrays(one) for one in ("networks", "optimizers", "playing"))
    name = str(state["config"]["env"]).rpartition(":")[2]
    session, _ = Session.of_newest(RunFolder.open(run), {"workers": 0}, ENVIRONMENTS.get(name), False)
    rows = session.learner.memory.rows(session.learner.memory.oldest, session.learner.memory.written)
    memory = {name: column.tobytes() for name, column in rows.items()}
    session.close()
    arrays = {name: one.tobytes() for part in (networks, optimizers, playing) for name, one in part.items()}
    metrics = [
        {k: v for k, v in row.items() if not k.startswith("time/")} for row in read_metrics(run / "metrics.jsonl")
    ]
    return state, arrays, memory, metrics


CASES = {
    "in warm-up": ({}, [20]),
    "at the end of warm-up": ({}, [50]),
    "both delay phases": ({}, [101, 102, 203]),
    "at a checkpoint": ({}, [90, 135]),
    "at an evaluation": ({}, [70, 140]),
    "around the ring's wrap": ({"buffer_size": 100}, [99, 100, 101, 199, 200, 201]),
    "a ring smaller than a checkpoint's way": ({"buffer_size": 30, "checkpoint_every": 100}, [40, 150, 250]),
    "after each episode": ({"update_schedule": "episode", "update_after": 0}, [33, 120, 222]),
    "half an update per step": ({"updates_per_step": 0.5}, [101, 202]),
    "four environments": ({"num_envs": 4}, [60, 120, 200]),
    "four environments in two workers": ({"num_envs": 4, "workers": 2}, [101]),
    "four, after each episode": ({"num_envs": 4, "update_schedule": "episode", "update_after": 0}, [61, 203]),
    "every step of a stretch": ({"steps": 130}, list(range(80, 96))),
    "an environment without random numbers": ({"env": Clockwork, "num_envs": 2}, [60, 150]),
    "Pendulum": ({"env": "Pendulum-v1", "steps": 420}, [130, 200, 333]),
    "a MuJoCo task": ({"env": "Hopper-v5"}, [60, 155, 250]),
    "torch": ({"engine": "torch"}, [70, 101, 202]),
    "torch, four environments": ({"engine": "torch", "num_envs": 4, "update_schedule": "episode"}, [60, 121]),
    "two native threads": ({"engine": "native", "threads": 2, "hidden": (33, 65)}, [70, 101, 202]),
    "a MuJoCo task in a worker": ({"env": "InvertedPendulum-v5", "num_envs": 2, "workers": 1}, [101]),
    "three steps ahead": ({"n_step": 3, "buffer_size": 100}, [99, 100, 101, 202]),
    "three steps ahead, four environments": ({"n_step": 3, "num_envs": 4, "buffer_size": 90}, [60, 121]),
    "normalised": ({"normalize_observations": True, "reward_scale": 0.1}, [20, 70, 101, 202]),
    "normalised, torch": ({"normalize_observations": True, "n_step": 3, "engine": "torch"}, [20, 101]),
    "images": ({"env": Seeing, **EYES}, [20, 70, 101, 102]),
    "stacked images around the ring's wrap": (
        {"env": Seeing, "frame_stack": 3, "random_shift": 2, "buffer_size": 60, **EYES},
        [57, 58, 59, 60, 61, 62, 121],
    ),
    "four environments of stacked images": (
        {"env": Seeing, "frame_stack": 3, "num_envs": 4, "n_step": 3, "random_shift": 2, "buffer_size": 70, **EYES},
        [20, 60, 121],
    ),
    "images and numbers": (ALL_AT_ONCE, [20, 60, 121]),
    "what it draws": ({"env": Drawable, "pixels": 16, "buffer_size": 100, **EYES}, [20, 60, 121]),
}


@pytest.fixture(scope="module")
def never_stopped(tmp_path_factory):
    """How a run ends that was never stopped; trained once for all cases with its settings."""
    ends = {}

    def end_of(settings):
        key = repr(settings)
        if key not in ends:
            run = tmp_path_factory.mktemp("never") / "run"
            list(td3.train(config(**settings), run))
            ends[key] = ended(run)
        return ends[key]

    return end_of


@pytest.mark.parametrize("settings", [{}, {"num_envs": 4, "workers": 2}, {"update_schedule": "episode"}])
def test_a_run_that_was_stopped_before_its_first_step_ends_with_the_same_bytes(settings, tmp_path):
    settings = config(steps=90, **settings)
    with td3.train(settings, tmp_path / "stopped") as training:
        assert isinstance(next(training), td3.Started)
    assert len(list((tmp_path / "stopped/checkpoints").iterdir())) == 1
    list(td3.resume(tmp_path / "stopped", env=settings.env))
    list(td3.train(settings, tmp_path / "whole"))
    assert ended(tmp_path / "stopped") == ended(tmp_path / "whole")


@pytest.mark.parametrize("name", list(CASES))
def test_a_stopped_and_resumed_run_ends_with_the_same_bytes(name, tmp_path, never_stopped, monkeypatch):
    settings, stops = CASES[name]
    if settings.get("engine") == "native" and WHY_NOT:
        pytest.skip(WHY_NOT)
    monkeypatch.setattr(making, "cores", lambda: 2)  # as many threads as a case asks for
    often = tmp_path / "often"
    events = finish(often, config(**settings), stops)
    (resumed,) = [event for event in events if isinstance(event, td3.Resumed)]
    assert resumed.step >= stops[-1] and resumed.notes == ()
    for mine, other in zip(ended(often), never_stopped(settings), strict=True):
        assert mine == other


def test_a_finished_run_can_be_extended_and_equals_a_longer_one(tmp_path):
    list(td3.train(config(steps=300, eval_every=0, log_every=30), tmp_path / "long"))
    list(td3.train(config(steps=180, eval_every=0, log_every=30), tmp_path / "short"))
    with pytest.raises(td3.ConfigError, match="steps must be at least 180, where the run is already; got 100"):
        list(td3.resume(tmp_path / "short", steps=100, env=Wandering))
    again = list(td3.resume(tmp_path / "short", env=Wandering))
    assert [type(event).__name__ for event in again] == ["Started", "Resumed", "Finished"]
    td3.resume(tmp_path / "short", steps=300, env=Wandering).__next__()  # left at once: the goal is kept already
    for event in td3.resume(tmp_path / "short", env=Wandering):
        if event.step == 200:
            break
    list(td3.resume(tmp_path / "short", env=Wandering))  # the new goal is remembered
    for mine, other in zip(ended(tmp_path / "short"), ended(tmp_path / "long"), strict=True):
        assert mine == other


@pytest.mark.parametrize(("env", "why"), [(Forgetful, "led elsewhere"), ("vector", "ready-made vector")])
def test_an_episode_that_cannot_be_brought_back_is_closed_and_training_goes_on(tmp_path, env, why):
    from gymnasium.vector import SyncVectorEnv

    made = (lambda: SyncVectorEnv([Wandering, Wandering])) if env == "vector" else env
    settings = config(env=made, eval_every=0, steps=200)
    events = finish(tmp_path / "run", settings, [105])
    (resumed,) = [event for event in events if isinstance(event, td3.Resumed)]
    assert resumed.notes and all("cannot be brought back" in note and why in note for note in resumed.notes)
    assert isinstance(events[-1], td3.Finished) and events[-1].step >= 200
    lengths = [event.length for event in events if isinstance(event, td3.EpisodeEnded)]
    assert max(lengths) <= 40  # counted anew


def test_what_was_written_after_the_checkpoint_is_cut_off_and_each_step_stands_once(tmp_path):
    run = tmp_path / "run"
    list(td3.train(config(steps=200), run))
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 200, "eval/mean_return": 99.0}\n{"step": 2')
    list(td3.resume(run, steps=260, env=Wandering))
    rows = [row["step"] for row in read_metrics(run / "metrics.jsonl") if "eval/mean_return" in row]
    assert rows == [70, 140, 200, 210, 260]


def test_a_checkpoint_costs_what_is_new_and_old_rows_go_with_the_ring(tmp_path):
    run = tmp_path / "run"
    sizes = {}
    for event in td3.train(config(buffer_size=100, eval_every=0, steps=400, checkpoint_every=50), run):
        if isinstance(event, td3.Saved):
            newest = find(run)[0][-1]
            sizes[event.step] = [(one.first, one.end) for one in newest.manifest.segments]
    assert sizes[50] == [(0, 50)] and sizes[100] == [(0, 50), (50, 100)]
    assert sizes[150] == [(50, 100), (100, 150)] and sizes[400] == [(300, 350), (350, 400)]
    assert len(list((run / "memory").iterdir())) == 3  # of the two newest checkpoints


def test_a_large_memory_is_written_in_pieces_and_read_again(tmp_path, monkeypatch):
    from td3.storage import writer

    monkeypatch.setattr(writer, "SEGMENT", 40 * 33)
    run = tmp_path / "run"
    list(td3.train(config(steps=100, eval_every=0, checkpoint_every=0), run))
    sizes = [(one.first, one.end) for one in find(run)[0][-1].manifest.segments]
    each = sizes[0][1]
    assert each < 60 and sizes == [(start, min(start + each, 100)) for start in range(0, 100, each)]
    session = Session.of(run, Wandering)
    assert len(session.learner.memory) == 100
    session.close()


def test_an_engine_thread_or_version_that_changed_is_told(tmp_path, monkeypatch):
    from td3 import session

    run = tmp_path / "run"
    list(td3.train(config(steps=60, eval_every=0), run))
    monkeypatch.setattr(session, "versions", lambda: {"td3": "9", "mujoco": "4"})
    events = list(td3.resume(run, steps=80, env=Wandering))
    notes = next(event for event in events if isinstance(event, td3.Resumed)).notes
    assert any(note.startswith("mujoco was 3") and "now it is 4" in note for note in notes)


@needs_native
@pytest.mark.parametrize(("first", "second"), [("native", "torch"), ("torch", "native")])
def test_another_engine_goes_on_with_a_run_and_that_is_told(tmp_path, first, second):
    run = tmp_path / "run"
    list(td3.train(config(engine=first, steps=150, eval_every=0), run))
    events = list(td3.resume(run, steps=300, env=Wandering, engine=second))
    started, resumed = events[:2]
    assert started.summary["engine"].startswith(second) and started.config.engine == second
    (note,) = resumed.notes
    assert note.startswith(f"engine was {first}") and f"now it is {second}" in note
    assert isinstance(events[-1], td3.Finished) and events[-1].updates == 250
    again = list(td3.resume(run, steps=310, env=Wandering))  # the choice is part of the run
    assert again[0].summary["engine"].startswith(second) and again[1].notes == ()


@needs_native
def test_the_number_of_threads_is_no_part_of_a_native_run(tmp_path, monkeypatch):
    monkeypatch.setattr(making, "cores", lambda: 2)
    list(td3.train(config(engine="native", threads=1, hidden=(33, 65)), tmp_path / "one"))
    finish(tmp_path / "two", config(engine="native", threads=2, hidden=(33, 65)), [101])
    one, two = ended(tmp_path / "one"), ended(tmp_path / "two")
    assert one[1:] == two[1:]  # networks, optimisers, memory, metrics


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("threads", [3, 0])
def test_a_run_from_a_larger_machine_goes_on_with_the_cores_there_are(engine, threads, tmp_path, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setattr(making, "cores", lambda: 4)
    first = list(td3.train(config(engine=engine, threads=threads, steps=60, eval_every=0), run))
    had = 4 if engine == "native" and not threads else 3
    assert first[0].summary["threads"] == had
    monkeypatch.setattr(making, "cores", lambda: 2)
    started, resumed, *_, finished = td3.resume(run, steps=80, env=Wandering)
    assert started.summary["threads"] == 2 and started.config.threads == threads and finished.updates > 0
    notes = [note for note in started.notes if note.startswith("threads is 3, and here are 2 cores")]
    assert len(notes) == (1 if threads else 0)
    bytes_differ = [f"threads was {had}, now it is 2: the same bytes are not to be expected."]
    assert list(resumed.notes) == (bytes_differ if engine == "torch" else [])


def test_a_run_stopped_before_its_first_checkpoint_goes_on_with_the_cores_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(making, "cores", lambda: 4)
    Session(config(threads=4, steps=60, eval_every=0), tmp_path / "run").close()
    assert find(tmp_path / "run")[0] == []
    monkeypatch.setattr(making, "cores", lambda: 2)
    started, *_, finished = td3.resume(tmp_path / "run", env=Wandering)
    assert started.summary["threads"] == 2 and finished.step == 60


@needs_native
def test_the_engine_can_be_changed_between_two_stretches_of_learning():
    short = td3.TD3(Wandering, **{**SMALL, "eval_every": 0}, warmup_steps=50, engine="native").learn(100)
    seen = np.float32([0.1, -0.2])
    before, _ = short.predict(seen)
    after, _ = short.use_engine("torch").predict(seen)
    assert after == pytest.approx(before, abs=1e-5)
    assert short.learn(50).use_engine("native").learn(50)._session.learner.updates == 150
    with pytest.raises(td3.ConfigError, match="engine must be one of auto, native, torch; got 'jax'"):
        short.use_engine("jax")


class Older(gymnasium.Env):
    """Draws from a RandomState of its own, as dm_control's environments do."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self._own = np.random.RandomState(5)

    @property
    def np_random(self):
        return self._own

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self._own = np.random.RandomState(seed)
        self.place, self.count = self._own.normal(size=2).astype(np.float32), 0
        return self.place, {}

    def step(self, action):
        self.place = (self.place + self._own.normal() + action).astype(np.float32)
        self.count += 1
        return self.place, 0.0, False, self.count == 12, {}


def test_an_environment_with_numpys_older_generator_resumes_exactly(tmp_path):
    config = td3.Config(env=Older, steps=120, warmup_steps=20, checkpoint_every=40, **SMALL)
    list(td3.train(config, tmp_path / "whole"))
    for event in td3.train(config, tmp_path / "stopped"):
        if event.step == 67:
            break
    del event
    notes = [event.notes for event in td3.resume(tmp_path / "stopped", env=Older) if isinstance(event, td3.Resumed)]
    assert notes == [()] and contents(tmp_path / "whole") == contents(tmp_path / "stopped")
