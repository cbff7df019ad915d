"""Nothing is lost: other people's files, runs that are moved or interrupted, evaluations, a damaged memory."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from example_envs import Drifting
from refusals import UNSAID, check_names, refusal

import td3
from bench import survival
from bench.forging import forge, newest, seal
from td3.loop import advance
from td3.session import Session
from td3.storage import RunFolder, disk, read_metrics, verify
from td3.storage.checkpoint import find
from td3.views.cli import main


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "run"
    list(td3.train(survival.config(), folder))
    return folder


@pytest.fixture
def run(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


# ---- other people's files ----


@pytest.mark.parametrize("part", ["memory", "checkpoints"])
def test_a_link_in_place_of_a_folder_is_refused_and_nothing_behind_it_is_touched(run, tmp_path, part):
    canary = tmp_path / "canary"
    (run / part).rename(canary)
    (canary / "thesis.txt").write_text("mine")
    (run / part).symlink_to(canary)
    before = {one: one.stat().st_mtime_ns for one in canary.rglob("*")}
    for command in (["resume", str(run), "--steps", "150"], ["evaluate", str(run)], ["verify", str(run)]):
        assert main(command) == 2
    for call in (td3.load, lambda run: list(td3.resume(run))):
        with refusal(td3.ConfigError, part):
            call(run)
    assert {one: one.stat().st_mtime_ns for one in canary.rglob("*")} == before


def test_pruning_removes_only_what_it_wrote(run, tmp_path):
    newest = find(run)[0][-1]
    copied = run / "checkpoints" / f"{newest.path.name}-copy"
    shutil.copytree(newest.path, copied)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(newest.path, elsewhere)
    (run / "checkpoints" / "000000001-0123456789abcdef").symlink_to(elsewhere)
    for folder in (run / "checkpoints", run / "memory", newest.path):
        (folder / "notes.txt").write_text("mine")
    list(td3.resume(run, steps=400))
    assert [one.step for one in find(run)[0]][-1] == 400 and newest.path not in [one.path for one in find(run)[0]]
    for path in ("checkpoints", "memory", f"checkpoints/{newest.path.name}-rest"):
        assert (run / path / "notes.txt").read_text() == "mine"
    assert len(list((run / "checkpoints" / f"{newest.path.name}-rest").iterdir())) == 1  # what was ours is gone
    assert len(list(copied.iterdir())) == len(list(elsewhere.iterdir())) == 5


@pytest.mark.parametrize("name", ["metrics.jsonl", "lock"])  # and updates.jsonl, which is only not written then
def test_a_hard_link_of_a_file_that_is_written_is_refused(run, tmp_path, name):
    """An archive can bring one to any file of its reader."""
    (run / name).unlink()
    (tmp_path / "mine").write_text("0123456789")
    os.link(tmp_path / "mine", run / name)
    with refusal(td3.TD3Error, name, UNSAID, "hard link"):
        list(td3.resume(run, steps=150))
    assert (tmp_path / "mine").read_text() == "0123456789"


def test_a_moved_run_is_saved_where_it_is_and_the_one_begun_in_its_place_is_left_alone(whole, tmp_path):
    place, moved = tmp_path / "run", tmp_path / "moved"
    events = td3.train(survival.config(), place)
    while next(events).step < 45:
        pass
    place.rename(moved)
    list(td3.train(survival.config(seed=1), place))
    before = {one: one.read_bytes() for one in place.rglob("*") if one.is_file()}
    list(events)
    assert {one: one.read_bytes() for one in place.rglob("*") if one.is_file()} == before
    assert survival.fingerprint(moved) == survival.fingerprint(whole) != survival.fingerprint(place)


def test_a_moved_run_knows_that_its_path_leads_elsewhere_and_makes_no_film_there(tmp_path):
    folder = RunFolder.create(tmp_path / "run", survival.config())
    assert folder.in_place()
    (tmp_path / "run").rename(tmp_path / "moved")
    assert not folder.in_place()
    RunFolder.create(tmp_path / "run", survival.config()).release()
    assert not folder.in_place()
    folder.release()


def test_a_run_whose_folder_is_removed_says_so_and_trains_on(tmp_path):
    place = tmp_path / "run"
    events = td3.train(survival.config(), place)
    while next(events).step < 45:
        pass
    shutil.rmtree(place)
    list(td3.train(survival.config(seed=1), place))
    rest = list(events)
    assert isinstance(rest[-1], td3.Finished) and rest[-1].step == survival.STEPS
    assert any("folder was removed" in event.reason for event in rest if isinstance(event, td3.SaveFailed))
    assert not list(verify(place).values())[-1]


# ---- interrupted anywhere ----


class Signalled(Drifting):
    """Ctrl-C arrives in the middle of a step, as often as asked for."""

    steps, at, times = 0, 47, 1

    def step(self, action):
        type(self).steps += 1
        if type(self).steps == self.at:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return super().step(action)


def interrupted(run, env=Drifting, body=lambda event: None, **settings):
    """Trains until a KeyboardInterrupt leaves the loop; what was held until then is let go only now."""
    events = td3.train(survival.config(env=env, eval_every=0, **settings), run)

    def follow():
        for event in events:
            body(event)

    with pytest.raises(KeyboardInterrupt) as caught:
        follow()
    return events, caught.value


def uninterrupted(tmp_path, **settings):
    list(td3.train(survival.config(env=Drifting, eval_every=0, **settings), tmp_path / "never"))
    return survival.fingerprint(tmp_path / "never")


def test_ctrl_c_in_the_middle_of_a_step_waits_for_its_end_saves_and_is_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(Signalled, "steps", 0)
    _, problem = interrupted(tmp_path / "run", Signalled)
    assert find(tmp_path / "run")[0][-1].step == 47 and problem.saved.name.startswith("000000047-")
    assert "saved at step 47" in problem.__notes__[0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    list(td3.resume(tmp_path / "run", env=Drifting))
    ended = survival.fingerprint(tmp_path / "run", env="x")
    list(td3.train(survival.config(env=Drifting, eval_every=0), tmp_path / "never"))
    assert ended == survival.fingerprint(tmp_path / "never", env="x")


def test_ctrl_c_in_the_users_own_code_saves_before_it_is_raised(tmp_path):
    def body(event):
        if isinstance(event, td3.Stepped) and event.step == 53:
            signal.raise_signal(signal.SIGINT)

    events, _ = interrupted(tmp_path / "run", body=body)
    assert find(tmp_path / "run")[0][-1].step == 53  # though the loop is still open, as in a notebook
    events.close()
    list(td3.resume(tmp_path / "run", env=Drifting))
    assert survival.fingerprint(tmp_path / "run") == uninterrupted(tmp_path)


def test_ctrl_c_during_an_evaluation_is_raised_at_once_and_the_evaluation_is_made_up_for(tmp_path, monkeypatch):
    monkeypatch.setattr(Signalled, "steps", 0)
    monkeypatch.setattr(Signalled, "at", 40 + 2)
    settings = {"env": Signalled, "eval_every": 40, "eval_episodes": 2}
    with pytest.raises(KeyboardInterrupt):
        list(td3.train(survival.config(**settings), tmp_path / "run"))
    assert find(tmp_path / "run")[0][-1].step == 40 and evaluations(tmp_path / "run") == []
    list(td3.resume(tmp_path / "run", env=Signalled))
    assert evaluations(tmp_path / "run") == [40, 80, 100]


def test_a_second_ctrl_c_does_not_wait_and_what_is_saved_then_says_that_it_is_not_to_the_bit(tmp_path, monkeypatch):
    from td3.learner import Learner

    update = Learner.update

    def twice(learner, batch, noise):
        if learner.updates == 20:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return update(learner, batch, noise)

    monkeypatch.setattr(Learner, "update", twice)
    interrupted(tmp_path / "run", engine="torch")
    monkeypatch.undo()
    resumed = list(td3.resume(tmp_path / "run", env=Drifting))
    assert any("in the middle of an update" in note for note in resumed[1].notes)
    assert isinstance(resumed[-1], td3.Finished) and resumed[-1].updates == 70
    assert list(td3.resume(tmp_path / "run", steps=110, env=Drifting))[1].notes == ()


@pytest.mark.parametrize("problem", [RuntimeError("no more handles"), MemoryError(), SystemExit(3), ValueError("x")])
def test_any_exception_saves_on_its_way_out_and_says_so(tmp_path, monkeypatch, problem):
    from td3.collection import Collector

    play = Collector.collect

    def breaking(collector, policy):
        if collector.steps == 61:
            raise problem
        return play(collector, policy)

    monkeypatch.setattr(Collector, "collect", breaking)
    with pytest.raises(type(problem)) as caught:
        list(td3.train(survival.config(), tmp_path / "run"))
    assert caught.value.saved.name.startswith("000000061-") and "saved at step 61" in caught.value.__notes__[-1]
    monkeypatch.undo()
    list(td3.resume(tmp_path / "run"))
    list(td3.train(survival.config(), tmp_path / "never"))
    assert survival.fingerprint(tmp_path / "run") == survival.fingerprint(tmp_path / "never")


def test_an_exception_whose_save_fails_says_that_too(tmp_path, monkeypatch):
    monkeypatch.setattr(Signalled, "steps", 0)
    monkeypatch.setattr(Signalled, "at", 5)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "_sync", full)
    with refusal(td3.ConfigError, "run", str(tmp_path / "run"), "No space left"):
        list(td3.train(survival.config(env=Signalled), tmp_path / "run"))
    monkeypatch.undo()
    monkeypatch.setattr(Signalled, "at", 5)
    monkeypatch.setattr(Signalled, "steps", 0)
    events = td3.train(survival.config(env=Signalled, eval_every=0), tmp_path / "run")
    next(events)
    monkeypatch.setattr(disk, "_sync", full)
    with pytest.raises(KeyboardInterrupt) as caught:
        list(events)
    assert "No space left on device" in caught.value.save_problem and not hasattr(caught.value, "saved")


SCRIPT = """
import signal, sys, td3
from bench import survival
from bench.forging import forge, newest, seal
events = td3.train(survival.config(), sys.argv[1])
for event in events:
    if event.step == 55 and isinstance(event, td3.Stepped):
        {what}
