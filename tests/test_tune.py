"""Searches: what a space may say, what a search proposes, how it continues after a kill, and what it leaves behind."""

import json
import math
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import runs
from folders import make_run, rows_of
from refusals import check_names, refusal

from bench.tuning import differences
from td3.config import SETTINGS, Config
from td3.config.search import Choices, Range
from td3.config.words import words_of
from td3.errors import ConfigError, RunError
from td3.machine import cores
from td3.storage import disk
from td3.storage.journal import Journal
from td3.studies import Driver, Ended
from td3.studies.space import TUNABLE, TUNED, default_space, nearest, settings_at, space_of
from td3.studies.tune_results import Confirmation, Confirmed, best_toml, csv_of
from td3.studies.tune_spec import TuneSpec, read_tune_spec, toml_of_search
from td3.studies.tuner import Asked, TrialEnded, Tuner
from td3.studies.tuning import best_of, distributions, ranked
from td3.views.cli import main
from td3.views.tune_display import data_of, verdict

TESTS = Path(__file__).parent
STEPS = 500


def spec_of(**changes):
    settings = {"steps": STEPS, "warmup_steps": 100}
    return TuneSpec.of({"env": "Pendulum-v1", "trials": 12, "settings": settings, **changes})


# --- The space --------------------------------------------------------------------------------------------------------


def test_every_range_of_a_setting_is_allowed_and_has_its_default():
    for name in TUNABLE:
        known = SETTINGS[name].search
        ends = known.values if isinstance(known, Choices) else (known.low, known.high)
        assert [SETTINGS[name].check(value) for value in ends] == list(ends)
        default = SETTINGS[name].default
        assert default in ends if isinstance(known, Choices) else known.low <= default <= known.high
    assert set(TUNED) < set(TUNABLE) and len(TUNED) == 6
    distributions({name: SETTINGS[name].search for name in TUNABLE})


def test_the_space_includes_what_the_task_has_and_leaves_out_what_is_fixed():
    swimmer = Config(env="Swimmer-v5", steps=100_000, actor_lr=0.02, warmup_steps=500)
    space = default_space(swimmer, {"tau", "warmup_steps"})
    assert space["gamma"].values[-1] == 0.9999
    assert (space["actor_lr"].low, space["actor_lr"].high) == (1e-4, 0.02)
    assert set(space) == set(TUNED) - {"tau", "warmup_steps"}


def test_a_warm_up_of_the_whole_run_is_not_searched():
    spec = TuneSpec.of({"env": "Ant-v5", "settings": {"steps": 4_000}})
    assert spec.space["warmup_steps"] == Range(100, 1_000, log=True)
    assert spec.default.warmup_steps == 25_000
    assert spec.moved() == {"warmup_steps": 1_000}
    assert "warmup_steps" not in TuneSpec.of({"env": "Ant-v5", "settings": {"steps": 200}}).space


def test_a_point_of_the_space_becomes_settings_with_three_digits():
    space = space_of(
        {
            "actor_lr": {"low": 1e-4, "high": 1e-2, "log": True},
            "target_noise": {"low": 0, "high": 0.5, "step": 0.1},
            "policy_delay": {"low": 1, "high": 4},
            "hidden": [[64, 64], [256]],
            "normalize_observations": [True, False],
        }
    )
    point = {
        "actor_lr": 0.00123456,
        "target_noise": 0.30000000000000004,
        "policy_delay": 3,
        "hidden": "256",
        "normalize_observations": False,
    }
    found = settings_at(space, point)
    assert found == {**point, "actor_lr": 0.00123, "target_noise": 0.3, "hidden": (256,)}
    assert settings_at(space, {**point, "actor_lr": 0.009999999})["actor_lr"] == 0.01


