"""Jobs on nodes: placed again when a node is lost, to the same bytes; ended, refused and cleaned up in every way."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import runs
from refusals import check_names, refusal

import td3
from td3.config import Config
from td3.errors import ConfigError
from td3.events import Saved
from td3.scale import remote, runner
from td3.scale.addresses import check_answers, checked_address
from td3.scale.remote import NodeLost, RemoteJob
from td3.scale.runner import FOLDER, Runner
from td3.scale.sources import sources_of
from td3.scale.versions import Setup, check_setup, setup, setup_with_kernels
from td3.scale.watcher import processes_of
from td3.storage import RunFolder, verify
from td3.storage.home import HomeFolder, NotSaved
from td3.studies import ProcessJob
from td3.views.cli import main

TESTS = Path(__file__).parent
SMALL = {**runs.SMALL, "env": "example_envs:Drifting", "threads": 1}


def words(**settings):
    from td3.config.words import words_of

    env, *flags = words_of({**SMALL, **settings})
    return ["train", env, "--resume", *flags, "--quiet"]


class LocalNode:
    """A runner in this process, which is lost after so many reads."""

    def __init__(self, reads=10**9, on_report=lambda runner: None):
        self.runner, self.reads, self.on_report = Runner(), reads, on_report

    def __getattr__(self, name):
        return getattr(self.runner, name)

    def report(self, sent, seconds):
        self.on_report(self.runner)
        return self.runner.report(sent, seconds)

    def read(self, *arguments):
        self.reads -= 1
        if self.reads < 0:
            raise NodeLost("Its cable was pulled.")
        return self.runner.read(*arguments)


class SteppedJob:
    """Trains as the process would, in this one: to the next checkpoint each time somebody waits for it."""

    def __init__(self, words, module, env, folder):
        run = Path(words[-1])
        self.code = None
        self.events = td3.train(Config(**SMALL), run) if RunFolder.is_new(run) else td3.resume(run, trust=True)

    def wait(self, seconds):
        for event in self.events if self.code is None else ():
            if isinstance(event, Saved):
                return None
        self.code = 0 if self.code is None else self.code
        return self.code

    def send(self, number):
        self.code = 128 + number
        self.events.close()

    def kill(self):
        self.events.close()

    def end(self):
        pass

    def problem(self):
        return ""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Makes a job of the nodes that it is given, one for each placement, with their folders in `tmp_path/nodes`."""
    (tmp_path / "nodes").mkdir()
    monkeypatch.setenv(FOLDER, str(tmp_path / "nodes"))
    monkeypatch.syspath_prepend(str(TESTS))
    monkeypatch.setattr(remote, "LONGEST", 0.0)
    monkeypatch.setattr(remote, "WAIT", 0.1)

    def make(*nodes, process=False, **settings):
        waiting, own = list(nodes), Config(**{**SMALL, **settings})
        monkeypatch.setattr(runner, "ProcessJob", ProcessJob if process else SteppedJob)

        def place(_job):
            return waiting.pop(0)() if len(waiting) > 1 else waiting[0]()

        return RemoteJob(tmp_path / "home/run", words(**settings), own, place, sources_of(own.env))

    yield make
    assert list((tmp_path / "nodes").iterdir()) == []  # no node leaves anything


def ended(job):
    """Waits for a job, and returns its exit code; the news is kept in `job.said`."""
    job._thread.join()
    job.said = job.news()
    return job.code


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    path = tmp_path_factory.mktemp("alone") / "run"
    with pytest.MonkeyPatch.context() as change:
        change.syspath_prepend(str(TESTS))
        list(td3.train(Config(**SMALL), path))
    return path


