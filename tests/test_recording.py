"""Recording: an update that is written down is the run's own, to the bit, and the numbers told of it are right."""

import base64
import json
import math
import os
import sys
import zlib
from functools import partial

import gymnasium
import numpy as np
import pytest
import tiny
import torch
from engines import BOTH, WHY_NOT
from example_envs import Counting, Probe
from gymnasium import spaces
from layouts import image_part, layout_of
from learners import filled
from sessions import Clock, played

import td3
from td3 import run_output
from td3.config import Config
from td3.learner import Learner
from td3.learner.making import bytes_of_networks, make_learner
from td3.learner.native.engine import NativeLearner
from td3.recording import Allowance, Recorder
from td3.recording import update as recorded_update
from td3.recording.measures import histogram
from td3.recording.observations import averaged
from td3.recording.update import NETWORKS, rows_to_show
from td3.replay import bytes_per_transition
from td3.storage import read_metrics, verify
from td3.storage.updates import LONGEST_LINE
from td3.types import Layout, Transitions

SMALL = {"hidden": (16, 16), "batch_size": 16, "threads": 1, "eval_episodes": 2, "film": False}
ENGINES = {"native": NativeLearner, "torch": Learner}
QUICKEST = Learner if WHY_NOT else NativeLearner


def config(**settings):
    return Config(**{"env": "Pendulum-v1", "steps": 160, "warmup_steps": 30, "eval_every": 60, **SMALL, **settings})


@pytest.fixture
def _always(monkeypatch):
    """Where no time passes, nothing costs anything: every update is recorded that may be."""
    monkeypatch.setattr(run_output, "Recorder", partial(Recorder, clock=lambda: 0.0))


def record(recorder, learner, step, replay, smoothing, engine):
    """One update, recorded even if that is not due; returns its means."""
    recorder.engine = engine
    return learner.learn(replay, smoothing, recorder.observing(step, learner.updates) or recorder).means()


def lines(run):
    return [json.loads(line) for line in (run / "updates.jsonl").read_bytes().splitlines()]


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("engine", BOTH)
def test_recording_every_update_changes_no_bit_of_a_run(engine, delay, tmp_path):
    settings = {"engine": engine, "policy_delay": delay, "log_every": 1}
    recorded = played(config(**settings), tmp_path / "recorded")
    plain = played(config(**settings, record_updates=False), tmp_path / "plain")
    assert recorded == plain
    written = lines(tmp_path / "recorded")
    assert [one["update"] for one in written] == list(range(1, 131))
    assert [one["step"] for one in written] == list(range(31, 161))
    assert [one["delayed"] for one in written] == [update % delay == 0 for update in range(1, 131)]
    assert not (tmp_path / "plain" / "updates.jsonl").exists()


def kept(network):
    return [one.detach().clone() for one in network.parameters()]


def apart(these, those, which=None):
    """The distance, number by number, of two networks or of two of the twins."""
    pick = (lambda one: one) if which is None else (lambda one: one[which])
    return math.sqrt(sum(float((pick(x) - pick(y)).double().square().sum()) for x, y in zip(these, those, strict=True)))


def tiny_record(engine, tmp_path, monkeypatch, count, **settings):
    """So many recorded updates of the learner that can be worked out on paper, and what it was before the last."""
    monkeypatch.setattr(tiny, "Learner", ENGINES[engine])
    learner = tiny.tiny(batch_size=4, log_every=1, steps=100, **settings)
    columns = [np.float32(one) for one in ([[0.1], [0.2], [0.3]], [[0.5], [-0.5], [0.0]], [1, 2, 3])]
    following = np.float32([[0.4], [0.5], [0.6]])
    learner.memory.add(Transitions.in_a_row(*columns, following, np.array([False, False, True])))
    recorder = Recorder(tmp_path / "updates.jsonl", learner.config, 0, clock=lambda: 0.0)
    replay, smoothing = np.random.default_rng(0), np.random.default_rng(1)
    for number in range(1, count + 1):
        assert recorder.due(number, learner.updates)
        before = {name: kept(getattr(learner, name)) for name in NETWORKS}
        rows, noise, _ = learner.sample(np.random.default_rng(0), np.random.default_rng(1))
        replay, smoothing = np.random.default_rng(0), np.random.default_rng(1)
        means = record(recorder, learner, number, replay, smoothing, "by hand")
    recorder.close()
    return learner, before, rows, noise.numpy() * 0.2, lines(tmp_path)[-1], means


