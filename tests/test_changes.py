"""Settings that change during a run: they reach both engines at the next step, and a resumed run has them."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import runs
from engines import BOTH, needs_native
from refusals import refusal

import td3
from td3.config import Config
from td3.learner import making
from td3.loop import advance
from td3.metrics import CHANGED
from td3.schedule import CHANGEABLE, RESUMABLE
from td3.session import Session
from td3.storage import read_metrics

SMALL = {**runs.SMALL, "steps": 90, "buffer_size": 1_000, "eval_every": 0, "checkpoint_every": 30, "threads": 1}
CHANGES = {
    "actor_lr": 1e-2,
    "critic_lr": 1e-2,
    "gamma": 0.5,
    "tau": 0.5,
    "policy_delay": 1,
    "target_noise": 1.0,
    "noise_clip": 0.01,
    "exploration_noise": 1.0,
    "batch_size": 8,
}


def ends(engine, change=None, at=60, run=None):
    training = td3.train(Config(**SMALL, engine=engine), run)
    for event in training:
        if change and isinstance(event, td3.Stepped) and event.step == at:
            training.change(**change)
    networks = training.learner.networks().values()
    return [tensor.detach().clone() for network in networks for tensor in network.parameters()]


def differ(one, other):
    return any((x != y).any() for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_setting_reaches_the_next_update(name, engine):
    assert differ(ends(engine), ends(engine, {name: CHANGES[name]}))


@pytest.mark.parametrize("engine", BOTH)
def test_a_setting_changed_to_what_it_was_changes_no_bit(engine):
    config = Config(**SMALL)
    assert not differ(ends(engine), ends(engine, {name: getattr(config, name) for name in CHANGES}))


@needs_native
def test_both_engines_learn_alike_after_every_change():
    native, page = ends("native", CHANGES), ends("torch", CHANGES)
    for one, other in zip(native, page, strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("engine", BOTH)
def test_a_resumed_run_has_the_changed_settings_to_the_bit(engine, tmp_path):
    whole = ends(engine, CHANGES, at=30, run=tmp_path / "whole")  # at a checkpoint that was saved before the change
    training = td3.train(Config(**SMALL, engine=engine), tmp_path / "stopped")
    for event in training:
        if isinstance(event, td3.Stepped) and event.step == 30:
            training.change(**CHANGES)
            break
    training.close()
    session = Session.resumed(tmp_path / "stopped", {}, None, False)
    assert session.config.gamma == session.learner.memory.gamma == 0.5
    assert session.learner.actor_optimizer.param_groups[0]["lr"] == 1e-2
    list(advance(session, 90))
    networks = session.learner.networks().values()
    assert not differ(whole, [tensor.detach() for network in networks for tensor in network.parameters()])
    session.close()


@pytest.mark.parametrize(("name", "value"), [("n_step", 3), ("hidden", (4,)), ("seed", 1), ("gama", 0.9)])
def test_what_cannot_change_during_a_run_is_refused_by_name_and_value(name, value):
    training = td3.train(Config(**SMALL))
    next(training)
    with pytest.raises(td3.ConfigError) as refused:
        training.change(**{name: value})
    assert str(refused.value).startswith(name) and repr(value) in str(refused.value)
    training.close()


def test_a_value_out_of_range_changes_nothing():
    training = td3.train(Config(**SMALL))
    next(training)
    with pytest.raises(td3.ConfigError, match="tau"):
        training.change(gamma=0.5, tau=3.0)
    assert training.config == Config(**SMALL) and training.learner.memory.gamma == Config(**SMALL).gamma
    training.close()


def test_a_run_that_has_not_begun_says_so():
    training = td3.train(Config(**SMALL))
    with pytest.raises(td3.ConfigError, match="begins with its first event"):
        training.change(tau=0.1)
    assert repr(training) == "<td3.Training that has not begun>"


@pytest.mark.parametrize("kind", [td3.Stepped, td3.Finished])
def test_a_change_after_the_last_checkpoint_is_saved_too(kind, tmp_path):
    with td3.train(Config(**SMALL), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, kind) and event.step == 90:
                training.change(actor_lr=1e-5)
    session = Session.of(tmp_path / "run", None)
    assert session.config.actor_lr == 1e-5
    session.close()
    with pytest.raises(td3.ConfigError, match=r"actor_lr .*ended"):
        training.change(actor_lr=1e-4)


def test_leaving_a_with_block_saves_and_frees_the_folder(tmp_path):
    with td3.train(Config(**SMALL), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == 45:
                break
    assert td3.load(tmp_path / "run").step == 45
    assert list(td3.resume(tmp_path / "run"))[-1].step == 90


def test_the_recorder_follows_a_changed_delay(tmp_path):
    with td3.train(Config(**{**SMALL, "steps": 300, "log_every": 10}), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == 25:
                training.change(policy_delay=50)
    recorded = [json.loads(line)["update"] for line in (tmp_path / "run" / "updates.jsonl").read_text().splitlines()]
    longest = max(len(run) for run in np.split(recorded, np.flatnonzero(np.diff(recorded) > 1) + 1))
    assert 1 <= longest <= 4


# --- Settings that change when a run is resumed -----------------------------------------------------------------------

OTHERS = {
    "stop_at": 1e9,
    "stop_after": 50,
    "stop_when_sick": True,
    "workers": 0,
    "worker_timeout": 5.0,
    "restart_failed": 2,
    "diagnose": True,
    "eval_every": 45,
    "eval_episodes": 2,
    "checkpoint_every": 20,
    "keep_last": 3,
    "keep_best": 0,
    "log_every": 10,
    "record_updates": False,
    "film": False,
    "engine": "torch",
    "threads": 1,
}


def stopped_at(step, run, **settings):
    with td3.train(Config(**SMALL | settings), run) as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == step:
                break
    return run


def changes_in(run):
    return [(row["step"], row[CHANGED]) for row in read_metrics(run / "metrics.jsonl") if CHANGED in row]


def test_every_setting_that_may_change_is_tried_here():
    assert {*CHANGES, *OTHERS, "steps"} == set(RESUMABLE) and len(set(RESUMABLE)) == len(RESUMABLE)
    assert set(CHANGEABLE) < set(RESUMABLE)


def test_the_document_of_runs_names_what_may_change():
    text = (Path(__file__).parents[1] / "docs/runs.md").read_text().partition("## Settings that may change")[2]
    between, at_resume = (re.findall(r"`(\w+)`", part) for part in text.split("\n- ")[1:3])
    assert between == list(CHANGEABLE)
    assert {*between, *at_resume} == set(RESUMABLE)


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_changed_by_resume_acts_like_one_changed_between_two_steps(name, engine, tmp_path):
    run = stopped_at(50, tmp_path / "run", engine=engine)
    training = td3.resume(run, **{name: CHANGES[name]})
    list(training)
    networks = training.learner.networks().values()
    resumed = [tensor.detach() for network in networks for tensor in network.parameters()]
    assert not differ(resumed, ends(engine, {name: CHANGES[name]}, at=50))
    assert changes_in(run) == [(50, {name: [getattr(Config(**SMALL), name), CHANGES[name]]})]


def test_every_change_is_said_stands_in_the_record_and_stays(tmp_path):
    run, changes = stopped_at(50, tmp_path / "run", eval_every=40, engine="auto", diagnose=False), {**CHANGES, **OTHERS}
    old = Config(**SMALL | {"eval_every": 40, "diagnose": False})
    changed = {name: [getattr(old, name), value] for name, value in changes.items() if getattr(old, name) != value}
    events = list(td3.resume(run, steps=200, **changes))
    noted = [event.note for event in events if isinstance(event, td3.Noted)]
    assert [(note.split()[0], event.step) for note, event in zip(noted, events[2:], strict=False)] == [
        (name, 50) for name in RESUMABLE if name in changed
    ]
    assert changes_in(run) == [(50, changed)]
    assert "actor_lr was 0.001, and is 0.01 from here on." in noted
    session = Session.of(run, None)
    assert {name: getattr(session.config, name) for name in changes} == changes and session.config.steps == 200
    session.close()
    rows = [row for row in read_metrics(run / "metrics.jsonl") if row["step"] > 50]
    assert [row["step"] for row in rows if "train/critic_loss" in row] == list(range(60, 201, 10))
    assert [row["step"] for row in rows if "eval/mean_return" in row] == [90, 135, 180, 200]
    assert len(next(row for row in rows if "eval/returns" in row)["eval/returns"]) == 2
    assert [int(path.name[:9]) for path in sorted((run / "checkpoints").iterdir())] == [160, 180, 200]


def test_a_run_resumed_with_changes_and_killed_again_ends_with_the_same_bytes(tmp_path):
    changes = {"actor_lr": 1e-2, "batch_size": 8, "eval_every": 30, "log_every": 15}
    whole, killed = (stopped_at(50, tmp_path / name) for name in ("whole", "killed"))
    list(td3.resume(whole, **changes))
    with td3.resume(killed, **changes) as training:
        next(training)  # the change is saved before the first step
    shutil.copytree(killed, tmp_path / "copy")
    list(td3.resume(killed))
    for event in td3.resume(tmp_path / "copy"):
        if event.step == 71:
            break
    list(td3.resume(tmp_path / "copy"))
    assert runs.contents(killed) == runs.contents(whole) == runs.contents(tmp_path / "copy")


def test_worker_processes_come_and_go_without_a_changed_bit(tmp_path):
    settings = {"num_envs": 2, "steps": 100}
    list(td3.train(Config(**SMALL | settings), tmp_path / "whole"))
    run = stopped_at(50, tmp_path / "run", **settings)
    with td3.resume(run, workers=2) as training:
        for event in training:
            if event.step == 74:
                break
    list(td3.resume(run, workers=0))
    one, other = runs.contents(run), runs.contents(tmp_path / "whole")
    assert one[:2] == other[:2] and changes_in(run) == [(50, {"workers": [0, 2]}), (74, {"workers": [2, 0]})]


def test_threads_that_are_left_to_td3_again_are_not_those_of_before(tmp_path, monkeypatch):
    monkeypatch.setattr(making, "cores", lambda: 4)
    run = stopped_at(50, tmp_path / "run", engine="torch", threads=2)
    assert [next(td3.resume(run)).summary["threads"], next(td3.resume(run, threads=0)).summary["threads"]] == [2, 3]


def test_what_is_set_to_what_it_was_is_no_change_and_a_goal_is_none_either(tmp_path):
    run = stopped_at(50, tmp_path / "run")
    events = list(td3.resume(run, steps=100, tau=Config(**SMALL).tau, log_every=20))
    assert changes_in(run) == [] and not [event for event in events if isinstance(event, td3.Noted)]


def test_a_run_without_a_checkpoint_takes_changes_too(tmp_path):
    Session(Config(**SMALL), tmp_path / "run").close()
    *_, finished = td3.resume(tmp_path / "run", actor_lr=0.5)
    assert finished.step == 90 and changes_in(tmp_path / "run") == [(0, {"actor_lr": [0.001, 0.5]})]


@pytest.mark.parametrize(("name", "value"), [("n_step", 3), ("hidden", (4,)), ("seed", 1), ("warmup_steps", 5)])
def test_what_a_resumed_run_cannot_change_is_refused_with_what_can(name, value, tmp_path):
    run = stopped_at(50, tmp_path / "run")
    with refusal(td3.ConfigError, name, value, "actor_lr", "eval_every", "stop_at"):
        td3.resume(run, **{name: value})
    with refusal(td3.ConfigError, "lr", 0.1, "actor_lr", "critic_lr"):
        td3.resume(run, lr=0.1)
    with refusal(td3.ConfigError, "tau", 3.0):
        td3.resume(run, tau=3.0)


def test_a_change_between_two_steps_stands_in_the_record(tmp_path):
    with td3.train(Config(**SMALL), tmp_path / "run") as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step in (40, 60):
                training.change(tau=0.5, gamma=training.config.gamma, stop_when_sick=event.step == 60)
    assert changes_in(tmp_path / "run") == [(40, {"tau": [0.005, 0.5]}), (60, {"stop_when_sick": [False, True]})]
    assert training.config.stop_when_sick
