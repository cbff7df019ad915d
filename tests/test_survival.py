"""Runs survive: death at every fault point, flipped bits, full disks, strangers' files, two writers, signals."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import UNSAID, check_names

import td3
from bench import survival
from bench.forging import newest, seal
from td3.storage import RunFolder, disk, verify
from td3.storage.checkpoint import find
from td3.views.cli import main

TD3 = [sys.executable, "-m", "td3"]


class Killed(BaseException):
    """Stands for kill −9 in this process: nothing of ours catches it."""


@pytest.fixture
def fault(monkeypatch):
    """Puts a fault at the n-th of a kind of act; counts how often that kind has happened. The dead do nothing more."""

    class Fault:
        count, at, error, dead = 0, None, None, False

        def __call__(self, moment, act):
            if self.dead:
                raise Killed
            if (moment, act) == self.at:
                self.count += 1
                if self.number in ("every", self.count):
                    self.dead = isinstance(self.error, Killed)
                    raise self.error

        def put(self, moment, act, number, error):
            self.count, self.at, self.number, self.error, self.dead = 0, (moment, act), number, error, False

    one = Fault()
    monkeypatch.setattr(disk, "_fault", one)
    return one


def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "run"
    list(td3.train(survival.config(), folder))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return reference(tmp_path_factory)


POINTS = [  # dying after a write is dying before its sync: the page cache survives the process
    ("before", "make"), ("before", "write"), ("after", "sync"),
    ("before", "rename"), ("after", "rename"), ("before", "remove"),
]  # fmt: skip


@pytest.mark.parametrize(("moment", "act"), POINTS)
def test_death_at_every_single_fault_point_leaves_a_run_that_goes_on_exactly(moment, act, fault, whole, tmp_path):
    expected, deaths = survival.fingerprint(whole), 0
    for number in range(1, 1_000):
        run = tmp_path / f"{number}"
        fault.put(moment, act, number, Killed())
        try:
            list(td3.train(survival.config(), run))
        except Killed:
            deaths += 1
        else:
            break  # there is no n-th act: all points have been visited
        fault.put("", "", 0, None)
        if not run.exists():
            continue  # dead before the folder appeared: there is no run to lose
        if any((run / "checkpoints").glob("[0-9]*")):
            assert not list(verify(run).values())[-1]
        list(td3.resume(run))
        assert survival.fingerprint(run) == expected
        assert not [one for part in ("checkpoints", "memory") for one in (run / part).glob(".*")]
    assert deaths >= (2 if act == "remove" else 6)


@pytest.mark.parametrize("error", ["ENOSPC", "EROFS"])
def test_a_save_that_fails_at_any_write_is_loud_and_costs_nothing_else(error, fault, whole, tmp_path):
    number = getattr(__import__("errno"), error)
    failures = 0
    stride = 1 if error == "ENOSPC" else 6  # every single one, for the error that is met most
    for act, first in (("write", 3), ("sync", 5), ("rename", 2)):  # those before make the folder itself
        for count in range(first, 1_000, stride):
            run = tmp_path / f"{act}-{count}"
            fault.put("before", act, count, OSError(number, os.strerror(number)))
            events = list(td3.train(survival.config(), run))
            failed = [event for event in events if isinstance(event, td3.SaveFailed)]
            if fault.count < count:
                break
            failures += 1
            assert len(failed) == 1 and os.strerror(number) in failed[0].reason
            assert isinstance(events[-1], td3.Finished)
            if failed[0].step < events[-1].step:  # a later save worked: the run is as if nothing had been
                assert survival.fingerprint(run) == survival.fingerprint(whole)
            assert not list(verify(run).values())[-1]
            needed = {segment.name for one in find(run)[0] for segment in one.manifest.segments}
            assert {one.name for one in (run / "memory").iterdir()} == needed  # nothing half written is left
            assert not list((run / "checkpoints").glob(".*"))
    assert failures >= 6


def test_when_every_save_fails_the_exit_code_says_so(fault, tmp_path, capsys, monkeypatch):
    create = RunFolder.create

    def then_full(*given):
        folder = create(*given)
        fault.put("before", "write", "every", OSError(28, "No space left on device"))
        return folder

    monkeypatch.setattr(RunFolder, "create", then_full)
    assert main(survival.words(tmp_path / "run")) == 1
    err = capsys.readouterr().err
    assert "training continues" in err and "No space left on device" in err
    assert "not everything could be saved" in err and "Done: " in err


def test_a_disk_that_is_really_full_is_survived(tmp_path):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # every file beyond is refused by the system

    done = subprocess.run(
        [*TD3, *survival.words(tmp_path / "run"), "--hidden", "64,64"], preexec_fn=small, capture_output=True, text=True
    )
    assert done.returncode == 1 and "File too large" in done.stderr and "Traceback" not in done.stderr


def files_of(run):
    """All that a checkpoint vouches for."""
    beside = ("lock", "updates.jsonl", "film.webp")
    return sorted(one for one in run.rglob("*") if one.is_file() and one.name not in beside)


def test_every_one_of_300_flipped_bits_is_noticed_and_no_tensor_is_silently_different(whole):
    rng, networks = random.Random(0), survival.networks(whole)
    for _ in range(300):
        path = rng.choice(files_of(whole))
        data = bytearray(path.read_bytes())
        bit = rng.randrange(8 * len(data))
        data[bit >> 3] ^= 1 << (bit & 7)
        survival.damaged(whole, path, bytes(data), networks)


def test_every_truncation_is_noticed(whole):
    networks = survival.networks(whole)
    for path in files_of(whole):
        data = path.read_bytes()
        for length in {0, 1, len(data) // 2, len(data) - 1}:
            survival.damaged(whole, path, data[:length], networks)


def test_the_newest_whole_checkpoint_is_used_with_a_message_and_the_damaged_one_goes(whole, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    newest, older = find(run)[0][-1], find(run)[0][-2]
    (newest.path / "networks.safetensors").write_bytes(b"")
    assert main(["verify", str(run)]) == 1
    assert f"damaged {newest.path.name}" in capsys.readouterr().err
    agent = td3.load(run)
    assert agent.step == older.step and "is not what was written" in agent.notes[0]
    events = list(td3.resume(run))
    assert events[1].step == older.step and "Passed over" in events[1].notes[0]
    assert survival.fingerprint(run) == survival.fingerprint(whole)
    assert not newest.path.exists() and main(["verify", str(run)]) == 0


def test_a_second_writer_is_told_who_has_the_run(tmp_path, capsys):
    run = tmp_path / "run"
    events = td3.train(survival.config(), run)
    next(events)
    assert main(["resume", str(run)]) == 2
    text = capsys.readouterr().err
    check_names(text, "run", UNSAID, os.getpid(), socket.gethostname())
    events.close()
    assert main(["resume", str(run), "--quiet"]) == 0


def test_a_run_can_be_copied_moved_and_renamed(whole, tmp_path):
    moved = tmp_path / "somewhere" / "else, entirely"
    shutil.copytree(whole, moved)
    assert main(["verify", str(moved)]) == 0
    list(td3.resume(moved, steps=survival.STEPS + 50))
    assert td3.load(moved).step == survival.STEPS + 50


EXECUTE = b"cos\nsystem\n(S'touch %s'\ntR."


def hostile_files(canary):
    pickle_bytes = EXECUTE % str(canary).encode()
    header = b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return {
        "a pickle": pickle_bytes,
        "an object array": b"\x93NUMPY\x01\x00\x46\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
        + pickle_bytes,
        "a huge header": (2**62).to_bytes(8, "little") + b"{}",
        "a header beyond the file": (10**6).to_bytes(8, "little") + header,
        "offsets beyond the file": len(header).to_bytes(8, "little") + header,
        "a deep header": (200_000).to_bytes(8, "little") + b"[" * 200_000,
        "nothing": b"",
    }


@pytest.mark.parametrize("name", list(hostile_files("x")))
@pytest.mark.parametrize(
    "file", ["networks.safetensors", "optimizers.safetensors", "playing.safetensors", "state.json"]
)
def test_hostile_files_with_right_hashes_execute_nothing(whole, tmp_path, name, file):
    run, canary = tmp_path / "run", tmp_path / "canary"
    shutil.copytree(whole, run)
    for older in find(run)[0][:-1]:
        shutil.rmtree(older.path)
    (newest(run) / file).write_bytes(hostile_files(canary)[name])
    seal(run)
    assert main(["resume", str(run), "--quiet"]) in (1, 2)
    if file in ("networks.safetensors", "state.json"):
        assert main(["evaluate", str(run)]) in (1, 2)
        with pytest.raises(td3.TD3Error):
            td3.load(run)
    main(["verify", str(run)])
    assert not canary.exists()


@pytest.mark.parametrize("trick", ["link", "pipe", "folder", "outside", "absolute"])
def test_links_pipes_and_paths_that_leave_the_run_are_not_followed(whole, tmp_path, trick):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    for older in find(run)[0][:-1]:
        shutil.rmtree(older.path)
    (newest,) = find(run)[0]
    networks = newest.path / "networks.safetensors"
    if trick in ("outside", "absolute"):
        stolen = tmp_path / "secret.safetensors"
        shutil.copy(run / "memory" / newest.manifest.segments[0].name, stolen)
        manifest = json.loads((newest.path / "manifest.json").read_text())
        manifest["segments"][0]["name"] = str(stolen) if trick == "absolute" else "../../secret.safetensors"
        (newest.path / "manifest.json").write_text(json.dumps(manifest))
        digest = hashlib.sha256((newest.path / "manifest.json").read_bytes()).hexdigest()[:16]
        newest.path.rename(newest.path.with_name(f"{newest.path.name[:9]}-{digest}"))
    else:
        data = networks.read_bytes()
        networks.unlink()
        (tmp_path / "elsewhere").write_bytes(data)
        {
            "link": lambda: networks.symlink_to(tmp_path / "elsewhere"),
            "pipe": lambda: os.mkfifo(networks),
            "folder": networks.mkdir,
        }[trick]()
    assert main(["verify", str(run)]) == 1
    assert main(["resume", str(run), "--quiet"]) == 1


def test_a_few_random_kills_from_outside_change_nothing(tmp_path):
    kills = survival.kill_and_resume(tmp_path, kills=2, seed=1, steps=2_000)
    assert kills["killed"] == 2 and kills["inside a save"] >= 1 and kills["finished"] >= 1
    assert kills["different"] == 0 and kills["not resumable"] == 0


def test_twice_ctrl_c_leaves_at_once(tmp_path):
    words = [
        "train",
        "--steps",
        "1000000",
        "--warmup-steps",
        "900000",
        "--eval-every",
        "10",
        "--eval-episodes",
        "100000",
    ]
    process = subprocess.Popen([*TD3, *words, "--run", "r"], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for line in process.stderr:
        if line.startswith("Memory"):
            break
    while "probe/" not in (tmp_path / "r" / "metrics.jsonl").read_text():  # the evaluation begins, and lasts
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "once more" in line:
            process.send_signal(signal.SIGINT)
            break
    assert process.wait() == 130
    process.stderr.close()


def test_weights_differ_from_those_at_the_start_so_that_equality_means_something(whole, tmp_path):
    list(td3.train(survival.config(steps=1), tmp_path / "begun"))
    ours, first = survival.networks(whole), survival.networks(tmp_path / "begun")
    assert not np.array_equal(ours["actor.layers.0.weight"], first["actor.layers.0.weight"])
    assert Path(whole).is_dir()