@pytest.mark.parametrize("engine", BOTH)
def test_a_recorded_update_tells_what_can_be_worked_out_on_paper(engine, tmp_path, monkeypatch):
    learner, before, rows, noise, written, means = tiny_record(engine, tmp_path, monkeypatch, 1, policy_delay=1)
    assert (written["update"], written["step"], written["delayed"], written["engine"]) == (1, 1, True, "by hand")
    assert written["observation_size"] == written["action_size"] == 1
    assert written["settings"]["hidden"] == [1] and written["settings"]["tau"] == 0.005
    assert len(written["settings"]) == 15
    shown = written["rows"]
    assert shown["row"] == rows.tolist()
    s, a, r = np.take([0.1, 0.2, 0.3], rows), np.take([0.5, -0.5, 0.0], rows), np.take([1.0, 2.0, 3.0], rows)
    s2, ends = np.take([0.4, 0.5, 0.6], rows), np.take([False, False, True], rows)
    assert np.ravel(shown["observation"]) == pytest.approx(s) and np.ravel(shown["action"]) == pytest.approx(a)
    assert shown["reward"] == pytest.approx(r) and shown["terminated"] == ends.tolist()
    assert np.ravel(shown["next_observation"]) == pytest.approx(s2)
    target_action = np.tanh(0.25 * (s2 + 2))
    assert np.ravel(shown["target_action"]) == pytest.approx(target_action, rel=1e-5)
    assert np.ravel(shown["drawn_noise"]) == pytest.approx(noise.ravel(), rel=1e-5)
    assert np.ravel(shown["noise"]) == pytest.approx(np.clip(noise.ravel(), -0.5, 0.5), rel=1e-5)
    a2 = np.clip(target_action + np.clip(noise.ravel(), -0.5, 0.5), -1, 1)
    assert np.ravel(shown["next_action"]) == pytest.approx(a2, rel=1e-5)
    next_q1, next_q2 = 3 * (s2 + a2 + 2), (s2 + a2 + 2) + 4
    assert shown["next_q1"] == pytest.approx(next_q1, rel=1e-5)
    assert shown["next_q2"] == pytest.approx(next_q2, rel=1e-5)
    assert shown["next_q"] == pytest.approx(np.minimum(next_q1, next_q2), rel=1e-5)
    target = r + 0.99 * ~ends * np.minimum(next_q1, next_q2)
    assert shown["target"] == pytest.approx(target, rel=1e-5)
    q1, q2 = s + a + 2, 2 * (s + a + 2) - 3
    assert shown["q1"] == pytest.approx(q1, rel=1e-5) and shown["q2"] == pytest.approx(q2, rel=1e-5)
    own_action = np.tanh(0.5 * (s + 2))  # before the actor's step …
    assert np.ravel(shown["own_action"]) == pytest.approx(own_action, rel=1e-6)
    first, _, last = learner.critics.layers  # … evaluated by the critic after its own
    hidden = s * first.weight[0, 0].item() + own_action * first.weight[0, 1].item() + first.bias[0].item()
    own_q1 = hidden * last.weight[0].item() + last.bias[0].item()
    assert shown["own_q1"] == pytest.approx(own_q1, rel=1e-6)
    assert max(abs(own_q1 - (s + own_action + 2))) > 1e-3  # the critic before its step would have said something else
    assert written["critic_loss"] == pytest.approx(np.mean((q1 - target) ** 2) + np.mean((q2 - target) ** 2), rel=1e-5)
    assert written["actor_loss"] == pytest.approx(-np.mean(own_q1), rel=1e-5)
    assert means.tolist() == pytest.approx(
        [written["critic_loss"], written["actor_loss"], q1.mean(), q2.mean(), target.mean()], rel=1e-5
    )
    batch = written["batch"]
    assert batch["twin_gap"] == pytest.approx(np.mean(abs(q1 - q2)), rel=1e-5)
    assert batch["q1_smaller"] == np.mean(next_q1 < next_q2) and batch["terminated"] == ends.sum()
    for name, expected in (("q1", q1), ("q2", q2), ("target", target), ("next_q1", next_q1), ("next_q2", next_q2)):
        assert batch[name] == pytest.approx(expected.mean(), rel=1e-5)
    assert batch["saturated"] == 0.0
    bars = np.zeros(20, int)
    for one in own_action:
        bars[int((one + 1) * 10)] += 1
    assert batch["histogram"] == [bars.tolist()]
    ages = 2 - rows
    assert written["memory"] == {"rows": 3, "capacity": 8, "mean_age": ages.mean(), "oldest_age": 2}
    # every network moved, and Adam's first step is one learning rate for every number that has a gradient
    after = {name: kept(getattr(learner, name)) for name in NETWORKS}
    moved = written["moved"]
    assert moved["critic1"] == pytest.approx(apart(before["critics"], after["critics"], 0), rel=1e-6)
    assert moved["critic1"] == pytest.approx(tiny.LR * math.sqrt(5), rel=1e-2)
    assert moved["critic2"] == pytest.approx(apart(before["critics"], after["critics"], 1), rel=1e-6)
    assert moved["actor"] == pytest.approx(apart(before["actor"], after["actor"]), rel=1e-6)
    assert moved["actor"] == pytest.approx(tiny.LR * 2, rel=1e-2)
    assert moved["actor_target"] == pytest.approx(apart(before["actor_target"], after["actor_target"]), rel=1e-6)
    for which in (0, 1):
        expected = apart(before["critic_targets"], after["critic_targets"], which)
        assert moved[f"critic{which + 1}_target"] == pytest.approx(expected, rel=1e-6) and expected > 0
        distance = apart(after["critics"], after["critic_targets"], which)
        assert written["apart"][f"critic{which + 1}"] == pytest.approx(distance, rel=1e-6)
    assert written["apart"]["actor"] == pytest.approx(apart(after["actor"], after["actor_target"]), rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("engine", BOTH)
def test_the_gradients_told_are_those_that_autograd_finds(engine, count, tmp_path, monkeypatch):
    _, _, _, _, written, _ = tiny_record(engine, tmp_path, monkeypatch, count)
    (tmp_path / "page").mkdir()
    page, *_ = tiny_record("torch", tmp_path / "page", monkeypatch, count)  # its gradients are still there
    for which in (0, 1):
        expected = math.sqrt(sum(float(one.grad[which].square().sum()) for one in page.critics.parameters()))
        assert written["gradient"][f"critic{which + 1}"] == pytest.approx(expected, rel=1e-4)
    if count % 2:
        assert written["gradient"]["actor"] is None
    else:
        expected = math.sqrt(sum(float(one.grad.square().sum()) for one in page.actor.parameters()))
        assert written["gradient"]["actor"] == pytest.approx(expected, rel=1e-4) and expected > 0


@pytest.mark.parametrize("engine", BOTH)
def test_an_update_of_the_critics_alone_says_that_nothing_else_moved(engine, tmp_path, monkeypatch):
    _, _, _, _, written, _ = tiny_record(engine, tmp_path, monkeypatch, 1)
    assert written["delayed"] is False and written["actor_loss"] is None and written["gradient"]["actor"] is None
    assert written["rows"]["own_action"] is None and written["rows"]["own_q1"] is None
    assert written["moved"]["critic1"] > 0 and written["moved"]["critic2"] > 0
    assert all(written["moved"][name] is None for name in ("actor", "actor_target", "critic1_target", "critic2_target"))


def test_long_vectors_are_cut_many_actions_are_counted_and_an_end_is_among_the_rows_shown(tmp_path):
    settings = Config(env="none", hidden=(8,), batch_size=300, buffer_size=500, policy_delay=1)
    learner = filled(QUICKEST(Layout(40), 35, settings, 0), 500)
    learner.memory.columns["terminated"][:] = False
    learner.memory.columns["terminated"][::50] = True
    with torch.no_grad():
        learner.actor.layers[-1].bias[0] = 50.0  # one dimension of 35 always at its bound
    recorder = Recorder(tmp_path / "updates.jsonl", settings, 0)
    record(recorder, learner, 1, np.random.default_rng(0), np.random.default_rng(1), "native")
    recorder.close()
    (written,) = lines(tmp_path)
    assert (written["observation_size"], written["action_size"]) == (40, 35)
    for name in ("observation", "next_observation", "action", "target_action", "noise", "next_action", "own_action"):
        assert [len(one) for one in written["rows"][name]] == [24] * 6, name
    assert sum(written["rows"]["terminated"]) == 1 and written["rows"]["terminated"][5]
    assert written["rows"]["row"][5] % 50 == 0 and written["batch"]["terminated"] >= 1
    counts = np.array(written["batch"]["histogram"])
    assert counts.shape == (32, 20) and (counts.sum(axis=1) == 300).all() and counts[0, 19] == 300
    assert written["batch"]["saturated"] == pytest.approx(1 / 35, abs=0.002)


def test_the_first_rows_are_shown_and_the_first_end_takes_the_last_place_if_none_is_among_them():
    ends = np.zeros(20, bool)
    assert rows_to_show(ends) == [0, 1, 2, 3, 4, 5]
    ends[[9, 12]] = True
    assert rows_to_show(ends) == [0, 1, 2, 3, 4, 9]
    ends[2] = True
    assert rows_to_show(ends) == [0, 1, 2, 3, 4, 5]
    assert rows_to_show(np.array([False, True])) == [0, 1]


def test_bars_are_a_tenth_wide_and_what_is_no_number_is_in_none():
    actions = np.float32([[-1, 0.0], [-0.95, 1.0], [-0.89, 0.99], [np.nan, 0.05]])
    first, second = histogram(actions)
    assert first == [2, 1] + [0] * 18 and second == [0] * 10 + [2] + [0] * 8 + [2]


def test_ages_count_back_from_the_newest_row_also_after_the_ring_has_wrapped(tmp_path):
    settings = Config(env="none", hidden=(8,), batch_size=40, buffer_size=10)
    learner = filled(Learner(Layout(3), 2, settings, 0), 13)  # indices 0, 1, 2 hold rows 10, 11, 12
    recorder = Recorder(tmp_path / "updates.jsonl", settings, 0)
    rows, *_ = learner.sample(np.random.default_rng(0), np.random.default_rng(1))
    record(recorder, learner, 1, np.random.default_rng(0), np.random.default_rng(1), "torch")
    recorder.close()
    ages = np.array([2, 1, 0, 9, 8, 7, 6, 5, 4, 3])[rows]
    assert lines(tmp_path)[0]["memory"] == {"rows": 10, "capacity": 10, "mean_age": ages.mean(), "oldest_age": 9}


def recorded_steps(tmp_path, cost, result, last, **settings):
    """At which steps the updates were recorded, if each step takes `step` and each recorded update `cost`."""
    clock = Clock()
    learner = filled(QUICKEST(Layout(3), 2, Config(env="none", hidden=(4,), batch_size=4, **settings), 0))
    recorder = Recorder(tmp_path / "updates.jsonl", learner.config, 0, clock)
    update, found, spent = learner.update, [], 0.0

    def slow(*given):
        clock.now += cost
        return update(*given)

    learner.update = slow
    chances = np.random.default_rng(0), np.random.default_rng(1)
    for step in range(1, last + 1):
        clock.now += result
        if recorder.due(step, learner.updates):
            record(recorder, learner, step, *chances, "native")
            found.append(step)
            spent += cost
        else:
            learner.updates += 1
    recorder.close()
    return found, spent / clock.now


def test_updates_are_recorded_in_groups_as_far_apart_as_rows_of_metrics_if_they_cost_nothing(tmp_path):
    found, _ = recorded_steps(tmp_path, 0.0, 1.0, 1_020, log_every=250, steps=2_000)
    assert found == [1, 2, 253, 254, 505, 506, 757, 758, 1009, 1010]  # each begins with the first of a pair
    found, _ = recorded_steps(tmp_path, 0.0, 1.0, 1_020, log_every=250, steps=2_000, policy_delay=1)
    assert found == [1, 251, 501, 751, 1001]


def test_no_more_than_a_hundredth_of_the_time_goes_into_it(tmp_path):
    found, share = recorded_steps(tmp_path, 0.5, 0.1, 40_000, log_every=1, steps=40_000)
    gaps = np.diff(found[::2])
    assert found[:2] == [1, 2] and gaps.min() >= 1_000 and 35 <= len(found) // 2 <= 40  # a group costs 1 s, so 100 s
    assert 0.009 < share < 0.01


def test_a_run_of_any_length_has_a_thousand_groups_at_most(tmp_path):
    found, _ = recorded_steps(tmp_path, 0.0, 1.0, 20_500, log_every=250, steps=10_000_000)
    assert found == [1, 2, 10_003, 10_004, 20_005, 20_006]


def test_an_actor_that_waits_for_long_is_met_at_the_end_of_its_waiting(tmp_path):
    found, _ = recorded_steps(tmp_path, 0.0, 1.0, 250, log_every=10, steps=2_000, policy_delay=100)
    assert found == [97, 98, 99, 100, 197, 198, 199, 200]


def test_what_costs_more_than_the_last_time_is_made_up_for():
    clock = Clock()
    allowance = Allowance(clock)
    assert allowance.due()  # the first is free
    for cost, again in ((1.0, 200.0), (0.01, 201.01), (2.0, 501.0), (0.5, 551.5)):
        clock.now += cost
        allowance.spent(cost)
        clock.now = again - 0.005
        assert not allowance.due()
        clock.now = again + 0.005
        assert allowance.due()
    assert allowance.seconds == pytest.approx(3.51)


@pytest.mark.usefixtures("_always")
def test_in_a_resumed_run_each_update_stands_once_and_in_order(tmp_path):
    run, settings = tmp_path / "run", config(log_every=1, checkpoint_every=50)
    for event in td3.train(settings, run):
        if event.step == 77 and isinstance(event, td3.Stepped):
            break
    event = None
    kept_lines = (run / "updates.jsonl").read_bytes()
    assert lines(run)[-1]["step"] == 77
    later = b"".join(
        json.dumps({"update": step - 30, "step": step}).encode() + b"\n" for step in (78, 79, 80)
    )  # as of a run that was killed after its last checkpoint
    (run / "updates.jsonl").write_bytes(kept_lines + later + b'{"update": 5')
    list(td3.resume(run))
    assert (run / "updates.jsonl").read_bytes().startswith(kept_lines)
    expected = [one for one in range(1, 131) if one != 48]  # the second of a pair whose first ended the stretch before
    assert [one["update"] for one in lines(run)] == expected
    assert [one["step"] for one in lines(run)] == [30 + one for one in expected]
    assert not list(verify(run).values())[-1]


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b"", 0),
        (b'{"step":1,"update":1}\n{"step":2,"update":2}\n', 2),
        (b'{"step":1,"update":1}\n{"step":2,"upd', 1),
        (b'{"step":1,"update":1}\nnonsense\n{"step":2,"update":2}\n', 1),
        (b'{"step":1,"update":1}\n{"step":"2","update":2}\n', 1),
        (b'{"step":1,"update":1}\n{"step":9,"update":9}\n{"step":2,"update":2}\n', 1),
        (b'{"step":1,"update":1}\n' + b"[" * 2_000_000 + b"\n", 1),
        (b"\x00" * 100, 0),
    ],
)
def test_a_torn_or_foreign_file_is_cut_at_its_first_line_that_is_none(data, left, tmp_path):
    path = tmp_path / "updates.jsonl"
    path.write_bytes(data)
    Recorder(path, config(), 5).close()
    assert path.read_bytes().splitlines() == data.splitlines()[:left]


