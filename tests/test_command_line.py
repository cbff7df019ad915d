"""The command td3, run as a user runs it."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from functools import partial

import gymnasium
import pytest
from engines import WHY_NOT

from td3.agent import load
from td3.config import GROUPS, SETTINGS
from td3.config.words import flag
from td3.learner import selftest
from td3.views import cli

COMMANDS = cli.make_parser()[1]
TD3 = [sys.executable, "-m", "td3"]
QUICK = (
    "--steps 400 --warmup-steps 100 --hidden 16,16 --batch-size 16 --eval-every 200 --eval-episodes 2 --threads 1 "
    "--no-film"
)


def td3(*words, cwd=None, code=0):
    done = subprocess.run([*TD3, *words], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "pendulum"
    done = td3("train", *QUICK.split(), "--run", str(folder))
    return folder, done


def test_help_answers_without_importing_torch_numpy_or_gymnasium():
    code = (
        "import sys\n"
        "from td3.views.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'numpy', 'gymnasium', 'mujoco', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "train" in done.stdout and "selftest" in done.stdout


def test_train_help_tells_every_setting_with_its_meaning(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["train", "--help"])
    shown = capsys.readouterr().out
    text = " ".join(shown.split())
    assert end.value.code == 0
    for name, known in SETTINGS.items():
        assert " ".join(known.meaning.split()) in text.replace("- ", "-"), name
        assert name == "env" or flag(name) in text


def test_train_help_has_a_section_for_each_group_with_its_flags(capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    sections = dict(re.findall(r"^(\w.*):\n((?:  .*\n)*)", capsys.readouterr().out, re.MULTILINE))
    for group, names in GROUPS.items():
        shown = re.findall(r"^  (--[a-z-]+)", sections[group], re.MULTILINE)
        assert shown == [flag(name) for name in names if name != "env"]


def test_td3_alone_shows_its_help(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main([])
    out, err = capsys.readouterr()
    assert end.value.code == 0 and err == "" and "td3 train" in out and all(word in out for word in COMMANDS)


def test_training_tells_its_way_in_plain_lines_and_ends_with_score_and_what_to_do(run):
    folder, done = run
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    if WHY_NOT:
        assert "Learning with torch" in lines.pop(2)
    assert lines[0].startswith("Training Pendulum-v1 for 400 steps, seed 0, preset author: 3 observations, 1 action in")
    assert "13.2 kB for 400 transitions (33 bytes each)" in lines[1]
    assert [line.split()[1] for line in lines[2:4]] == ["200", "400"]
    assert lines[4].startswith("Done: 400 steps and 300 updates in ") and "Mean return over 2 episodes" in lines[4]
    assert lines[5] == f"The run is in {folder}" and "td3 evaluate" in lines[6] and "td3 resume" in lines[7]
    assert "\x1b" not in done.stderr


def test_evaluate_answers_in_words_and_in_json(run, capfd):
    folder, _ = run
    assert cli.main(["evaluate", str(folder), "--episodes", "3"]) == 0
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("Pendulum-v1 after 400 steps, 3 episodes without noise: -")
    answer = json.loads(td3("evaluate", str(folder), "--episodes", "3", "--json").stdout)
    assert set(answer) == {"env", "step", "episodes", "mean", "std", "returns"}
    assert (answer["env"], answer["step"], answer["episodes"], len(answer["returns"])) == ("Pendulum-v1", 400, 3, 3)
    assert answer["mean"] == pytest.approx(sum(answer["returns"]) / 3)
    assert f"{answer['mean']:.1f}" in err
    assert cli.main(["evaluate", str(folder), "--checkpoint", "7"]) == 2
    refusal = capfd.readouterr().err
    assert refusal.startswith("td3: checkpoint ") and all(word in refusal for word in ("last", "best", "7"))


def test_a_folder_with_a_run_in_it_is_not_trained_into(run, capsys):
    assert cli.main(["train", *QUICK.split(), "--run", str(run[0])]) == 2
    refusal = capsys.readouterr().err
    assert refusal.startswith("td3: run ") and repr(str(run[0])) in refusal


def test_train_json_is_one_document(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *QUICK.split(), "--eval-every", "0", "--json"]) == 0
    out, err = capfd.readouterr()
    answer = json.loads(out)
    assert answer["step"] == 400 and answer["updates"] == 300 and err == ""
    assert (tmp_path / answer["run"] / "config.json").is_file()
    assert answer["run"].startswith("runs/Pendulum-v1-seed0-")


def test_check_says_what_td3_will_see(capsys):
    assert cli.main(["check", "HalfCheetah-v5"]) == 0
    text = capsys.readouterr().err
    assert text.startswith("HalfCheetah-v5: TD3 can train on it.")
    for part in ("(17,) float64 → 17 numbers", "in [-1, 1]", "165 bytes per transition", "165 MB"):
        assert part in text
    assert cli.main(["check", "Swimmer-v5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["trainable"] and found["task_settings"] == {"gamma": 0.9999}
    assert found["bytes_per_transition"] == 2 * 4 * 8 + 4 * 2 + 4 + 1


def test_an_environment_in_a_module_beside_the_user_is_found(tmp_path, monkeypatch, capfd):
    (tmp_path / "my_robot.py").write_text(
        "import gymnasium\nfrom gymnasium.envs.classic_control import PendulumEnv\n"
        "class Robot(PendulumEnv): pass\n"
        "def broken(): raise OSError('no motor')\n"
        "gymnasium.register('Robot-v0', Robot, max_episode_steps=50)\n"
    )
    assert "TD3 can train on it" in td3("check", "my_robot:Robot", cwd=tmp_path).stderr
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(gymnasium.registry, "Robot-v0", None)  # to be taken away again, as is the module
    monkeypatch.delitem(gymnasium.registry, "Robot-v0")
    monkeypatch.setitem(sys.modules, "my_robot", None)
    monkeypatch.delitem(sys.modules, "my_robot")

    def text(*words, code=0):
        assert cli.main([*words]) == code
        return capfd.readouterr().err

    train = ["train", "my_robot:Robot-v0", *QUICK.split(), "--run", "r", "--num-envs", "2", "--workers", "2"]
    assert "TD3 can train on it" in text("check", "my_robot:Robot-v0")
    refusal = text("check", "my_robot:broken", code=2)
    assert refusal.startswith("td3: env 'my_robot:broken' ") and refusal.count("\n") == 1
    assert "OSError: no motor (my_robot.py:4)" in refusal
    assert "The run is in r\n" in text(*train)
    refusal = text("evaluate", "r", code=2)
    assert "env 'my_robot:Robot-v0'" in refusal and "--trust" in refusal
    assert "without noise" in text("evaluate", "r", "--trust", "--episodes", "1")


def test_a_flag_that_is_true_or_false_takes_no_word():
    chosen = cli.understand(["train", "--compile", "Pendulum-v1"])
    assert (chosen.set_compile, chosen.env) == (True, "Pendulum-v1")
    assert cli.understand(["train", "--no-compile"]).set_compile is False
    assert cli.understand(["train"]).set_compile is None


def test_selftest_tells_the_largest_error_of_each_engine(capsys, monkeypatch):
    monkeypatch.setattr(selftest, "selftest", partial(selftest.selftest, 20))
    assert cli.main(["selftest", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    rows = [(one["engine"].split()[0], one["precision"], one["passed"], one["updates"]) for one in results]
    native = [] if WHY_NOT else [("native", "float32", True, 20)]
    td7 = [*native, ("torch,", "float64", True, 20), ("torch,", "float32", True, 20)]
    assert rows == [*native, ("torch", "float64", True, 20), ("torch", "float32", True, 20), *td7]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_a_usable_run(tmp_path, number, code):
    words = ["train", "--steps", "1000000", "--warmup-steps", "100", "--hidden", "16", "--eval-every", "500"]
    words += ["--eval-episodes", "1", "--no-film"]
    process = subprocess.Popen([*TD3, *words, "--run", "r"], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for line in process.stderr:
        if line.startswith("step"):
            break
    process.send_signal(number)
    rest = process.stderr.read()
    assert process.wait() == code
    process.stderr.close()
    assert "Stopped at step" in rest and "td3 resume r" in rest and "Traceback" not in rest
    assert load(tmp_path / "r").step >= 500


def test_a_terminal_shows_a_live_panel(tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*TD3, "train", *QUICK.split(), "--run", "r"],
        stdout=theirs, stderr=theirs, cwd=tmp_path, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the other side is closed
        while True:
            shown += os.read(ours, 65536)
    assert process.wait() == 0
    os.close(ours)
    text = shown.decode()
    for word in ("critic loss", "actor loss", "steps/s", "evaluated", "best", "left", "Q1", "target", "400 of 400"):
        assert word in text, word