def test_the_first_trial_is_the_nearest_point_to_the_settings_there_are():
    config = Config(env="Pendulum-v1", policy_delay=9, target_noise=0.27, gamma=0.97, hidden=(7,), tau=0.01)
    space = space_of(
        {
            "policy_delay": {"low": 1, "high": 4},
            "target_noise": {"low": 0, "high": 0.5, "step": 0.1},
            "gamma": [0.9, 0.96, 0.99],
            "hidden": [[64], [32]],
            "tau": True,
        }
    )
    assert nearest(space, config) == {
        "policy_delay": 4,
        "target_noise": 0.3,
        "gamma": 0.96,
        "hidden": (64,),
        "tau": 0.01,
    }


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("", "space", "none"),
        ("hiden = [[8], [9]]", "hiden", "hidden"),
        ("seed = [1, 2]", "seed", [1, 2]),
        ("eval_every = [10, 20]", "eval_every", [10, 20]),
        ("lr = {low = 1e-4, high = 1e-2}", "lr", "actor_lr"),
        ("tau = 0.1", "tau", 0.1),
        ("tau = [0.1]", "tau", [0.1]),
        ("tau = [0.1, 0.1]", "tau", 0.1),
        ("tau = [0.1, 2]", "tau", 2),
        ("tau = {low = 0.1}", "tau", "{'low': 0.1}"),
        ("tau = {low = 0.2, high = 0.1}", "tau", 0.2),
        ("tau = {low = 0.1, high = 3}", "tau", 3),
        ("tau = {low = 0.1, high = 0.2, logg = true}", "tau", "log"),
        ("tau = {low = 0.1, high = 0.2, log = 1}", "tau", 1),
        ("tau = {low = 0.1, high = 0.2, log = true, step = 0.05}", "tau", 0.05),
        ("exploration_noise = {low = 0, high = 0.2, log = true}", "exploration_noise", 0),
        ("policy_delay = {low = 1, high = 5, step = 1.5}", "policy_delay", 1.5),
        ("policy_delay = {low = 1, high = 5, step = 9}", "policy_delay", 9),
        ("hidden = {low = 1, high = 5}", "hidden", "{'low': 1, 'high': 5}"),
        ("normalize_observations = true", "normalize_observations", True),
        ("= 3", None, "bad.toml"),
    ],
)
def test_a_bad_space_is_refused_with_the_files_name_and_nothing_is_written(
    text, field, value, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text(text)
    assert main(["tune", "Pendulum-v1", "--space", "bad.toml"]) == 2
    check_names(capsys.readouterr().err, field, value, "bad.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["Pendulum-v1", "--trials", "0"], "--trials", 0),
        (["Pendulum-v1", "--trials", "x"], "--trials", "x"),
        (["Pendulum-v1", "--seeds-per-trial", "0"], "--seeds-per-trial", 0),
        (["Pendulum-v1", "--sampler", "grid"], "sampler", "grid"),
        (["Pendulum-v1", "--pruner", "medain"], "pruner", "median"),
        (["Pendulum-v1", "--confirm", "0"], "--confirm", 0),
        (["Pendulum-v1", "--jobs", str(cores() + 1)], "--jobs", cores() + 1),
        (["Pendulum-v1", "--eval-every", "0"], "eval_every", 0),
        (["Pendulum-v1", "--gamma", "2"], "gamma", 2.0),
        (["Pendulum-v1", "--tau", "0.1", "--space", "good.toml"], "tau", 0.1),
        (["Pendulum-v1", "--space", "missing.toml"], None, "missing.toml"),
        (["Pendulum-v1", "--picture", "p.pdf"], "--picture", "p.pdf"),
        (["Pendulum-v1", "--tune", ""], "--tune", "''"),
        (["Pendulum-v1", "--config", "other.toml"], "env", "Pendulum-v1"),
        (["Pendulun-v1"], None, "Pendulun-v1"),
        (["CartPole-v1"], None, "Discrete(2)"),
        (["folder"], None, "folder"),
        (["Pendulum-v1", "--tune", "folder"], "tune", "folder"),
        (
            [
                *["Pendulum-v1", "--gamma", "0.9", "--tau", "0.1", "--actor-lr", "1e-3", "--critic-lr", "1e-3"],
                *["--exploration-noise", "0.1", "--warmup-steps", "100"],
            ],
            "space",
            "fixed",
        ),
    ],
)
def test_a_bad_command_line_is_refused_and_nothing_is_written(words, field, value, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("folder/thesis").mkdir(parents=True)
    Path("good.toml").write_text("tau = true")
    Path("other.toml").write_text('env = "Ant-v5"')
    assert main(["tune", *words]) == 2
    check_names(capsys.readouterr().err, field, value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "good.toml", "other.toml"]


def test_without_optuna_the_sentence_says_what_to_install(tmp_path, monkeypatch, capsys):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "optuna" else find(name))
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "Pendulum-v1"]) == 2
    check_names(capsys.readouterr().err, None, "optuna", "pip install")
    assert not list(tmp_path.iterdir())