@pytest.mark.parametrize("trick", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_is_neither_followed_nor_opened_and_the_run_goes_on(trick, tmp_path, monkeypatch):
    run, other = tmp_path / "run", tmp_path / "other"
    list(td3.train(config(steps=60, eval_every=0), run))
    place = run / "updates.jsonl"
    place.unlink()
    other.write_text("mine\n")
    {
        "link": lambda: place.symlink_to(other),
        "dangling link": lambda: place.symlink_to(tmp_path / "nowhere"),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
    }[trick]()
    opened, open_it = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *given, **at: (opened.append(path), open_it(path, *given, **at))[1])
    events = list(td3.resume(run, steps=90))
    assert "metrics.jsonl" in opened and not {place, place.name} & set(opened)
    assert events[-1].step == 90 and not any(isinstance(event, td3.SaveFailed) for event in events)
    assert other.read_text() == "mine\n" and not (tmp_path / "nowhere").exists()


def test_a_missing_file_is_begun_anew_and_a_removed_one_is_missed_by_nobody(tmp_path):
    run = tmp_path / "run"
    list(td3.train(config(steps=60, eval_every=0), run))
    assert lines(run)[0]["update"] == 1
    (run / "updates.jsonl").unlink()
    assert not list(verify(run).values())[-1]
    list(td3.resume(run, steps=90))
    assert [one["update"] for one in lines(run)] == [31, 32]