# Reads: two files and some metrics; then of each checkpoint its new metrics, a file of rows, and four files.
@pytest.mark.parametrize(("reads", "step"), [(0, 0), (5, 0), (12, 40)])
def test_a_run_that_lost_its_node_ends_elsewhere_with_the_same_bytes(reads, step, job, alone, tmp_path):
    one = job(lambda: LocalNode(reads), LocalNode)
    assert ended(one) == 0
    (said,) = one.said
    check_names(said, "step", step, "Its cable was pulled.")
    assert runs.contents(tmp_path / "home/run") == runs.contents(alone)
    assert not any(verify(tmp_path / "home/run").values())


def test_a_process_that_was_killed_on_its_node_is_started_elsewhere(job, alone, tmp_path):
    def kill(runner):
        runner.send(signal.SIGKILL)

    one = job(lambda: LocalNode(on_report=kill), LocalNode, process=True)
    assert ended(one) == 0 and "signal 9" in one.said[0]
    assert runs.contents(tmp_path / "home/run") == runs.contents(alone)


def test_a_run_that_never_gets_further_is_given_up_with_the_last_cause(job):
    one = job(lambda: LocalNode(reads=0))
    assert ended(one) == 1 and len(one.said) == 1  # the same words are not said twice
    check_names(one.problem(), None, "Its cable was pulled.", remote.ATTEMPTS)


def test_an_environment_that_raises_is_reported_in_its_own_words_and_not_tried_again(job, tmp_path):
    one = job(LocalNode, process=True, env="interfering:Interfering", env_args={"fails": True})
    assert ended(one) == 1 and one.said == []
    assert "the gripper is stuck" in one.problem() and "td3-run-" not in one.problem()


def test_a_job_that_is_asked_to_end_saves_and_continues_later_with_the_same_bytes(job, alone, tmp_path):
    one = job(lambda: LocalNode(on_report=lambda _: one.asked_to_end or one.send(signal.SIGTERM)))
    assert ended(one) == 143
    assert not any(verify(tmp_path / "home/run").values())
    assert ended(job(LocalNode)) == 0
    assert runs.contents(tmp_path / "home/run") == runs.contents(alone)


def test_a_job_that_is_killed_leaves_at_once_and_its_folder_is_whole(job, tmp_path):
    one = job(lambda: LocalNode(on_report=lambda runner: one.send(signal.SIGKILL)))
    assert ended(one) == 137
    assert not (tmp_path / "home/run").exists() or not any(verify(tmp_path / "home/run").values())


def test_a_full_disk_at_home_makes_the_run_wait_and_nothing_is_lost(job, alone, tmp_path, monkeypatch):
    usual, refused = HomeFolder.take, []

    def full(home, news, fetch):
        if len(refused) < 3:
            refused.append(news)
            raise NotSaved("No space left on device.")
        return usual(home, news, fetch)

    monkeypatch.setattr(HomeFolder, "take", full)
    one = job(LocalNode)
    assert ended(one) == 0 and len(refused) == 3
    (said,) = one.said
    check_names(said, None, "No space left on device")
    assert runs.contents(tmp_path / "home/run") == runs.contents(alone)


def test_a_run_is_locked_at_home_while_it_trains_elsewhere(job, tmp_path):
    seen = []

    def look(runner):
        if (tmp_path / "home/run").exists() and not seen:
            with refusal(ConfigError, None, str(tmp_path / "home/run"), os.getpid()):
                next(td3.resume(tmp_path / "home/run", trust=True))
            seen.append(1)

    assert ended(job(lambda: LocalNode(on_report=look))) == 0 and seen


