"""The run folder: plain data, whole checkpoints, nothing executed because a file says so."""

import json
import sys

import gymnasium
import numpy as np
import pytest
from example_envs import Counting, with_actions
from refusals import check_names, refusal

import td3
from bench.forging import forge
from td3.config import Config
from td3.session import Session
from td3.storage import RunFolder, read_metrics
from td3.storage.checkpoint import find
from td3.views.cli import main

SETTINGS = {
    "hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "log_every": 20, "eval_episodes": 2,
    "film": False,
}  # fmt: skip


def make_run(folder, env="Pendulum-v1", **settings):
    given = {"steps": 100, "eval_every": 40, "checkpoint_every": 30, **SETTINGS, **settings}
    events = list(td3.train(Config(env=env, **given), folder))
    return folder, events


def test_a_run_folder_says_how_it_was_made_and_holds_what_was_learned(tmp_path):
    run, events = make_run(tmp_path / "run", seed=5)
    assert sorted(one.name for one in run.iterdir()) == [
        "checkpoints", "config.json", "lock", "memory", "metrics.jsonl", "updates.jsonl", "versions.json",
    ]  # fmt: skip
    config = json.loads((run / "config.json").read_text())
    assert config["env"] == "Pendulum-v1" and config["seed"] == 5 and config["hidden"] == [8]
    assert Config.from_data(config) == Config(
        env="Pendulum-v1", seed=5, steps=100, eval_every=40, checkpoint_every=30, **SETTINGS
    )
    versions = json.loads((run / "versions.json").read_text())
    assert {"td3", "python", "torch", "numpy", "gymnasium", "mujoco"} <= set(versions)
    assert str(tmp_path) not in "".join(one.read_text() for one in run.glob("*.json*"))
    kept = [one.step for one in find(run)[0]]
    saved = [event.step for event in events if isinstance(event, td3.Saved)]
    best = max((event.evaluation.mean, event.step) for event in events if isinstance(event, td3.Evaluated))[1]
    assert kept == sorted({best, *saved[-2:]}) and saved[-1] == 100


def test_the_record_has_every_metric_at_its_step(tmp_path):
    run, events = make_run(tmp_path / "run", steps=250)
    rows = list(read_metrics(run / "metrics.jsonl"))
    evaluated = {row["step"]: row["eval/mean_return"] for row in rows if "eval/mean_return" in row}
    assert evaluated == {e.step: e.evaluation.mean for e in events if isinstance(e, td3.Evaluated)}
    assert list(evaluated) == [40, 80, 120, 160, 200, 240, 250]
    trained = [row["step"] for row in rows if "train/critic_loss" in row]
    assert trained == [*range(40, 250, 20), 250]
    episodes = [(row["rollout/ep_return"], row["rollout/ep_length"]) for row in rows if "rollout/ep_return" in row]
    assert episodes == [(e.episode_return, e.length) for e in events if isinstance(e, td3.EpisodeEnded)]


def test_a_torn_last_line_is_passed_over_and_nan_is_null(tmp_path):
    from td3.storage.record import Record

    record = Record(tmp_path / "m.jsonl")
    record.write(1, {"a": float("nan"), "b": 2.0})
    record.close()
    with (tmp_path / "m.jsonl").open("ab") as file:
        file.write(b'{"step": 2, "a"')
    assert list(read_metrics(tmp_path / "m.jsonl")) == [{"step": 1, "a": None, "b": 2.0}]


def test_a_loaded_agent_acts_as_the_one_that_was_saved_in_the_environments_units(tmp_path):
    agent = td3.TD3(lambda: with_actions([-3, 5], [7, 5]), **SETTINGS, eval_every=0, seed=1).learn(60)
    agent.save(tmp_path / "odd")
    loaded = td3.load(tmp_path / "odd")
    for seen in np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32):
        action = loaded.act(seen)
        assert (action == agent.predict(seen)[0]).all() and agent.predict(seen)[1] is None
        assert -3 <= action[0] <= 7 and action[1] == 5 and action.dtype == np.float32
    batch = np.zeros((4, 2), np.float32)
    assert loaded.act(batch).shape == (4, 2)
    assert loaded.act(batch)[3] == pytest.approx(loaded.act(batch[0]))


