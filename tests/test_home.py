"""Runs that train elsewhere come home: whole at every instant, in the names that training gives, to the same bytes."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import runs
from refusals import refusal

import td3
from td3.config import Config
from td3.errors import RunError
from td3.events import Finished, Saved
from td3.storage import disk, verify
from td3.storage.home import HomeFolder, NotSaved, checked
from td3.storage.names import is_place
from td3.storage.scratch import Scratch

SMALL = {**runs.SMALL, "env": "example_envs:Drifting", "checkpoint_every": 30, "keep_last": 2, "threads": 1}


class Cut(BaseException):
    """What is under way ends here, as if the power were cut."""


@pytest.fixture
def alone(tmp_path_factory):
    """The same run, trained where it is kept."""
    path = tmp_path_factory.mktemp("alone") / "run"
    list(td3.train(Config(**SMALL), path))
    return path


def home_at(path):
    return HomeFolder(path, SMALL["keep_last"], Config(**SMALL).keep_best)


def whole(path):
    """Whether every checkpoint of a folder is whole, or there is no run yet."""
    return not path.exists() or not any(verify(path).values())


def brought(home, place, fetching=lambda scratch: scratch.read, every=False, **changes):
    """Trains in a temporary folder in `place`, and takes home what is new after each checkpoint, or each event.

    What is home continues, with `changes`. `fetching` makes what reads from the temporary folder.
    """
    scratch = Scratch(place)
    fetch = fetching(scratch)
    parts = home.begin()
    for part in parts:
        for piece in home.read(part):
            scratch.put(part.place, piece)
    if parts:
        scratch.begin_again()
    events = td3.resume(scratch.run, trust=True, **changes) if parts else td3.train(Config(**SMALL), scratch.run)
    sent = []
    with events:
        for event in events:
            if every or isinstance(event, Saved | Finished):
                sent = home.take(scratch.news(sent), fetch)
    home.take(scratch.news(sent), fetch)


def test_a_run_of_which_only_metrics_came_home_is_begun_again_and_one_that_lost_its_checkpoints_is_not(alone, tmp_path):
    path, config = tmp_path / "run", Config(**SMALL)
    home, scratch = home_at(path), Scratch(tmp_path)
    list(td3.train(config, scratch.run))
    home.begin()
    home.take(scratch.news([])._replace(checkpoints={}), scratch.read)  # killed before the first checkpoint came
    home.close()
    assert len((path / "metrics.jsonl").read_bytes().splitlines()) > 5 and not names_in(path, "checkpoints")
    list(td3.resume(path, trust=True))
    assert runs.contents(path) == runs.contents(alone)

    other = home_at(tmp_path / "other")
    other.begin()
    other.take(scratch.news([]), scratch.read)
    other.close()
    shutil.rmtree(tmp_path / "other/checkpoints")
    (tmp_path / "other/checkpoints").mkdir()
    with refusal(RunError, "checkpoint"):
        list(td3.resume(tmp_path / "other", trust=True))


def names_in(run, folder):
    return sorted(path.name for path in (run / folder).iterdir())


def test_a_run_that_comes_home_has_the_bytes_of_one_trained_there_and_was_whole_all_the_time(alone, tmp_path):
    home, path, seen = home_at(tmp_path / "home/run"), tmp_path / "home/run", []

    def fetching(scratch):
        def fetch(place, start, size):
            assert whole(path)
            seen.append(place)
            return scratch.read(place, start, size)

        return fetch

    brought(home, tmp_path, fetching, every=True)
    home.close()
    assert len(seen) > 20 and all(map(is_place, seen))
    assert runs.contents(path) == runs.contents(alone)
    steps = [[int(name.split("-")[0]) for name in names_in(run, "checkpoints")] for run in (path, alone)]
    assert steps[0] == steps[1] and len(steps[0]) >= 2
    assert (path / "config.json").read_bytes() == (alone / "config.json").read_bytes()
    assert [*map(int, (name.split("-")[0] for name in names_in(path, "memory")))] == [
        int(name.split("-")[0]) for name in names_in(alone, "memory")
    ]


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 8, 9, 11, 14, 17])
def test_a_node_that_is_lost_at_any_call_costs_nothing_but_time(calls, alone, tmp_path):
    path, seen = tmp_path / "run", []

    def fetching(scratch):
        def fetch(place, start, size):
            seen.append(place)
            if len(seen) > calls:
                raise Cut
            return scratch.read(place, start, size)

        return fetch

    home = home_at(path)
    with pytest.raises(Cut):
        brought(home, tmp_path, fetching)
    assert whole(path)
    brought(home, tmp_path)  # the same home, and another node
    home.close()
    assert runs.contents(path) == runs.contents(alone) and whole(path)


@pytest.mark.parametrize("act", [1, 4, 7, 12, 18, 24, 31, 39, 48])
def test_a_driver_that_dies_at_any_act_on_the_disk_leaves_a_whole_folder_that_continues(
    act, alone, tmp_path, monkeypatch
):
    path, acts, usual = tmp_path / "home/run", [0], disk._fault
    home, scratch = home_at(path), Scratch(tmp_path)
    list(td3.train(Config(**{**SMALL, "steps": 60}), scratch.run))

    def cut(moment, what):
        acts[0] += 1
        if acts[0] == act:
            raise Cut

    monkeypatch.setattr(disk, "_fault", cut)
    home.begin()
    try:
        home.take(scratch.news(), scratch.read)
        assert acts[0] < act
    except Cut:
        pass
    monkeypatch.setattr(disk, "_fault", usual)
    home.close()
    assert whole(path)
    again = home_at(path)
    brought(again, tmp_path, steps=120) if path.exists() else brought(again, tmp_path)
    again.close()
    assert runs.contents(path)[:2] == runs.contents(alone)[:2] and whole(path)  # its record says that steps changed


@pytest.mark.parametrize("room", [0, 2, 3, 5, 9])
def test_a_full_disk_at_home_is_said_and_what_is_new_is_taken_in_later(room, alone, tmp_path, monkeypatch):
    home, scratch = home_at(tmp_path / "run"), Scratch(tmp_path)
    home.begin()
    list(td3.train(Config(**SMALL), scratch.run))
    writes = []

    def full(moment, act):
        writes.extend([act] * ((moment, act) == ("before", "write")))
        if len(writes) > room:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as change:
        change.setattr(disk, "_fault", full)
        for _ in range(2):
            with refusal(NotSaved, None, str(tmp_path / "run"), "No space left on device"):
                home.take(scratch.news(), scratch.read)
            assert whole(tmp_path / "run")
    assert home.take(scratch.news(), scratch.read)
    home.close()
    assert runs.contents(tmp_path / "run") == runs.contents(alone)


def test_rows_of_metrics_wait_for_a_checkpoint_that_came_before_them(tmp_path):
    home, scratch = home_at(tmp_path / "run"), Scratch(tmp_path)
    home.begin()
    list(td3.train(Config(**SMALL), scratch.run))

    def without_rows(place, start, size):
        if place.startswith("memory/"):
            raise Cut
        return scratch.read(place, start, size)

    news = scratch.news()
    with pytest.raises(Cut):
        home.take(news, without_rows)
    first = min(news.checkpoints.values(), key=lambda data: json.loads(data)["step"])
    assert (tmp_path / "run/metrics.jsonl").stat().st_size == json.loads(first)["record"]["size"]
    home.close()


def test_a_checkpoint_is_held_for_home_while_the_run_removes_it(tmp_path):
    scratch, held = Scratch(tmp_path), {}
    with td3.train(Config(**SMALL), scratch.run) as events:
        for event in events:
            if isinstance(event, Saved) and not held:
                held = scratch.news().checkpoints
    (name,) = held
    assert name not in names_in(scratch.run, "checkpoints")
    files = json.loads(held[name])["files"]
    for file, known in files.items():
        assert (
            hashlib.sha256(scratch.read(f"checkpoints/{name}/{file}", 0, known["size"])).hexdigest() == known["sha256"]
        )
    scratch.news([name])
    with pytest.raises(RunError):
        scratch.read(f"checkpoints/{name}/state.json", 0, 10)
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_what_arrives_damaged_gets_no_name(tmp_path):
    home, scratch = home_at(tmp_path / "run"), Scratch(tmp_path)
    home.begin()
    list(td3.train(Config(**SMALL), scratch.run))

    def damaged(place, start, size):
        data = scratch.read(place, start, size)
        return data[:-1] + bytes([data[-1] ^ 1]) if place.endswith("networks.safetensors") else data

    with refusal(RunError, None, "networks.safetensors"):
        home.take(scratch.news(), damaged)
    home.close()
    assert not any(name[0].isdigit() for name in names_in(tmp_path / "run", "checkpoints"))


NOWHERE = ["../../etc/passwd", "/etc/passwd", "x", "lock", ".tmp-x", "manifest.json", "a/b", ""]


@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize("part", ["files", "run", "segments"])
def test_a_manifest_that_names_anything_else_than_a_runs_files_is_refused(part, name):
    known = {"size": 1, "sha256": "0" * 64}
    manifest = {
        "format": 1, "serial": 1, "step": 5, "updates": 0, "score": None, "threads": 1, "versions": {}, "files": {},
        "segments": [], "record": known, "run": {},
    }  # fmt: skip
    if part == "segments":
        manifest["segments"] = [{"name": name, "first": 0, "end": 1, **known}]
    else:
        manifest[part] = {name: known}
    data = json.dumps(manifest).encode()
    with refusal(RunError, None, repr(name)):
        checked(f"000000005-{hashlib.sha256(data).hexdigest()[:16]}", data)


@pytest.mark.parametrize("name", ["000000005-0123456789abcdef", "5", "../x", "000000006-{}"])
def test_a_manifest_that_is_not_its_checkpoints_is_refused(name):
    data = b'{"format": 1}'
    with refusal(RunError):
        checked(name.format(hashlib.sha256(data).hexdigest()[:16]), data)


@pytest.mark.parametrize(
    "place", [*NOWHERE, "memory/../x", "checkpoints/x/state.json", "checkpoints/../state.json", "film.webp/x"]
)
def test_a_node_reads_and_writes_files_of_the_run_alone(place, tmp_path):
    scratch = Scratch(tmp_path)
    for act in (lambda: scratch.read(place, 0, 10), lambda: scratch.put(place, b"x")):
        with refusal(RunError, None, repr(place)):
            act()
    assert not scratch.run.exists()


def test_modules_of_the_user_are_written_below_the_folder_of_code_alone(tmp_path):
    scratch = Scratch(tmp_path)
    scratch.write_code({"a.py": b"1", "b/c.py": b"2"})
    assert {path.relative_to(scratch.code).as_posix() for path in scratch.code.rglob("*.py")} == {"a.py", "b/c.py"}
    for place in ("../x.py", "/x.py", "a/../../x.py"):
        with refusal(RunError, None, repr(place)):
            scratch.write_code({place: b""})
    assert not Path("/x.py").exists()