"""


@pytest.mark.parametrize("what", ["signal.raise_signal(signal.SIGINT)", "raise LookupError('my bug')"])
def test_a_script_that_ends_in_its_loop_leaves_a_saved_run(tmp_path, what):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(what=what), str(tmp_path / "run")], capture_output=True, text=True
    )
    assert done.returncode not in (0, None) and "Exception ignored" not in done.stderr
    assert find(tmp_path / "run")[0][-1].step == 55


# ---- owed evaluations ----


class Failing(Drifting):
    """The evaluation environment's third step fails once."""

    made, broken = 0, True

    def __init__(self):
        super().__init__()
        type(self).made += 1
        self.evaluates, self.own = type(self).made == 2, 0

    def step(self, action):
        self.own += 1
        if self.evaluates and self.broken and self.own == 3:
            raise RuntimeError("the simulator's licence has expired")
        return super().step(action)


def evaluations(run):
    return [row["step"] for row in read_metrics(run / "metrics.jsonl") if "eval/mean_return" in row]


@pytest.mark.parametrize("every", [40, 1_000])  # on the way, and the last one
def test_an_evaluation_that_raises_is_made_up_for_after_resume(tmp_path, monkeypatch, every):
    settings = survival.config(env=Failing, eval_every=every, eval_episodes=2)
    monkeypatch.setattr(Failing, "made", 0)
    with refusal(td3.EnvironmentFailure, "environment", UNSAID, "licence has expired"):
        list(td3.train(settings, tmp_path / "run"))
    monkeypatch.setattr(Failing, "broken", False)
    assert evaluations(tmp_path / "run") == []
    list(td3.resume(tmp_path / "run", env=Failing))
    assert evaluations(tmp_path / "run") == ([40, 80, 100] if every == 40 else [100])
    list(td3.train(settings, tmp_path / "never"))
    assert survival.fingerprint(tmp_path / "run") == survival.fingerprint(tmp_path / "never")


