"""What commands say: nothing a stranger wrote reaches a terminal as it is, and stdout holds the answer alone."""

import ast
import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import td3
from bench import survival
from bench.forging import forge
from td3.events import Resumed, SaveFailed, Started
from td3.storage import disk
from td3.storage.lock import Lock
from td3.views import cli, speaking
from td3.views.run_display import Stop, what_is_left
from td3.views.speaking import LONGEST, answer, answers_only, printable, say, shell_word, write_out
from td3.views.terminal import LiveView

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\x7f\r\n[bold red][link=http://x]\u200f\udcff\u2028"


def harmless(text):
    """Nothing but lines of ordinary letters."""
    return not speaking.UNPRINTABLE.search(text.replace("\n", ""))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("\x00\x07\x7f\x9b", r"\x00\x07\x7f\x9b"),
        ("two\nlines\r\tand", r"two\nlines\r\tand"),
        ("\u202e\u2066\u200f\u2028", r"\u202e\u2066\u200f\u2028"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("γ × ± – … ▁█ żółć 日本 🤖 👩‍🚀", "γ × ± – … ▁█ żółć 日本 🤖 👩‍🚀"),
    ],
)
def test_controls_become_escapes_and_ordinary_letters_stay(text, shown):
    assert printable(text) == shown


def test_a_huge_text_keeps_its_beginning_and_its_end():
    shown = printable("env '" + "x" * 1_000_000 + "' cannot be made.")
    assert len(shown) < LONGEST + 50
    assert shown.startswith("env 'xx") and shown.endswith("xx' cannot be made.") and " characters left out " in shown


