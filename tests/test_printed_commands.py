"""Every command that td3 prints works when it is pasted into the shell it was printed in."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from td3.views import cli

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="commands are pasted into bash")

QUICK = "--steps 60 --warmup-steps 20 --hidden 8 --batch-size 8 --eval-every 30 --eval-episodes 1 --threads 1 --no-film"
MODULE = """
import os, signal
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv

class Env(PendulumEnv):
    steps = 0

    def reset(self, *, seed=None, options=None):
        self.left = 15
        return super().reset(seed=seed, options=options)

    def step(self, action):
        type(self).steps += 1
        if type(self).steps == int(os.environ.get("BREAK_AT", 0)):
            raise OSError("no motor")
        if type(self).steps == int(os.environ.get("STOP_AT", 0)):
            signal.raise_signal(signal.SIGINT)
        self.left -= 1
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, self.left == 0, info

gymnasium.register("NAME-v0", Env)
"""
PARTS = """
import td3
from td3.exploration import GaussianNoise
from td3.replay import UniformSampler

class Learner(td3.Learner): pass
class Sampler(UniformSampler): pass
class Noise(GaussianNoise): pass
"""


@pytest.fixture
def own(tmp_path, monkeypatch, request):
    """The name of a module with an environment, in the working directory; each test has one of its own."""
    name = re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"{name}.py").write_text(MODULE.replace("NAME", name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def said(capsys, words, code=0):
    assert cli.main(words) == code, capsys.readouterr().err
    return capsys.readouterr().err


def printed(text):
    """The commands in a text, as words that a shell makes of them."""
    found = re.findall(r"\btd3 (?:train|resume|evaluate|verify|check|watch|explain)\b.*", text)
    words = []
    for line in found:
        done = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
        words.append([os.fsdecode(word) for word in done.stdout.split(b"\0")[1:-1]])
    return words


def paste(capsys, text, expected):
    """Runs all of them in turn."""
    commands = printed(text)
    assert [words[0] for words in commands] == expected
    for words in commands:
        said(capsys, words)


FOLDERS = ["run", "a run", "-x", "it's $HOME", "bell\x07\u202e", os.fsdecode(b"\xff")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_next_after_training_in_any_folder(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = said(capsys, ["train", *QUICK.split(), "--no-record-updates", f"--run={folder}"])
    commands = printed(text)
    assert [words[0] for words in commands] == ["evaluate", "resume", "check"]
    for words in commands[:2]:
        assert Path(words[1]).samefile(folder)
        said(capsys, [word if word != "20" else "1" for word in words])


@pytest.mark.parametrize("kind", ["Env", "own-v0"])
def test_what_is_next_after_training_on_an_own_environment(kind, own, capsys):
    env = f"{own}:{kind.replace('own', own)}"
    text = said(capsys, ["train", env, *QUICK.split(), "--run", "r"])
    assert text.count("--trust") == 2
    paste(capsys, text, ["evaluate", "resume", "check"])


def test_a_finished_run_and_one_with_another_environment(own, capsys):
    said(capsys, ["train", *QUICK.split(), "--run", "r"])
    paste(capsys, said(capsys, ["resume", "r"]), ["resume"])
    text = said(capsys, ["resume", "r", "--env", f"{own}:Env", "--steps", "150"])
    assert text.count(f"--env {own}:Env") == 2
    paste(capsys, text, ["evaluate", "resume", "check"])
    paste(capsys, said(capsys, ["resume", "r", "--trust"]), ["resume"])


def test_a_run_that_stopped_by_itself(own, capsys):
    text = said(capsys, ["train", f"{own}:Env", *QUICK.split(), "--stop-at", "-1e6", "--run", "r"])
    assert printed(text)[1] == ["resume", "r", "--trust", "--stop-at", "none"]
    (again,) = printed(said(capsys, ["resume", "r", "--trust"]))
    assert again == ["resume", "r", "--trust", "--stop-at", "none"]
    paste(capsys, text, ["evaluate", "resume", "check"])


def test_a_run_with_parts_of_the_users_own(own, capsys, monkeypatch):
    Path(f"{own}_parts.py").write_text(PARTS)
    words = [f"--{name.lower()}={own}_parts:{name}" for name in ("Learner", "Sampler", "Noise")]
    text = said(capsys, ["train", *QUICK.split(), "--run", "r", *words])
    evaluate, resume, _ = printed(text)
    assert [word for word in evaluate if word.startswith("--")] == ["--learner", "--checkpoint", "--episodes"]
    assert [word for word in resume if word.startswith("--")] == ["--learner", "--sampler", "--noise", "--steps"]
    paste(capsys, text, ["evaluate", "resume", "check"])
    monkeypatch.setenv("STOP_AT", "25")
    text = said(capsys, ["train", f"{own}:Env", *QUICK.split(), "--run", "stopped", *words], code=130)
    paste(capsys, text, ["resume"])
    for missing in ("learner", "sampler", "noise"):
        refused = said(capsys, ["resume", "r", *(word for word in words if missing not in word)], code=2)
        assert f"--{missing}" in refused and f"{own}_parts:{missing.title()}" in refused
    assert "--learner" in said(capsys, ["evaluate", "r"], code=2)


def test_a_run_that_was_stopped(own, capsys, monkeypatch):
    monkeypatch.setenv("STOP_AT", "25")
    text = said(capsys, ["train", f"{own}:Env", *QUICK.split(), "--run", "r"], code=130)
    assert "Stopped at step 25" in text
    paste(capsys, text, ["resume"])


def test_a_run_with_an_environment_that_broke(own, capsys, monkeypatch):
    monkeypatch.setenv("BREAK_AT", "25")
    text = said(capsys, ["train", f"{own}:Env", *QUICK.split(), "--run", "r"], code=1)
    assert "no motor" in text
    paste(capsys, text, ["resume"])


def test_the_page_that_ended_with_its_run_can_be_looked_at_again(own, capsys):
    pytest.importorskip("uvicorn")
    text = said(capsys, ["train", *QUICK.split(), "--run", "a run", "--watch"])
    (words,) = [words for words in printed(text) if words[0] == "watch"]
    assert words == ["watch", "a run"] and cli.understand(words).runs == "a run"


def test_help_and_refusals_name_commands_that_exist(capsys):
    for words in (["--help"], ["train", "--help"]):
        with pytest.raises(SystemExit):
            cli.main(words)
    text = said(capsys, ["train", "--steps"], code=2)
    (words,) = printed(text.replace(".", ""))
    assert words == ["train", "--help"]