def test_a_search_is_written_as_toml_that_reads_the_same(tmp_path):
    spec = spec_of(space={"tau": True, "hidden": [[8], [9, 9]], "policy_delay": {"low": 1, "high": 5, "step": 2}})
    (tmp_path / "tune.toml").write_bytes(toml_of_search(spec))
    assert read_tune_spec(tmp_path / "tune.toml") == spec
    assert read_tune_spec(tmp_path / "tune.toml").space["policy_delay"] == Range(1, 5, step=2)


# --- Trials, without training -----------------------------------------------------------------------------------------


def score(run):
    """What a run reaches: better with a learning rate near 0.002 and a gamma near 0.95, and the same for every seed."""
    config = run.config
    return -100 * abs(math.log10(config.actor_lr / 0.002)) - 300 * abs(config.gamma - 0.95) + config.seed


def curve(run):
    return [(step, score(run) * (1 + (STEPS - step) / STEPS)) for step in range(50, STEPS + 1, 50)]


class Trained:
    """A job that trains its run in no time, to evaluations that follow from the settings."""

    code = 0

    def __init__(self, path, run):
        shutil.rmtree(path, ignore_errors=True)
        rows = [{"step": step, "eval/mean_return": value} for step, value in curve(run)]
        make_run(path, rows, run.config.to_data(), goal=STEPS)
        state = {"config": {"steps": STEPS}, "judged": list(curve(run)[-1])}
        next(path.glob("checkpoints/*/state.json")).write_text(json.dumps(state))

    def send(self, number): ...

    def end(self): ...


class Failing(Trained):
    """A job that fails."""

    code = 1

    def __init__(self, path, run): ...

    def problem(self):
        return "the gripper is stuck"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("td3.studies.driver.TICK", 0)


def searched(path, spec, start=Trained, jobs=1, leave_at=None):
    """Runs a search without training; leaves it at its event number `leave_at`, as a kill would."""
    seen = []
    with Tuner(path, spec) as tuner:
        driver = Driver(tuner, jobs, lambda run: start(tuner.path_of(run), run))
        for event in tuner.events(driver):
            seen.append(event)
            if len(seen) == leave_at:
                break
        return tuner.search.trials(), seen


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """An undisturbed search of 16 trials."""
    path = tmp_path_factory.mktemp("alone") / "t"
    before = pytest.MonkeyPatch()
    before.setattr("td3.studies.driver.TICK", 0)
    trials, _ = searched(path, spec_of(trials=16))
    before.undo()
    return path, trials


def test_the_first_trial_is_the_default_and_the_search_finds_better(alone):
    _, trials = alone
    assert trials[0].settings == {name: getattr(Config(), name) for name in trials[0].settings}
    assert [trial.number for trial in trials] == list(range(16))
    assert len({tuple(trial.settings.items()) for trial in trials}) == 16
    best = best_of(trials)
    assert best.value == max(trial.value for trial in trials if trial.state == "complete") > trials[0].value
    assert ranked(trials)[0] == best


def test_the_importance_of_settings_is_known_after_ten_complete_trials(tmp_path):
    spec = spec_of(trials=40, sampler="random")  # of a sampler that stays near what is good, most trials are alike
    searched(tmp_path / "t", spec)
    with Tuner(tmp_path / "t", spec) as tuner:
        shares = tuner.search.importance()
        assert sum(trial.state == "complete" for trial in tuner.search.trials()) >= 10
    assert next(iter(shares)) == "actor_lr" and sum(shares.values()) == pytest.approx(1)
    searched(tmp_path / "few", spec_of(trials=6))
    with Tuner(tmp_path / "few", spec_of(trials=6)) as tuner:
        assert tuner.search.importance() == {}