@pytest.mark.usefixtures("_always")
def test_a_line_that_cannot_be_written_whole_is_left_out_and_costs_nothing_else(tmp_path, monkeypatch):
    write, count = os.pwrite, 0

    def full(file, data, place):
        nonlocal count
        if not data.startswith(b'{"update":'):
            return write(file, data, place)
        count += 1
        if count == 2:
            raise OSError(28, "No space left on device")
        return write(file, data[:100] if count == 3 else data, place)

    monkeypatch.setattr(os, "pwrite", full)
    settings = config(log_every=1, eval_every=0, steps=40)
    events = list(td3.train(settings, tmp_path / "run"))
    assert not any(isinstance(event, td3.SaveFailed) for event in events) and events[-1].updates == 10
    assert [one["update"] for one in lines(tmp_path / "run")] == [1, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_without_room_for_its_copies_an_update_goes_untold_and_nothing_else_changes(moment, tmp_path, monkeypatch):
    def no_room(*_):
        raise MemoryError

    settings = config(log_every=1, eval_every=0, steps=60)
    plain = played(settings, tmp_path / "plain")
    if moment == "before":
        monkeypatch.setattr(recorded_update.Before, "of", no_room)
    else:
        monkeypatch.setattr(recorded_update, "_apart", no_room)
    assert played(settings, tmp_path / "run") == plain
    assert len(lines(tmp_path / "plain")) == 30 and lines(tmp_path / "run") == []


def test_threads_are_as_many_as_before_after_a_recorded_update(tmp_path):
    torch.set_num_threads(2)
    settings = Config(env="none", hidden=(8,), batch_size=4, buffer_size=300)
    recorder = Recorder(tmp_path / "updates.jsonl", settings, 0)
    learner = filled(Learner(Layout(3), 2, settings, 0))
    seen = []
    update = learner.update
    learner.update = lambda *given: (seen.append(torch.get_num_threads()), update(*given))[1]
    record(recorder, learner, 1, np.random.default_rng(0), np.random.default_rng(1), "torch")
    recorder.close()
    assert seen == [2] and torch.get_num_threads() == 2


# ---- images ----

IMAGES = (
    image_part("observation['left']", 3, 40, 24),
    image_part("observation['right']", 1, 12, 9),
    image_part("third", 1, 8, 8),
)
SEEING = {"hidden": (8,), "encoder_channels": (2, 3), "encoder_features": 5, "buffer_size": 200}


class Seeing(gymnasium.Env):
    """An image and two numbers, all random; ends after nine steps, every second time by time limit."""

    observation_space = spaces.Dict({"eye": spaces.Box(0, 255, (12, 10, 3), np.uint8), "ear": spaces.Box(-1, 1, (2,))})
    action_space = spaces.Box(-1, 1, (2,), np.float32)
    episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.episode = 0, self.episode + 1
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        over, ended = self.count == 9, self.episode % 2 == 0
        return self._seen(), float(action[0]), over and ended, over and not ended, {}

    def _seen(self):
        eye = self.np_random.integers(0, 256, (12, 10, 3), dtype=np.uint8)
        return {"eye": eye, "ear": self.np_random.uniform(-1, 1, 2).astype(np.float32)}


@pytest.mark.usefixtures("_always")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"random_shift": 2, "n_step": 3, "policy_delay": 1},
        {"random_shift": 3, "n_step": 2, "normalize_observations": True, "policy_delay": 3, "grey": True},
    ],
)
def test_recording_every_update_changes_no_bit_of_a_run_that_sees_images(settings, tmp_path):
    settings = {"env": Seeing, "steps": 100, "log_every": 1, "frame_stack": 3, **SEEING, **settings}
    recorded = played(config(**settings), tmp_path / "recorded")
    plain = played(config(**settings, record_updates=False), tmp_path / "plain")
    assert any("encoder" in name for name in recorded[0][0])
    assert recorded == plain
    written = lines(tmp_path / "recorded")
    assert [one["update"] for one in written] == list(range(1, 71))
    assert all(len(frames_of(one)) == 6 for one in written)


