"""What a resumed run must be, in numbers, for the mutants: pytest runs none of this by itself."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from example_envs import Drifting
from refusals import refusal
from sessions import bytes_of

import td3
from td3.config.trust import immodest
from td3.loop import advance, collect
from td3.replay import Memory
from td3.session import Session
from td3.storage import read_metrics
from td3.types import Layout, Transitions

CONFIG = td3.Config(
    env=Drifting, steps=90, warmup_steps=20, hidden=(8, 8), batch_size=8, num_envs=2, n_step=3, buffer_size=60,
    normalize_observations=True, update_schedule="episode", update_after=0, policy_delay=3, engine="torch", threads=1,
    log_every=20, eval_every=30, eval_episodes=1, checkpoint_every=40, film=False, record_updates=False,
)  # fmt: skip
OWED = (48, 72)  # two environments, episodes of 12 steps
STOPS = (26, 48, 52, 62, 72)  # before and after the ring is full, in the middle and at the end of episodes


def play(session, until):
    """Plays on to a step, or to the end, and saves there; at a step that ends episodes, before its updates."""
    for event in advance(session, CONFIG.steps):
        if isinstance(event, td3.Stepped) and event.step >= until - 2 * (until in OWED):
            break
    if until in OWED:
        collect(session)
        assert session.progress.pending.ended
    session.save()


def end_of(session, run):
    """All that a run is at its end, but for the time it took."""
    session.close()
    state = {name: value for name, value in session.capture().state.items() if name != "seconds"}
    rows = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in read_metrics(run / "metrics.jsonl")]
    return *bytes_of(session), state["replay"], state["smoothing"], state["playing"]["chance"], state["due"], rows


def stopped_often(run):
    session = Session(CONFIG, run)
    for stop in STOPS:
        play(session, stop)
        session.close()
        session = Session.resumed(run, {}, Drifting, False)
    play(session, CONFIG.steps)
    return end_of(session, run)


def never_stopped(run):
    session = Session(CONFIG, run)
    play(session, CONFIG.steps)
    return end_of(session, run)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path):
    names = "networks and optimizers", "memory", "replay", "smoothing", "exploration", "due", "metrics"
    for name, mine, other in zip(names, stopped_often(tmp_path / "often"), EXPECTED, strict=True):
        assert mine == other, name


def test_the_settings_of_a_run_go_on_with_it(tmp_path):
    session = Session(replace(CONFIG, gamma=0.9, tau=0.02), tmp_path / "run")
    play(session, 10)
    session.close()
    again = Session.resumed(tmp_path / "run", {}, Drifting, False)
    again.close()
    assert (again.config.gamma, again.config.tau, again.config.steps) == (0.9, 0.02, 90)


def test_no_look_ahead_crosses_rows_that_are_missing():
    memory = Memory(20, Layout(1), 1, n_step=3, gamma=0.5)
    n = np.arange(4, dtype=np.float32)[:, None]
    rows = Transitions.in_a_row(n, n, n[:, 0], n + 1, np.zeros(4, bool))
    memory.add(rows._replace(first=np.array([True, False, False, False]), env=np.zeros(4, np.int32)))
    memory.break_links()
    memory.add(rows._replace(first=np.zeros(4, bool), env=np.zeros(4, np.int32)))
    assert memory.batch(np.arange(8)).discount.tolist() == [0.125, 0.125, 0.25, 0.5, 0.125, 0.125, 0.25, 0.5]


def test_a_run_names_code_and_many_processes_in_vain(tmp_path):
    session = Session(CONFIG, tmp_path / "run")
    play(session, 10)
    session.close()
    with refusal(td3.ConfigError, "env", "example_envs:Drifting", "--trust"):
        Session.resumed(tmp_path / "run", {}, None, False).close()
    assert immodest(replace(CONFIG, num_envs=1_024)) == "" != immodest(replace(CONFIG, num_envs=1_025))


with tempfile.TemporaryDirectory() as _folder:  # as this file is loaded, before any mutant is put in
    EXPECTED = never_stopped(Path(_folder) / "never")