def test_a_folder_can_be_moved_and_evaluated_and_the_same_seed_gives_the_same_returns(tmp_path):
    run, _ = make_run(tmp_path / "run")
    moved = run.rename(tmp_path / "elsewhere")
    first, second = (td3.evaluate(td3.load(moved), episodes=3, seed=2) for _ in range(2))
    assert first == second and first.episodes == 3 and first.mean == pytest.approx(np.mean(first.returns))
    assert td3.evaluate(td3.load(moved), episodes=3, seed=3) != first


def test_best_last_and_numbered_checkpoints_can_be_chosen(tmp_path):
    run, _ = make_run(tmp_path / "run", eval_every=0, checkpoint_every=0, steps=1)
    session = Session.resumed(run, {}, None, False)
    for score in (-5.0, -1.0, -3.0, None, -2.0):
        session.collector.collect(session.learner.act)
        session.learner.memory.written += 1
        session.progress.last_evaluation = None if score is None else (session.step, score)
        session.save()
    session.close()
    folder = RunFolder.open(run)
    assert [(one.step, one.score) for one in find(run)[0]] == [(3, -1.0), (5, None), (6, -2.0)]
    assert [folder.newest(lambda one: one.step, which)[1] for which in ("last", "best", "5")] == [6, 3, 5]
    with refusal(td3.ConfigError, "checkpoint", "4", "last", "best", 3, 5, 6):
        folder.newest(lambda one: one.step, "4")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "diary.txt").write_text("mine")
    with refusal(td3.ConfigError, "run", str(tmp_path / "run"), "empty"):
        make_run(tmp_path / "run")
    assert [one.name for one in (tmp_path / "run").iterdir()] == ["diary.txt"]


EVIL = """
from pathlib import Path
Path(__file__).with_name("canary").touch()
"""


def test_opening_a_strangers_run_imports_nothing_it_names(tmp_path, monkeypatch):
    run, _ = make_run(tmp_path / "run")
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.syspath_prepend(tmp_path)
    forge(run, lambda state: state["config"].update(env="evil:Env-v0"))
    agent = td3.load(run)
    assert agent.act(np.zeros(3, np.float32)).shape == (1,)
    with refusal(td3.ConfigError, "env", "evil:Env-v0", "--trust"):
        td3.evaluate(agent)
    for command in ("evaluate", "resume"):
        assert main([command, str(run)]) == 2
    assert main(["verify", str(run)]) == 0
    assert not (tmp_path / "canary").exists() and "evil" not in sys.modules
    assert td3.evaluate(td3.load(run, env="Pendulum-v1"), episodes=1).episodes == 1


def test_the_short_way_learns_predicts_saves_and_loads(tmp_path):
    agent = td3.TD3("Pendulum-v1", seed=0, **SETTINGS).learn(40).learn(30)
    env = gymnasium.make("Pendulum-v1")
    seen, _ = env.reset(seed=0)
    action, state = agent.predict(seen)
    assert env.action_space.contains(action) and state is None
    noisy = np.stack([agent.predict(seen, deterministic=False)[0] for _ in range(200)])
    assert noisy.std() == pytest.approx(0.2, rel=0.2)  # 0.1 of the half range 2
    agent.save(tmp_path / "kept")
    again = td3.TD3.load(tmp_path / "kept")
    assert (again.predict(seen)[0] == action).all() and again.config.seed == 0
    assert td3.evaluate(again, episodes=1) == td3.evaluate(agent, episodes=1)
    again.learn(30), agent.learn(30)
    assert (again.predict(seen)[0] == agent.predict(seen)[0]).all()  # it went on exactly where it was saved
    assert (again.predict(seen)[0] != action).any()


def test_an_environment_of_ones_own_needs_no_registration(tmp_path):
    run, _ = make_run(tmp_path / "run", env=Counting)
    assert json.loads((run / "config.json").read_text())["env"] == "example_envs:Counting"
    with refusal(td3.ConfigError, "env", "example_envs:Counting", "--trust"):
        td3.evaluate(td3.load(run))
    assert td3.evaluate(td3.load(run, env=Counting), episodes=2).lengths == (3, 5)


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(capsys):
    nowhere = "/proc/1/run"  # where even root may not write
    with refusal(td3.ConfigError, "run", nowhere):
        make_run(nowhere)
    assert main(["train", "--run", nowhere]) == 2
    check_names(capsys.readouterr().err, "run", nowhere)