def frames_of(written):
    """By row: s and s', each a list of images (frames, height, width, channels)."""
    whole = zlib.decompress(base64.b64decode(written["images"]["frames"], validate=True))
    shapes, place, rows = [one["shown"] for one in written["images"]["pictures"]], 0, []
    for _ in written["rows"]["reward"]:
        rows.append(([], []))
        for shape, moment in [(shape, moment) for moment in (0, 1) for shape in shapes]:
            size = math.prod(shape)
            rows[-1][moment].append(np.frombuffer(whole[place : place + size], np.uint8).reshape(shape))
            place += size
    assert place == len(whole)
    return rows


def seeing(pictures=IMAGES, stack=1, numbers=0, rows=60, **settings):
    """A learner that remembers one episode of frames by rng."""
    layout, rng = layout_of(numbers, pictures, stack), np.random.default_rng(7)
    learner = Learner(layout, 2, Config(env="none", **{**SEEING, "batch_size": 16, **settings}), 0)
    frames = rng.integers(0, 256, (rows + 1, layout.frame), dtype=np.uint8)
    stacked = np.stack([frames[np.maximum(np.arange(n - stack + 1, n + 1), 0)] for n in range(rows + 1)])
    seen = layout.joined(stacked, rng.standard_normal((rows + 1, numbers)).astype(np.float32))
    action = rng.uniform(-1, 1, (rows, 2)).astype(np.float32)
    reward = rng.standard_normal(rows).astype(np.float32)
    learner.memory.add(Transitions.in_a_row(seen[:-1], action, reward, seen[1:], np.arange(rows) == rows - 1))
    return learner