@pytest.mark.parametrize("command", ["evaluate", "resume", "verify"])
def test_a_strangers_run_reaches_the_terminal_only_as_letters(command, tmp_path, capsys):
    run = tmp_path / EVIL.replace("/", "")
    run.parent.mkdir(exist_ok=True)
    list(td3.train(survival.config(steps=40, eval_every=0), tmp_path / "run"))
    (tmp_path / "run").rename(run)
    forge(run, lambda state: state["config"].update(env=EVIL))
    (run / "checkpoints" / f"000000077-{EVIL.replace('/', '')}").mkdir()
    assert cli.main([command, str(run)]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert out == "" and err and harmless(err)


def test_who_holds_a_lock_is_told_in_letters(tmp_path, capsys):
    list(td3.train(survival.config(steps=40, eval_every=0), tmp_path / "run"))
    lock = Lock(disk.Folder.open(tmp_path / "run"), "run")
    (tmp_path / "run" / "lock").write_text(json.dumps({"pid": 1, "host": EVIL.replace("\udcff", "")}))
    assert cli.main(["resume", str(tmp_path / "run")]) == 2
    text = capsys.readouterr().err
    lock.release()
    assert r"\x1b[2J" in text and harmless(text) and text.count("\n") == 1


@pytest.mark.parametrize("words", [[EVIL], ["train", f"--{EVIL}"], ["train", "--steps", EVIL], ["train", "x", EVIL]])
def test_a_refused_word_is_shown_in_letters(words, capsys):
    assert cli.main(words) == 2
    text = capsys.readouterr().err
    assert harmless(text) and text.count("\n") == 1


def test_the_live_view_takes_nothing_for_markup_or_an_escape(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    view = LiveView(Path(EVIL))
    view.show(
        Started(
            0,
            td3.Config(env=EVIL),
            {
                "env": EVIL, "num_envs": 1, "workers": 0, "threads": 1, "sees": EVIL, "action_size": 1,
                "action_bounds": EVIL, "memory": EVIL, "bytes_per_transition": 1, "engine": EVIL, "device": EVIL,
            },
            (EVIL,),
        )
    )  # fmt: skip
    view.show(Resumed(0, (EVIL,)))
    view.show(SaveFailed(0, EVIL))
    view._live.console.print(view._panel())
    assert harmless(shown.getvalue())
    assert shown.getvalue().count("[bold red][link=http://x]") >= 8


def test_only_one_module_writes_to_the_standard_streams():
    package = Path(td3.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        if path == Path(speaking.__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            stream = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr", "__stdout__", "__stderr__")
            ours = stream and isinstance(node.value, ast.Name) and node.value.id == "sys"
            if (called in ("print", "print_exc", "Console") and not is_method(node)) or ours:
                found.append(f"{path.relative_to(package)}:{node.lineno}")
    assert found == []


def is_method(call):
    """`console.print` writes to a console, and that was made by `speaking`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "print"


def test_an_answer_is_one_line_of_ascii_json(capsys):
    answer({"name": EVIL, "bad": [float("nan"), float("inf")], "shape": (3,), "γ": 0.5})
    out = capsys.readouterr().out
    assert out.isascii() and out.count("\n") == 1 and harmless(out)
    assert json.loads(out) == {"name": EVIL, "bad": [None, None], "shape": [3], "γ": 0.5}


def test_what_c_code_and_children_write_to_stdout_is_no_part_of_the_answer(capfd):
    with answers_only():
        ctypes.CDLL(None).puts(b"from C, kept back until the end")
        os.write(1, b"by its number\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
        sys.stdout.write("from Python\n")
        answer({"mean": 1.5})
    out, err = capfd.readouterr()
    assert out == '{"mean":1.5}\n'
    for words in ("from C", "by its number", "from a child", "from Python"):
        assert words in err


NOISY = """
import ctypes, os
from gymnasium.envs.classic_control import PendulumEnv
class Env(PendulumEnv):
    def reset(self, **more):
        ctypes.CDLL(None).puts(b"reset")
        os.write(1, b"reset once more")
        print("and again")
        return super().reset(**more)
"""


def test_stdout_holds_one_document_when_an_environment_writes_to_its_descriptor(tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)
    words = [sys.executable, "-m", "td3", "check", "noisy:Env", "--json", "--num-envs", "2", "--workers", "1"]
    environ = {**os.environ, "PYTHONPATH": str(Path(td3.__file__).parents[1])}
    done = subprocess.run(words, capture_output=True, cwd=tmp_path, check=True, env=environ)
    assert json.loads(done.stdout)["trainable"] and done.stdout.count(b"\n") == 1
    assert b"reset once more" in done.stderr


class Broken(io.StringIO):
    def write(self, _text):
        raise OSError(5, "Input/output error")

    flush = close = lambda self: self.write("")


def test_words_that_cannot_be_written_are_lost_and_nothing_else(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Broken())
    say("one", "two")
    with answers_only():
        print("an environment's own words")
        say("three")


def test_an_answer_that_cannot_be_written_ends_in_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Broken())
    assert cli.main(["--version"]) == 1
    assert "Input/output error" in capsys.readouterr().err


def test_letters_that_a_locale_lacks_are_written_as_escapes(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stdout)
    write_out("γ 0.99\n")
    assert stdout.buffer.getvalue() == rb"\u03b3 0.99" + b"\n"


@pytest.fixture
def full_stderr():
    """Descriptor 2 leads to a full disk."""
    aside, full = os.dup(2), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 2)
    yield
    os.dup2(aside, 2)
    os.close(aside), os.close(full)


def test_a_handler_does_not_raise_when_it_cannot_speak(full_stderr):
    with Stop() as stop:
        signal.raise_signal(signal.SIGHUP)
    assert stop.signal == signal.SIGHUP


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_ignored_at_the_start_stays_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with Stop() as stop:
            signal.raise_signal(number)
        assert stop.signal is None and signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(not shutil.which("bash"), reason="the quoting is that of bash")
@pytest.mark.parametrize(
    "name", ["plain", "a run", "-x", "it's", "$HOME", "~", "*", "żółć", EVIL, os.fsdecode(b"\xff\\'")]
)
def test_a_quoted_path_is_that_path_in_a_shell(name):
    word = shell_word(Path(name))
    assert harmless(word) and not word.startswith("-")
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert Path(os.fsdecode(done.stdout)) == Path(name)


def test_an_error_says_what_is_left_of_the_run(tmp_path):
    problem = td3.EnvironmentFailure("it broke")
    assert what_is_left(problem, "td3 resume r").endswith(": td3 resume r")
    problem.saved = tmp_path / "000001234-0123456789abcdef"
    text = what_is_left(problem, "td3 resume r")
    assert "step 1,234;" in text and text.endswith(": td3 resume r")
    problem.saved, problem.save_problem = None, "No space left on device."
    text = what_is_left(problem, "td3 resume r")
    assert "No space left on device." in text and "saved at" not in text and text.endswith(": td3 resume r")


def test_only_td3_speaks_while_others_write_into_a_log(tmp_path):
    code = (
        "import os, sys; from td3.views.speaking import others_into, say, say_in_handler\n"
        f"log = os.open({str(tmp_path / 'log')!r}, os.O_RDWR | os.O_CREAT)\n"
        "with others_into(log):\n"
        "    say('ours'); print('noise 1'); print('noise 2', file=sys.stderr); sys.stderr.flush()\n"
        "    os.write(1, b'noise 3\\n'); os.write(2, b'noise 4\\n'); os.system('echo noise 5 >&2')\n"
        "    say_in_handler('handler')\n"
        "print('out'); say('again')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.split()) == ("out\n", ["ours", "handler", "again"])
    assert sorted((tmp_path / "log").read_text().splitlines()) == [f"noise {number}" for number in range(1, 6)]
