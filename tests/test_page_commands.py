"""`td3 watch`, `td3 explain` and `td3 train --watch`: they say where the page is, and leave nothing behind."""

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from td3.views import cli
from td3.views.page_host import address_of, is_here
from td3.views.web.runs import Watched


def fetch(address):
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


@contextlib.contextmanager
def started(*words, **settings):
    """td3 as a user starts it; it does not outlive the test, however that ends."""
    with subprocess.Popen([sys.executable, "-m", "td3", *words], **settings) as process:
        try:
            yield process
        finally:
            process.kill()


def running(pid):
    """Whether it lives; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_explain_shows_an_agent_that_learns_and_leaves_nothing_behind(tmp_path, number):
    words = ("explain", "--json", "--port", "0")
    with started(*words, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        address = json.loads(process.stdout.readline())["address"]
        (folder,) = tmp_path.iterdir()
        base, id = address.split("steps?id=")
        while not (runs := fetch(f"{base}api/runs")["runs"]):
            os.sched_yield()
        assert [(run["env"], run["id"]) for run in runs] == [("Pendulum-v1", id)]
        while fetch(f"{base}api/runs")["runs"][0]["state"] != "live":
            os.sched_yield()
        holder = json.loads((folder / "Pendulum-v1/lock").read_text())["pid"]
        process.send_signal(number)
        process.wait()
        while running(holder):  # the one that trained ends with us, or this test at its time limit
            os.sched_yield()
    assert folder.exists() == (number == signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_watch_ends_well_at_every_signal(tmp_path, number):
    words = ("watch", str(tmp_path), "--json", "--port", "0")
    with started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        address = json.loads(process.stdout.readline())["address"]
        assert fetch(f"{address}api/runs")["runs"] == []
        process.send_signal(number)
        assert process.communicate() == (b"", b"") and process.returncode == 0


def test_train_with_watch_prints_a_page_that_ends_with_it(tmp_path):
    run = tmp_path / "run"
    words = ["train", "--steps", "1000000", "--warmup-steps", "100", "--hidden", "16", "--run", str(run), "--watch"]
    words += ["--eval-episodes", "1", "--no-film"]
    with started(*words, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        assert first.startswith("Watch it at http://127.0.0.1:")
        base, id = first.removeprefix("Watch it at ").strip().split("run?id=")
        assert fetch(f"{base}api/explanation")["steps"][8]["number"] == 9
        with urllib.request.urlopen(f"{base}events?id={id}") as news:
            process.terminate()  # only now: a short run could end before its page has answered
            while news.readline() != b"event: end\n":
                pass
            last = fetch(f"{base}api/run?id={id}")["run"]  # the page waits until this viewer has left
        step = int(next((run / "checkpoints").iterdir()).name.split("-")[0])
        assert (last["state"], last["step"]) == ("stopped", pytest.approx(step, abs=1_000))
        assert "Stopped at step" in process.stderr.read()
        assert process.wait() == 143
    assert Watched(run, run).id == id
    with pytest.raises(urllib.error.URLError):
        fetch(f"{base}api/runs")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["watch", "nowhere"], "'nowhere'"),
        (["watch", "--port", "65536"], "'65536'"),
        (["watch", "--host", "no.such.host.invalid"], "'no.such.host.invalid'"),
        (["explain", "--port", "x"], "'x'"),
        (["resume", "nowhere", "--watch"], "'nowhere'"),
        (["train", "No-Such-v0", "--watch"], "'No-Such-v0'"),
    ],
)
def test_a_page_that_cannot_be_started_is_one_sentence(words, named, capsys, tmp_path, monkeypatch):
    def unknown(*_, **__):
        asked.append(_)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no test reaches for the network
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 2
    assert len(asked) <= 1  # a name that is not known for one port is not known for the next
    text = capsys.readouterr().err
    assert named in text
    assert text.count("\n") == 1


def test_a_missing_library_is_named_with_the_command_that_brings_it(capsys, monkeypatch):
    true = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "uvicorn" else true(name, *more)
    )
    assert cli.main(["watch"]) == 2
    text = capsys.readouterr().err.strip()
    assert "needs uvicorn" in text
    *words, named = shlex.split(text[text.index("pip install") :])
    assert words == ["pip", "install", "-e"]
    assert named.endswith("[watch]") and (Path(named.removesuffix("[watch]")) / "pyproject.toml").is_file()


def test_only_a_loopback_address_goes_without_a_token():
    assert is_here("127.0.0.1") and is_here("localhost") and is_here("::1")
    assert not is_here("0.0.0.0") and not is_here("192.168.1.5") and not is_here("::")
    assert address_of("::1", 8, None) == "http://[::1]:8/"
    assert address_of("10.0.0.7", 8, "t", "steps?id=5") == "http://10.0.0.7:8/steps?id=5&token=t"
    assert address_of("0.0.0.0", 8, "t") == f"http://{socket.gethostname()}:8/?token=t"