def recorded_image_update(learner, path, count=1):
    """What the last of so many updates told, and the batch that it read."""
    recorder = Recorder(path / "updates.jsonl", learner.config, 0, clock=lambda: 0.0)
    for number in range(1, count + 1):
        drawn = learner.sample(np.random.default_rng(number), np.random.default_rng(1))
        batch = learner.load_batch(drawn)
        record(recorder, learner, number, np.random.default_rng(number), np.random.default_rng(1), "torch")
    recorder.close()
    return lines(path)[-1], batch, drawn


def shrunk_by_hand(image, square):
    """(channels, height, width) → (height, width, channels), each pixel the mean of a square of pixels."""
    channels, height, width = image.shape
    down, right = range(0, height, square), range(0, width, square)
    means = [
        [[image[one, y : y + square, x : x + square].mean() for one in range(channels)] for x in right] for y in down
    ]
    return np.rint(means)


@pytest.mark.parametrize("settings", [{}, {"random_shift": 2, "n_step": 3}])
def test_the_frames_told_are_those_the_networks_read_the_newest_few_of_the_first_images(settings, tmp_path):
    learner = seeing(stack=5, numbers=30, **settings)
    written, batch, _ = recorded_image_update(learner, tmp_path)
    assert [one["name"] for one in written["images"]["pictures"]] == ["observation['left']", "observation['right']"]
    assert [(one["channels"], one["height"], one["width"]) for one in written["images"]["pictures"]] == [
        (3, 40, 24),
        (1, 12, 9),
    ]
    assert [one["shown"] for one in written["images"]["pictures"]] == [[4, 20, 12, 3], [4, 12, 9, 1]]
    assert written["images"]["others"] == 1 and written["images"]["stack"] == 5
    assert written["images"]["random_shift"] == settings.get("random_shift", 0)
    assert written["observation_size"] == 30 and written["action_size"] == 2
    assert written["rows"]["discount"][0] == pytest.approx(0.99 ** settings.get("n_step", 1))
    shown = rows_to_show(batch.terminated.numpy() > 0)
    for place, (row, moments) in enumerate(zip(shown, frames_of(written), strict=True)):
        for name, (left, right) in zip(("observation", "next_observation"), moments, strict=True):
            bytes_read = getattr(batch, name)[row].numpy()
            stack = bytes_read[: 5 * learner.layout.frame].reshape(5, learner.layout.frame)
            for frame in range(4):
                first, second = stack[frame + 1][: 3 * 40 * 24], stack[frame + 1][3 * 40 * 24 : 3 * 40 * 24 + 12 * 9]
                assert (left[frame] == shrunk_by_hand(first.reshape(3, 40, 24), 2)).all()
                assert (right[frame][..., 0] == second.reshape(12, 9)).all()
            numbers = bytes_read[5 * learner.layout.frame :].view(np.float32)
            assert written["rows"][name][place] == pytest.approx(numbers[:24].tolist(), rel=1e-6)


@pytest.mark.parametrize(("channels", "stack", "first"), [(4, 1, 0), (4, 2, 4), (2, 3, 2), (12, 1, 8)])
def test_an_image_that_is_neither_grey_nor_coloured_is_told_channel_by_channel(channels, stack, first, tmp_path):
    learner = seeing((image_part("observation", channels, 8, 9),), stack)
    written, batch, _ = recorded_image_update(learner, tmp_path)
    (picture,) = written["images"]["pictures"]
    assert picture["shown"] == [4, 8, 9, 1]
    planes = batch.observation[0].numpy().reshape(-1, 8, 9)
    assert (frames_of(written)[0][0][0][..., 0] == planes[first : first + 4]).all()
    assert written["rows"]["observation"] == [[]] * 6 and written["observation_size"] == 0


