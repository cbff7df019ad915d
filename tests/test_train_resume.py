"""`td3 train --run DIR --resume`: one command that begins a run, continues it, and says that it is finished."""

import json
import shutil
from pathlib import Path

import pytest
import runs
from refusals import check_names

import td3
from td3.config import Config
from td3.metrics import CHANGED
from td3.session import Session
from td3.storage import read_metrics
from td3.views import cli

SETTINGS = {"warmup_steps": 20, "hidden": (8, 8), "batch_size": 8, "eval_every": 30, "eval_episodes": 1}
QUICK = "--warmup-steps 20 --hidden 8,8 --batch-size 8 --eval-every 30 --eval-episodes 1 --threads 1 --no-film"
COMMAND = ["train", "Pendulum-v1", "--steps", "90", *QUICK.split(), "--run", "run", "--resume"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, words, code=0):
    assert cli.main(words) == code
    return capsys.readouterr().err


def killed_at(step, run, **settings):
    """A run that was saved and left at this step, begun as COMMAND would begin it."""
    with td3.train(Config(**{"steps": 90, "threads": 1, "film": False, **SETTINGS, **settings}), run) as training:
        for event in training:
            if isinstance(event, td3.Stepped) and event.step == step:
                break


@pytest.mark.parametrize("empty", [True, False])
def test_the_same_command_begins_continues_and_is_done(empty, place, capsys):
    if empty:
        Path("run").mkdir()  # as a job script may make it
    said(capsys, COMMAND)
    whole = runs.contents(Path("run"))
    shutil.rmtree("run")
    killed_at(40, "run")
    text = said(capsys, COMMAND)
    assert "Continuing from step 40." in text and "Done: 90 steps" in text
    assert runs.contents(Path("run")) == whole
    assert "The run is finished: 90 steps" in said(capsys, COMMAND)
    assert cli.main([*COMMAND, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 90
    assert runs.contents(Path("run")) == whole


def test_it_begins_again_what_was_stopped_before_its_first_checkpoint(place, capsys):
    Session(Config(steps=90, threads=1, film=False, **SETTINGS), "run").close()
    assert "Done: 90 steps" in said(capsys, COMMAND)


def test_a_larger_goal_extends_and_a_smaller_one_does_not_shorten(place, capsys):
    said(capsys, COMMAND)
    assert "Done: 120 steps" in said(capsys, [*COMMAND, "--steps", "120"])
    assert "finished: 120 steps" in said(capsys, COMMAND)
    assert "finished: 120 steps" in said(capsys, ["train", "--run", "run", "--resume"])  # nothing is given


def test_a_run_that_stopped_by_itself_says_so(place, capsys):
    command = [*COMMAND, "--stop-at", "-1e6"]
    for _ in range(2):
        assert "Stopped by --stop-at at step 30 of 90" in said(capsys, command)
    assert td3.load("run").step == 30


@pytest.mark.parametrize(
    ("words", "name", "value", "was", "way"),
    [
        (["--actor-lr", "0.5"], "actor_lr", 0.5, 0.001, "td3 resume"),
        (["--hidden", "4,4"], "hidden", [4, 4], [8, 8], "begin a new run"),
        (["--seed", "7"], "seed", 7, 0, "begin a new run"),
        (["--env-arg", "g=5.0"], "env_args", {"g": 5.0}, {}, "begin a new run"),
    ],
)
def test_a_setting_that_is_not_the_runs_is_refused_by_both_values(words, name, value, was, way, place, capsys):
    killed_at(40, "run")
    text = said(capsys, [*COMMAND, *words], code=2)
    check_names(text.removeprefix("td3: "), name, value, was, "run", way)
    assert td3.load("run").step == 40


def test_another_environment_is_refused(place, capsys):
    killed_at(40, "run")
    text = said(capsys, ["train", "Hopper-v5", *COMMAND[2:]], code=2)
    check_names(text, "env", "Hopper-v5", "Pendulum-v1")


def test_what_was_changed_since_the_run_began_stays_when_the_first_command_comes_again(place, capsys):
    killed_at(40, "run", actor_lr=0.002)
    list(td3.resume("run", actor_lr=0.01, steps=60))
    killed = said(capsys, [*COMMAND, "--actor-lr", "0.002"])  # as it was begun
    assert "Done: 90 steps" in killed
    said(capsys, [*COMMAND, "--actor-lr", "0.01"])  # as it is now
    changes = [row[CHANGED] for row in read_metrics(Path("run/metrics.jsonl")) if CHANGED in row]
    assert changes == [{"actor_lr": [0.002, 0.01]}]


def test_an_edited_config_json_changes_nothing(place, capsys):
    killed_at(40, "run")
    Path("run/config.json").write_text("{")
    assert "Done: 90 steps" in said(capsys, COMMAND)


def test_an_environment_that_is_named_again_needs_no_trust(place, capsys, monkeypatch):
    Path("requeued_env.py").write_text(
        "from gymnasium.envs.classic_control import PendulumEnv\nfrom gymnasium.wrappers import TimeLimit\n\n"
        "def Robot():\n    return TimeLimit(PendulumEnv(), 20)\n"
    )
    monkeypatch.syspath_prepend(place)
    command = ["train", "requeued_env:Robot", *COMMAND[2:]]
    said(capsys, command)
    text = said(capsys, [*command, "--steps", "120"])
    assert "Done: 120 steps" in text and "td3 resume run --trust" in text
    check_names(said(capsys, ["train", "--run", "run", "--resume"], code=2), "env", "requeued_env:Robot", "--trust")


def test_resume_needs_a_folder_and_a_run_in_it(place, capsys):
    check_names(said(capsys, ["train", "--resume"], code=2), "--resume", "--run DIR")
    Path("full").mkdir()
    Path("full/file").touch()
    for folder in ("full", "full/file"):
        check_names(said(capsys, ["train", "--run", folder, "--resume"], code=2), "run", folder)
    killed_at(40, "run")
    refused = said(capsys, COMMAND[:-1], code=2)
    check_names(refused, "run", "run", "--resume")
    assert "--resume" not in said(capsys, ["train", "--run", "full"], code=2)