def test_the_value_of_a_trial_is_its_last_evaluation_and_pruned_ones_end_early(alone):
    _, trials = alone
    spec, pruned = spec_of(trials=16), [trial for trial in trials if trial.state == "pruned"]
    assert {trial.state for trial in trials} == {"complete", "pruned"} and len(pruned) >= 1
    for trial in trials:
        (run,) = spec.runs_of(trial.number, trial.settings)
        assert trial.reports == dict(curve(run)[: len(trial.reports)])
        assert trial.value == list(trial.reports.values())[-1]
        assert (max(trial.reports) < STEPS) == (trial.state == "pruned")
    assert min(trial.number for trial in pruned) >= 5 and min(max(trial.reports) for trial in pruned) >= STEPS // 3


def test_a_search_that_is_left_at_any_event_continues_to_the_same_trials(alone, tmp_path):
    path, trials = alone
    spec = spec_of(trials=16)
    events = len(searched(tmp_path / "whole", spec)[1])
    for leave_at in range(1, events, 5):
        place = tmp_path / str(leave_at)
        searched(place, spec, leave_at=leave_at)
        assert searched(place, spec)[0] == trials
    assert differences(place, path) == []


def test_a_search_continues_to_the_same_trials_from_a_journal_that_ends_at_any_line_or_within_one(alone, tmp_path):
    path, trials = alone
    lines = (path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    rows = list(map(json.loads, lines))
    assert len({row["op_code"] for row in rows}) >= 5  # the study, trials, their settings, reports, ends
    before_pruned = [number for number, row in enumerate(rows) if row.get("state") == 2]
    assert before_pruned
    for cut in sorted({*range(0, len(lines), 11), *before_pruned}):
        place = tmp_path / str(cut)
        shutil.copytree(path, place, ignore=shutil.ignore_patterns("lock"))
        torn = lines[cut][: len(lines[cut]) // 2] if cut % 2 else b""
        (place / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + torn)
        assert searched(place, spec_of(trials=16))[0] == trials


def test_more_trials_continue_a_search_as_if_they_had_been_asked_for_at_once(alone, tmp_path):
    _, trials = alone
    assert searched(tmp_path / "t", spec_of(trials=7))[0] == trials[:7]
    assert searched(tmp_path / "t", spec_of(trials=16))[0] == trials
    assert searched(tmp_path / "t", spec_of(trials=16))[1] == []


def test_another_seed_or_sampler_proposes_other_settings(alone, tmp_path):
    _, trials = alone
    for name, changes in {"seed": {"seed": 1}, "random": {"sampler": "random"}}.items():
        others = searched(tmp_path / name, spec_of(trials=13, **changes))[0]
        assert others[0].settings == trials[0].settings
        assert [one.settings for one in others[11:]] != [one.settings for one in trials[11:13]]


@pytest.mark.parametrize("pruner", ["hyperband", "none"])
def test_other_pruners_end_trials_or_none(pruner, tmp_path):
    trials, _ = searched(tmp_path / "t", spec_of(trials=10, pruner=pruner))
    assert ("pruned" in {trial.state for trial in trials}) == (pruner == "hyperband")


def test_a_trial_of_several_seeds_has_their_mean(tmp_path):
    spec = spec_of(trials=3, seeds_per_trial=3)
    trials, events = searched(tmp_path / "t", spec, jobs=2)
    for trial in trials:
        planned = spec.runs_of(trial.number, trial.settings)
        assert [run.config.seed for run in planned] == [0, 1, 2]
        assert trial.value == pytest.approx(sum(map(score, planned)) / 3) == pytest.approx(score(planned[1]))
    assert sum(isinstance(event, Ended) for event in events) == 9
    assert len(list((tmp_path / "t").glob("trial-*/seed-*"))) == 9


def test_a_failing_trial_keeps_its_sentence_and_the_others_continue(tmp_path):
    def start(path, run):
        return (Failing if path.parent.name == "trial-0002" else Trained)(path, run)

    trials, events = searched(tmp_path / "t", spec_of(trials=5), start)
    assert [trial.state for trial in trials] == ["complete", "complete", "failed", "complete", "complete"]
    assert trials[2].problem == "the gripper is stuck" and trials[2].value is None
    assert sum(isinstance(event, TrialEnded) for event in events) == sum(isinstance(one, Asked) for one in events) == 5


def test_a_search_in_which_the_first_trials_all_fail_is_stopped(tmp_path):
    trials, _ = searched(tmp_path / "t", spec_of(trials=30), Failing)
    assert [trial.state for trial in trials] == ["failed"] * 3


def test_what_is_begun_cannot_change_but_for_the_number_of_trials(tmp_path):
    searched(tmp_path / "t", spec_of(trials=1))
    for changes, field, then, now in [
        ({"settings": {"steps": 600, "warmup_steps": 100}}, "steps", 500, 600),
        ({"seed": 3}, "seed", 0, 3),
        ({"pruner": "none"}, "pruner", "median", "none"),
        ({"space": {"tau": [0.1, 0.2]}}, "space.tau", 0.05, 0.2),
    ]:
        with refusal(ConfigError, field), Tuner(tmp_path / "t", spec_of(**changes)):
            pass
        with pytest.raises(ConfigError, match=str(now)) as caught:
            Tuner(tmp_path / "t", spec_of(**changes)).check()
        assert str(then) in str(caught.value)


def test_a_second_driver_is_refused_with_the_first_ones_process(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Tuner("tunes/Pendulum-v1", TuneSpec.of({"env": "Pendulum-v1"})):
        assert main(["tune", "Pendulum-v1"]) == 2
        check_names(capsys.readouterr().err, "tune", "tunes/Pendulum-v1", os.getpid())


def test_a_journal_that_somebody_else_wrote_is_refused_in_one_sentence(tmp_path):
    searched(tmp_path / "t", spec_of(trials=1))
    journal = tmp_path / "t/journal.jsonl"
    foreign = b'{"op_code": 99, "worker_id": "a"}\n'
    for data, fact in [(b"{}\n", str(journal)), (b"{}\nx\n", 2), (foreign, str(journal)), (b"[]\n", 1)]:
        journal.write_bytes(data)
        with refusal(RunError, None, fact), Tuner(tmp_path / "t", spec_of()):
            pass


def test_a_torn_end_of_a_journal_is_cut_off_whatever_is_written_next(tmp_path):
    (tmp_path / "j").write_bytes(b'{"a":1}\n{"b":"a long row that was torn')
    journal = Journal(tmp_path / "j", disk.Folder.open(tmp_path))
    assert journal.rows(0) == [{"a": 1}] and (tmp_path / "j").read_bytes() == b'{"a":1}\n'
    journal.append([{"c": 3}])
    journal.close()
    assert (tmp_path / "j").read_bytes() == b'{"a":1}\n{"c":3}\n'


def test_a_journal_that_cannot_be_written_keeps_whole_lines(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "j", disk.Folder.open(tmp_path))
    journal.append([{"a": 1}])
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[: len(data) // 2], at))
    with refusal(RunError, None, "No space left on device"):
        journal.append([{"b": 2}])
    monkeypatch.undo()
    journal.append([{"c": 3}])
    journal.close()
    assert (tmp_path / "j").read_bytes() == b'{"a":1}\n{"c":3}\n'


# --- What a search leaves behind --------------------------------------------------------------------------------------


def test_the_table_has_every_trial_and_the_best_settings_train_and_study(alone, tmp_path, monkeypatch, capsys):
    _, trials = alone
    spec, best = spec_of(trials=16), best_of(trials)
    rows = [line.split(",") for line in csv_of(spec, trials).decode().splitlines()]
    assert rows[0][:5] == ["trial", "state", "value", "step", "gamma"] and len(rows) == 17
    assert float(rows[1 + best.number][2]) == best.value and int(rows[1 + best.number][0]) == best.number
    file = tmp_path / "best.toml"
    file.write_bytes(best_toml(spec, best))
    trained = Config.load(file, seed=0)
    found = spec.config(best.settings, 0)
    assert trained.to_data() == {**found.to_data(), "eval_every": 1_000, "film": True, "threads": 0}
    monkeypatch.chdir(tmp_path)
    assert main(["study", "best.toml", "--seeds", "1", "--print"]) == 0
    assert f"--actor-lr {best.settings['actor_lr']}" in capsys.readouterr().out


def test_runs_and_the_page_know_the_trials(alone, capsys):
    path, _ = alone
    assert len(rows_of(path)) == 16
    assert main(["runs", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 16


def test_the_best_is_confirmed_with_seeds_that_the_search_did_not_use(alone, tmp_path):
    path, trials = alone
    shutil.copytree(path, tmp_path / "t", ignore=shutil.ignore_patterns("lock"))
    with Tuner(tmp_path / "t", spec_of(trials=16)) as tuner:
        confirmation = Confirmation(tuner, best_of(trials), 3)
        assert len(confirmation.left()) == 6 and {run.config.seed for run in confirmation.runs} == {1, 2, 3}
        list(Driver(confirmation, 1, lambda run: Trained(confirmation.path_of(run), run)).events())
        assert confirmation.left() == []
        best, default = confirmation.results()
    assert (best.name, default.name) == (f"trial-{best_of(trials).number:04d}", "default")
    assert default.values == pytest.approx([trials[0].value + seed for seed in (1, 2, 3)])  # a seed adds its number
    assert best.mean == pytest.approx(best_of(trials).value + 2) and best.deviation == pytest.approx(1)


@pytest.mark.parametrize(
    ("best", "default", "facts"),
    [
        ([10.0, 12.0, 14.0], [1.0, 2.0, 3.0], ["better than the default", "10.0 ± 1.291"]),
        ([10.0, 12.0, 14.0], [9.0, 11.0, 14.0], ["better than the default", "sure"]),
        ([1.0, 3.0], [11.0, 13.0], ["do not confirm trial-0004", "the default is better by 10.0"]),
        ([12.0], [2.0], ["better than the default by 10.0", "one seed"]),
    ],
)
def test_fresh_seeds_say_how_much_better_the_best_is_and_how_sure_that_is(best, default, facts):
    groups = [Confirmed("trial-0004", {}, best), Confirmed("default", {}, default)]
    (sentence,) = verdict([data_of(one) for one in groups])
    assert [fact for fact in facts if fact not in sentence] == []


def test_a_picture_shows_the_trials(alone, tmp_path):
    from PIL import Image

    from td3.studies.tune_picture import draw_search

    _, trials = alone
    draw_search(spec_of(trials=16), trials, tmp_path / "p.png")
    with Image.open(tmp_path / "p.png") as picture:
        assert picture.width == 1650 and len(picture.convert("RGB").resize((200, 160)).getcolors(100_000)) > 100


# --- Whole searches ---------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder from which children find the environment of these tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))
    monkeypatch.syspath_prepend(str(TESTS))
    return tmp_path


def test_a_search_with_a_stopped_and_killed_driver_ends_as_an_undisturbed_one(place, capsys):
    flags = {name: value for name, value in runs.SMALL.items() if name not in ("env", "film")}
    words = ["tune", "interfering:Interfering", "--trials", "2", "--jobs", "1", *words_of(flags)]
    assert main([*words, "--tune", "alone", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    for name, step, code in [("SIGTERM", 50, 143), ("SIGKILL", 70, -9)]:
        Path("signal").write_text(f"{name} {step}")
        process = subprocess.run([sys.executable, "-m", "td3", *words], capture_output=True, text=True, check=False)
        assert process.returncode == code
        if code == 143:
            assert "td3 tune tunes/interfering-Interfering --jobs 1 --trust" in process.stderr
    folder = "tunes/interfering-Interfering"
    assert main(["tune", folder]) == 2  # its environment is Python code
    check_names(capsys.readouterr().err, "env", "interfering:Interfering", "--trust")
    assert main(["tune", folder, "--trust", "--json", "--picture", "p.svg"]) == 0
    report = json.loads(capsys.readouterr().out)
    same = ("trial", "state", "value", "step", "settings", "problem")
    assert [[row[name] for name in same] for row in report["trials"]] == [
        [row[name] for name in same] for row in alone["trials"]
    ]
    assert differences(Path(folder), Path("alone")) == []
    for number in range(2):
        run = Path(f"trial-{number:04d}/seed-0")
        assert runs.contents(folder / run) == runs.contents("alone" / run)
    assert tomllib.loads(Path(folder, "best.toml").read_text())["env"] == "interfering:Interfering"
    assert b"<svg" in Path("p.svg").read_bytes()
    best = report["best"]
    assert main(["train", "--config", f"{folder}/best.toml", "--threads", "1", "--run", "again", "--quiet"]) == 0
    assert runs.contents(Path("again"))[0] == runs.contents(Path(f"alone/trial-{best:04d}/seed-0"))[0]
