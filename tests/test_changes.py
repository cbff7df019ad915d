"""Settings that change during a run: they reach both engines at the next step, and a resumed run has them."""

import json

import numpy as np
import pytest
import runs
from engines import BOTH, needs_native

import td3
from td3.config import Config
from td3.loop import advance
from td3.session import Session

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