def test_a_runner_that_is_killed_takes_its_process_and_its_folder_with_it(tmp_path):
    code = (
        "import os, signal; from td3.scale.runner import Runner\n"
        f"runner = Runner(); runner.start({words(steps=10**7)!r}, {{}}, False)\n"
        "while runner.report([], 0.2).code is None and not list(runner._scratch.run.glob('metrics*')): pass\n"
        "assert runner.report([], 0).code is None, runner.report([], 0)\n"
        "print(runner._job._process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, FOLDER: str(tmp_path), "PYTHONPATH": str(TESTS)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    while Path(f"/proc/{int(done.stdout)}").exists() or list(tmp_path.iterdir()):
        pass  # the test's time is limited


def test_a_cluster_is_known_by_the_folder_in_the_environment_of_its_processes(tmp_path):
    env = {**os.environ, FOLDER: str(tmp_path)}
    children = [subprocess.Popen(["sleep", "60"], env=one) for one in (env, os.environ)]
    watcher = subprocess.Popen([sys.executable, "-m", "td3.scale.watcher", str(tmp_path)], stdin=subprocess.PIPE)
    try:
        while list(processes_of(str(tmp_path))) != [children[0].pid]:
            pass  # until it has begun
        watcher.stdin.close()
        assert watcher.wait() == 0 and children[0].wait() == -9 and children[1].poll() is None
        assert not tmp_path.exists()
    finally:
        children[1].kill()
        children[1].wait()


# --- Addresses, versions, sources ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["local", "auto", "127.0.0.1:6379", "head:1", "[::1]:6379"])
def test_an_address_is_taken_as_it_is(text):
    assert checked_address(text) == text


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("ray://head:10001", ["ray job submit", "--ray auto"]),
        ("head", []),
        ("head:0", []),
        (":6379", []),
        ("h:x", []),
        ("", []),
    ],
)
def test_any_other_address_is_refused_with_what_to_do_instead(text, facts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "Pendulum-v1", "--ray", text]) == 2
    check_names(capsys.readouterr().err, "--ray", repr(text), *facts)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--patience", "9"], ["--ray", "auto", "--patience", "0"]])
def test_patience_is_a_number_of_seconds_for_ray(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "Pendulum-v1", *words]) == 2
    check_names(capsys.readouterr().err, "--patience", words[-1], *(["--ray"] if len(words) == 2 else []))


def test_an_address_where_nothing_listens_is_refused():
    import socket

    with socket.socket() as taken:  # bound, and never listens
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with refusal(ConfigError, "--ray", address):
            check_answers(address)


@pytest.mark.parametrize("name", ["td3", "python", "gymnasium", "mujoco", "torch"])
def test_a_node_with_another_version_is_refused_with_both(name):
    here = setup()
    there = Setup("node-7", {**here.versions, name: "0.0.7"})
    with refusal(ConfigError, name, "0.0.7", "node-7", here.versions[name]):
        check_setup(here, there)
    del there.versions[name]
    with refusal(ConfigError, name, "not installed", "node-7"):
        check_setup(here, there)


@pytest.mark.parametrize("name", ["numpy", "kernels"])
def test_what_changes_only_the_last_bits_is_a_note(name):
    here = setup_with_kernels()
    assert check_setup(here, here) == []
    (note,) = check_setup(here, Setup("node-7", {**here.versions, name: "other"}))
    check_names(note, name, "other", "node-7")


def test_modules_that_are_not_installed_are_sent_with_what_they_import(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "robot.py").write_text("import json, numpy, limbs.arm\nfrom sensors import eye\nimport not_there")
    (tmp_path / "limbs").mkdir()
    for name in ("__init__.py", "arm.py", "leg.py"):
        (tmp_path / "limbs" / name).write_text("from td3 import errors")
    (tmp_path / "sensors.py").write_text("import robot")
    (tmp_path / "unused.py").write_text("")
    places = {"robot.py", "sensors.py", "limbs/__init__.py", "limbs/arm.py", "limbs/leg.py"}
    assert sources_of("robot:Robot").keys() == places
    assert sources_of("limbs.arm:Arm").keys() == {place for place in places if place.startswith("limbs")}
    assert sources_of("Pendulum-v1") == sources_of("gymnasium:Pendulum-v1") == sources_of("not_there:X") == {}
    (tmp_path / "sensors.py").write_bytes(b"#" * (16 * 2**20 + 1))
    with refusal(ConfigError, "env", "robot:Robot"):
        sources_of("robot:Robot")