@pytest.mark.parametrize(
    ("height", "width", "square", "small"),
    [(32, 32, 1, (32, 32)), (33, 8, 2, (17, 4)), (84, 84, 3, (28, 28)), (8, 100, 4, (2, 25)), (65, 64, 3, (22, 22))],
)
def test_a_large_image_is_averaged_to_thirty_two_pixels_at_most(height, width, square, small):
    pixels = np.random.default_rng(0).integers(0, 256, (3, height, width), dtype=np.uint8)
    found = averaged(pixels)
    assert found.dtype == np.uint8 and found.shape == (3, *small)
    assert (np.moveaxis(found, 0, 2) == shrunk_by_hand(pixels, square)).all()


def test_frames_that_s_and_its_successor_share_are_written_once_and_the_largest_line_is_short_enough(tmp_path):
    (tmp_path / "shared").mkdir()
    written, *_ = recorded_image_update(seeing((image_part("one", 1, 32, 32),), 4), tmp_path / "shared")
    different = {frame.tobytes() for row in frames_of(written) for (frames,) in row for frame in frames}
    assert len(different) <= 6 * 5  # of 6 × 8
    assert 1024 * len(different) < len(base64.b64decode(written["images"]["frames"])) < 1100 * len(different)
    (tmp_path / "largest").mkdir()
    learner = seeing((image_part("n" * 5_000, 3, 32, 32),) * 3, 4, numbers=30, n_step=9, random_shift=1)
    written, *_ = recorded_image_update(learner, tmp_path / "largest")
    assert 250_000 < (tmp_path / "largest" / "updates.jsonl").stat().st_size < 450_000 < LONGEST_LINE
    assert len(written["images"]["pictures"][1]["name"]) == 100


@pytest.mark.parametrize("count", [1, 2])
def test_the_encoders_gradient_and_how_far_it_and_its_target_moved_are_told_apart_from_the_critics(count, tmp_path):
    learner = seeing(stack=2, numbers=3)
    if count == 2:
        (tmp_path / "first").mkdir()
        recorded_image_update(learner, tmp_path / "first")
    before = [kept(one.encoder) for one in (learner.critics, learner.critic_targets)]
    heads = kept(learner.critics.layers)
    written, *_ = recorded_image_update(learner, tmp_path)
    after = [kept(one.encoder) for one in (learner.critics, learner.critic_targets)]
    found = [float(one.grad.double().square().sum()) for one in learner.critics.encoder.parameters()]
    assert written["gradient"]["encoder"] == pytest.approx(math.sqrt(sum(found)), rel=1e-4) and min(found) > 0
    for which in (0, 1):
        expected = math.sqrt(sum(float(one.grad[which].square().sum()) for one in learner.critics.layers.parameters()))
        assert written["gradient"][f"critic{which + 1}"] == pytest.approx(expected, rel=1e-4)
        expected = apart(heads, kept(learner.critics.layers), which)
        assert written["moved"][f"critic{which + 1}"] == pytest.approx(expected, rel=1e-6)
    assert written["moved"]["encoder"] == pytest.approx(apart(before[0], after[0]), rel=1e-6)
    assert written["moved"]["encoder"] > 0
    assert written["apart"]["encoder"] == pytest.approx(apart(*after), rel=1e-6)
    if count == 1:
        assert written["moved"]["encoder_target"] is None
    else:
        assert written["moved"]["encoder_target"] == pytest.approx(apart(before[1], after[1]), rel=1e-6)
        moved = written["moved"]["encoder_target"]
        assert moved / (moved + written["apart"]["encoder"]) == pytest.approx(0.005, rel=1e-3)
    assert written["images"]["parameters"] == sum(one.numel() for one in learner.critics.encoder.parameters())
    assert written["images"]["features"] == 5 * 3 + 3 == learner.actor.layers[0].in_features


def test_what_actor_and_critics_made_of_images_is_told_as_the_update_had_it(tmp_path):
    learner = seeing(stack=2, policy_delay=1)
    drawn = learner.sample(np.random.default_rng(1), np.random.default_rng(1))
    batch = learner.load_batch(drawn)
    with torch.no_grad():
        own_action = learner.actor(learner.critics.encoder(batch.observation))
        target_action = learner.actor_target(learner.critic_targets.encoder(batch.next_observation))
    written, *_ = recorded_image_update(learner, tmp_path)
    shown = rows_to_show(batch.terminated.numpy() > 0)
    assert np.array(written["rows"]["own_action"]) == pytest.approx(own_action[shown].numpy(), rel=1e-5)
    assert np.array(written["rows"]["target_action"]) == pytest.approx(target_action[shown].numpy(), rel=1e-5)
    assert np.array(written["batch"]["histogram"]).sum() == 2 * 16


def test_ages_and_places_of_frames_count_moments_of_which_an_episode_has_one_more(tmp_path):
    written, _, drawn = recorded_image_update(seeing(stack=2, rows=60), tmp_path)
    ages = 60 - drawn.indices  # the beginning is place 0
    assert written["memory"] == {"rows": 60, "capacity": 200, "mean_age": ages.mean(), "oldest_age": 60}
    assert written["images"]["transition_bytes"] == bytes_per_transition(layout_of(0, IMAGES, 2), 2)