# ---- damage ----


def test_metrics_are_read_in_pieces_so_that_a_resume_cuts_none_of_them(run, whole, monkeypatch):
    """The system reads at most 2 GiB at once; here, 100 bytes."""
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, place: pread(file, min(size, 100), place))
    assert (run / "metrics.jsonl").stat().st_size > 1_000
    list(td3.resume(run, steps=survival.STEPS + 10))
    kept = (run / "metrics.jsonl").read_bytes()
    assert kept.startswith((whole / "metrics.jsonl").read_bytes()) and not list(verify(run).values())[-1]


def damage(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_a_damaged_memory_can_be_given_up_loudly(run, capsys):
    segments = find(run)[0][-1].manifest.segments
    assert [(one.first, one.end) for one in segments] == [(0, 40), (40, 80), (80, 90), (90, 100)]
    damage(run / "memory" / segments[1].name)
    assert main(["resume", str(run), "--steps", "130"]) == 1
    assert "--without-memory" in capsys.readouterr().err
    events = list(td3.resume(run, steps=130, without_memory=True))
    assert events[1].step == 100
    check_names(events[1].notes[0], "rows", 40, 60)
    assert isinstance(events[-1], td3.Finished) and events[-1].updates == 100
    session = Session.of(run, None)
    assert session.learner.memory.written == 90  # the sixty, and thirty more
    session.close()
    assert not list(verify(run).values())[-1]
    assert main(["resume", str(run), "--steps", "140"]) == 0


@pytest.mark.parametrize("settings", [{}, {"n_step": 3, "num_envs": 2}, {"pixels": 8, "grey": True, "frame_stack": 2}])
def test_what_is_left_of_a_damaged_memory_is_linked_across_no_gap(tmp_path, settings):
    small = {"encoder_channels": (2,), "encoder_features": 4} if "pixels" in settings else {}
    run = tmp_path / "run"
    list(td3.train(survival.config(keep_last=1, keep_best=0, preset="author", **settings, **small), run))
    segments = find(run)[0][-1].manifest.segments
    for lost in (segments[0].name, segments[-1].name):
        damage(run / "memory" / lost)
    session = Session.resumed(run, {}, None, False, without_memory=True)
    memory = session.learner.memory
    left = sum(one.end - one.first for one in segments[1:-1])
    assert memory.written == left and session.lost == segments[0].end + segments[-1].end - segments[-1].first
    if memory.links:
        numbers = np.arange(left)
        before = memory.links.before(numbers)
        assert (before <= numbers).all() and ((before == -1) | (before >= 0)).all()
        orphans = np.flatnonzero(before == -1)
        assert 1 <= len(orphans) <= memory.columns["env"].max() + 1  # the first of each environment after the gap
    for _ in advance(session, survival.STEPS + 20):
        pass
    assert session.learner.updates > 0
    session.close()


@pytest.mark.parametrize("owed", [0, 1])
def test_a_run_goes_on_even_if_all_of_its_memory_is_damaged(run, owed):
    if owed:
        forge(run, lambda state: state.update(pending=[99, [], False], due=state["due"] + owed))
    for path in (run / "memory").iterdir():
        path.write_bytes(b"")
    events = list(td3.resume(run, steps=120, without_memory=True))
    check_names(events[1].notes[0], "rows", 100, 0)
    assert isinstance(events[-1], td3.Finished) and events[-1].step == 120


def test_an_edited_config_is_not_believed_and_not_signed(run):
    text = (run / "config.json").read_text()
    (run / "config.json").write_text(text.replace('"gamma": 0.98', '"gamma": 0.5'))
    assert (run / "config.json").read_text() != text
    events = list(td3.resume(run, steps=150))
    assert events[0].config.gamma == 0.98
    assert any(note.startswith("config.json was changed") for note in events[1].notes)
    assert "config.json" in list(verify(run).values())[-1]  # still said after 50 more steps
    (run / "config.json").write_text(text)
    assert not list(verify(run).values())[-1]


def test_a_missing_versions_file_does_not_stop_a_resume(run):
    (run / "versions.json").unlink()
    events = list(td3.resume(run, steps=130))
    assert isinstance(events[-1], td3.Finished)
    assert any(note.startswith("versions.json was changed or removed") for note in events[1].notes)


def test_verify_of_a_living_run_never_reports_what_was_pruned_as_damage(tmp_path, monkeypatch):
    run = tmp_path / "run"
    events = td3.train(survival.config(checkpoint_every=5, steps=5_000, warmup_steps=5_000, eval_every=0), run)
    while next(events).step < 60:
        pass
    digest, rounds = disk.digest, 0

    def meanwhile(path, size):
        """The run saves and prunes while each file is looked at, but for the last rounds."""
        if rounds < 5:
            step = next(events).step
            while next(events).step < step + 10:
                pass
        return digest(path, size)

    monkeypatch.setattr(disk, "digest", meanwhile)
    while rounds < 6:
        results = verify(run)
        assert set(results.values()) <= {""}
        rounds += 1
    assert len(results) == 2
    events.close()


# ---- strangers' folders ----


def test_a_sparse_file_of_tensors_is_not_read_into_memory(run):
    size = 2**28
    for older in find(run)[0][:-1]:
        shutil.rmtree(older.path)
    with (newest(run) / "networks.safetensors").open("r+b") as file:
        file.truncate(size)
    seal(run)
    assert not list(verify(run).values())[-1]  # the hashes agree
    for call in (td3.load, lambda run: list(td3.resume(run, steps=150))):
        with refusal(td3.RunError, "networks.safetensors", size):
            call(run)


@pytest.mark.parametrize(("name", "value"), [("workers", 9_999), ("num_envs", 99_999)])
def test_a_strangers_run_does_not_start_thousands_of_environments(run, name, value):
    forge(run, lambda state: state["config"].update({"num_envs": 99_999, name: value}))
    with refusal(td3.ConfigError, name, value, "--trust"):
        list(td3.resume(run))


FORGED = {
    "steps": lambda state: state["playing"].update(steps=10**8),
    "updates": lambda state: state.update(updates=-(10**8)),
    "due": lambda state: (state.update(due=1e300), state["config"].update(update_schedule="episode")),
    "pending": lambda state: state.update(due=1e300, pending=[99, [], False]),
    "ended": lambda state: state.update(pending=[1, [["x", None]], False]),
    "no number": lambda state: state.update(due="nan", pending=[99, [], False]),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_forged_counters_are_refused_before_they_owe_updates_for_ever(run, change):
    for older in find(run)[0][:-1]:
        shutil.rmtree(older.path)
    forge(run, change)
    with refusal(td3.RunError, newest(run).name):
        list(td3.resume(run, steps=110))


def test_playing_arrays_of_another_kind_are_refused(run, monkeypatch):
    from td3.storage.checkpoint import Checkpoint

    arrays = Checkpoint.arrays
    for name, change in {
        "returns": lambda array: array.astype(bool),
        "lengths": lambda array: array[:0],
        "observation": lambda array: array[:, :1],
        "actions.0": lambda array: array.astype(np.float64),
    }.items():
        monkeypatch.setattr(
            Checkpoint,
            "arrays",
            lambda chosen, *limits, name=name, change=change: {
                key: change(array) if key == name else array for key, array in arrays(chosen, *limits).items()
            },
        )
        with refusal(td3.RunError, name):
            list(td3.resume(run, steps=110))


# ---- what a review found ----


def test_without_memory_where_nothing_is_damaged_is_a_resume_like_any_other(tmp_path):
    settings = {"env": Drifting, "eval_every": 0, "buffer_size": 100, "steps": 270}
    for run in ("one", "other"):
        events = td3.train(survival.config(**settings), tmp_path / run)
        while next(events).step < 250:
            pass
        events.close()
        list(td3.resume(tmp_path / run, env=Drifting, without_memory=run == "other"))
        list(td3.resume(tmp_path / run, steps=300, env=Drifting))
    assert survival.fingerprint(tmp_path / "one") == survival.fingerprint(tmp_path / "other")


def test_a_forked_child_neither_saves_nor_prunes_nor_holds_the_lock(tmp_path):
    run = tmp_path / "run"
    events = td3.train(survival.config(keep_last=1, keep_best=0), run)
    while next(events).step < 41:
        pass
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent has gone on
        try:
            events.close()
        finally:
            os._exit(0)
    while next(events).step < 85:
        pass
    assert [one.step for one in find(run)[0]] == [80]
    events.close()
    list(td3.resume(run, steps=95))  # though the child has the lock's file open
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    assert [one.step for one in find(run)[0]] == [95]


def test_a_step_that_was_broken_off_is_tried_again_exactly(tmp_path, monkeypatch):
    step, calls = Drifting.step, []

    def breaking(env, action):
        calls.append(1)
        if len(calls) == 67:
            raise RuntimeError("a cable came loose")
        return step(env, action)

    monkeypatch.setattr(Drifting, "step", breaking)
    settings = survival.config(env=Drifting, eval_every=0)
    with refusal(td3.EnvironmentFailure, "Environment 0", UNSAID, "step 67", "a cable came loose"):
        list(td3.train(settings, tmp_path / "run"))
    assert find(tmp_path / "run")[0][-1].step == 66
    list(td3.resume(tmp_path / "run", env=Drifting))
    list(td3.train(settings, tmp_path / "never"))
    assert survival.fingerprint(tmp_path / "run") == survival.fingerprint(tmp_path / "never")


def test_a_checkpoint_that_cannot_be_opened_just_now_is_not_taken_for_a_damaged_one(run, monkeypatch):
    chosen, opened = newest(run), os.open

    def refusing(path, *given, **at):
        if str(path).endswith("networks.safetensors") and chosen.name in str(path):
            raise OSError(24, "Too many open files")
        return opened(path, *given, **at)

    monkeypatch.setattr(os, "open", refusing)
    with refusal(td3.RunError, "networks.safetensors", UNSAID, "Too many open files"):
        list(td3.resume(run, steps=150))
    assert td3.load(run).step < 100  # whoever only reads may take an older one
    monkeypatch.undo()
    assert list(td3.resume(run, steps=150))[1].step == 100


def test_old_checkpoints_that_cannot_be_removed_are_noted_and_the_new_one_counts(tmp_path, monkeypatch):
    def refusing(moment, act):
        if act == "remove":
            raise OSError(13, "Permission denied")

    monkeypatch.setattr(disk, "_fault", refusing)
    events = list(td3.train(survival.config(), tmp_path / "run"))
    assert not any(isinstance(event, td3.SaveFailed) for event in events)
    assert any("cannot be removed: Permission denied" in event.note for event in events if isinstance(event, td3.Noted))
    assert [event.step for event in events if isinstance(event, td3.Saved)] == [
        one.step for one in find(tmp_path / "run")[0]
    ]


def test_an_empty_folder_is_filled_and_stays_the_folder_it_is(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir(mode=0o700)
    before = (tmp_path / "here").stat()
    monkeypatch.chdir(tmp_path / "here")
    list(td3.train(survival.config(steps=40, eval_every=0), "."))
    after = (tmp_path / "here").stat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode) and (
        tmp_path / "here" / "config.json"
    ).exists()
    assert td3.load(".").step == 40


@pytest.mark.parametrize("path", [5, "a\0b", "x" * 5_000, None])
def test_what_is_no_path_is_refused_in_one_sentence(path):
    with refusal(td3.ConfigError, "run"):
        list(td3.resume(path))


def test_the_time_a_run_took_is_counted_once(tmp_path):
    agent = td3.TD3(Drifting, hidden=(8,), batch_size=8, warmup_steps=20, threads=1)
    agent.learn(40)
    seconds = agent._session.clock.seconds
    agent.save(tmp_path / "kept")
    assert 0 < find(tmp_path / "kept")[0][-1].state()["seconds"] == seconds


def test_a_run_whose_checkpoints_are_missing_is_not_begun_again_over_what_is_left_of_it(run):
    for path in (run / "checkpoints").iterdir():
        shutil.rmtree(path)
    before = (run / "metrics.jsonl").read_bytes()
    with refusal(td3.RunError, "run", str(run), "checkpoint", "step 100"):
        list(td3.resume(run))
    assert (run / "metrics.jsonl").read_bytes() == before and list((run / "memory").iterdir())