def test_frames_are_told_without_any_library_for_images(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    written, *_ = recorded_image_update(seeing(), tmp_path)
    assert len(frames_of(written)) == 6


def test_a_record_of_numbers_alone_has_nothing_of_images(tmp_path, monkeypatch):
    *_, written, _ = tiny_record("torch", tmp_path, monkeypatch, 2)
    assert list(written) == [
        *("update", "step", "delayed", "engine", "settings", "observation_size", "action_size", "memory", "rows"),
        *("critic_loss", "actor_loss", "gradient", "moved", "apart", "batch"),
    ]
    assert list(written["rows"])[:7] == [
        *("row", "observation", "action", "reward", "next_observation", "terminated", "discount")
    ]
    assert list(written["gradient"]) == ["critic1", "critic2", "actor"] and list(written["memory"])[-1] == "oldest_age"
    assert "encoder" not in written["moved"] and list(written["apart"]) == ["actor", "critic1", "critic2"]


# ---- what an evaluation tells besides ----


def test_an_evaluation_tells_the_discounted_return_and_what_the_critic_promised():
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    from td3.environments import make_envs
    from td3.evaluation import play_episodes

    policy = lambda o: np.full((len(o), 2), 0.25, np.float32)
    value = lambda o, a: (o[:, 2] * 100 + a[:, 0]).astype(np.float32)  # of a step that is not the first: 100 and more
    envs = make_envs(Counting)
    evaluation = play_episodes(envs, policy, [1, 2], 0.5, value)
    envs.close()
    assert evaluation.lengths == (3, 5) and evaluation.returns == (0.75, 1.25)
    assert evaluation.discounted == (0.25 * 1.75, 0.25 * 1.9375) and evaluation.predicted == (0.25, 0.25)
    for mode in AutoresetMode:
        envs = make_envs(lambda mode=mode: SyncVectorEnv([Counting] * 3, autoreset_mode=mode))
        evaluation = play_episodes(envs, policy, [1, 2, 3, 4, 5], 0.5, value)
        envs.close()
        assert evaluation.predicted == (0.25,) * 5
        assert evaluation.discounted == tuple(0.5 * (1 - 0.5**length) for length in evaluation.lengths)
    envs = make_envs(Counting)
    without = play_episodes(envs, policy, [1])
    envs.close()
    assert without.predicted == () and without.discounted == without.returns


@pytest.mark.parametrize("engine", BOTH)
def test_the_first_critics_value_is_asked_and_not_the_seconds(engine, monkeypatch):
    monkeypatch.setattr(tiny, "Learner", ENGINES[engine])
    learner = tiny.tiny()
    seen, action = np.float32([[0.5], [1.0]]), np.float32([[0.25], [-1.0]])
    assert learner.value(seen, action).tolist() == [2.75, 2.0]
    assert learner.updates == 0


def test_the_record_has_promise_and_truth_and_an_agent_alone_has_no_promise(tmp_path):
    run = tmp_path / "run"
    events = list(td3.train(config(env=lambda: Probe("endless"), gamma=0.5, eval_every=80), run))
    rows = [row for row in read_metrics(run / "metrics.jsonl") if "eval/mean_return" in row]
    assert [row["eval/discounted_return"] for row in rows] == [1.9375, 1.9375]
    promised = [event.evaluation.predicted for event in events if isinstance(event, td3.Evaluated)]
    assert [row["eval/predicted_q"] for row in rows] == [float(np.mean(one)) for one in promised]
    assert [len(one) for one in promised] == [2, 2] and promised[0] != promised[1]
    evaluation = td3.evaluate(td3.load(run, env=lambda: Probe("endless")), episodes=3)
    assert evaluation.predicted == () and evaluation.discounted == (1.9375,) * 3


# ---- networks that cannot fit ----


def test_networks_that_cannot_fit_are_refused_before_any_of_them_is_made():
    def never(*_):
        raise AssertionError("gigabytes would have been touched")

    for engine in ENGINES:
        with pytest.raises(td3.ConfigError) as refusal:
            make_learner(engine, Config(env="none", hidden=(65_536, 65_536)), Layout(3), 1, never)
        assert str(refusal.value).startswith("hidden and batch_size must be smaller here: layers of 65536,65536 and ")
        assert str(refusal.value).count(". ") == 0 and "has room for" in str(refusal.value)


def test_the_bytes_of_six_networks_are_counted():
    settings = Config(env="none", hidden=(4, 5), batch_size=10, record_updates=False)
    actor, critic = 3 * 4 + 4 + 4 * 5 + 5 + 5 * 2 + 2, 5 * 4 + 4 + 4 * 5 + 5 + 5 + 1
    learner = Learner(Layout(3), 2, settings, 0)
    assert sum(one.numel() for one in learner.actor.parameters()) == actor
    assert sum(one.numel() for one in learner.critics.parameters()) == 2 * critic
    assert bytes_of_networks("torch", settings, Layout(3), 2) == 4 * (5 * (actor + 2 * critic) + 7 * 10 * 9)
    assert bytes_of_networks("native", settings, Layout(3), 2) == 4 * (7 * (actor + 2 * critic) + 7 * 10 * 9)
    assert bytes_of_networks("native", Config(env="none", hidden=(4, 5), batch_size=10), Layout(3), 2) == 4 * (
        10 * (actor + 2 * critic) + 7 * 10 * 9
    )
