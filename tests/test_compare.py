"""`td3 compare`: which runs and evaluations count, what is said about them, and how it is written and plotted."""

import csv
import io
import json
import math
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import runs
from folders import append, make_run
from refusals import check_names, refusal

import td3
from td3 import results
from td3.config import Config
from td3.errors import ConfigError
from td3.results.comparison import compare
from td3.results.curves import curve_of
from td3.storage.study import StudyFolder
from td3.studies import Spec, Study
from td3.views.cli import main


def rows_of(returns, every=1_000, speed=100.0):
    """The rows of a record: training time and an evaluation, a thousand steps apart."""
    rows = []
    for number, value in enumerate(returns, 1):
        rows.append({"step": every * number, "time/steps_per_second": speed, "time/updates_per_second": speed})
        rows.append({"step": every * number, "eval/mean_return": value, "eval/std_return": 1.0})
    return rows


def forge(folder, returns, every=1_000, speed=100.0, **settings):
    """A run folder with these evaluations."""
    config = Config(**{"env": "Hopper-v5", "steps": 5_000, **settings}).to_data()
    return make_run(folder, rows_of(returns, every, speed), config)


def forge_study(folder, scores, env="Hopper-v5", steps=5):
    """A study: for each setting the last evaluations of its seeds, on a straight line from 0."""
    for name, values in scores.items():
        for seed, value in enumerate(values):
            returns = [value * step / steps for step in range(1, steps + 1)]
            forge(folder / env / name / f"seed-{seed}", returns, env=env, seed=seed)
    (folder / "study.toml").write_text("".join(f"[settings.{name}]\n" for name in scores))
    return folder


A, B = [100.0, 110.0, 120.0, 130.0], [200.0, 210.0, 220.0, 260.0]


@pytest.fixture
def study(tmp_path):
    """Two settings with four seeds each; b beats a with every seed."""
    return forge_study(tmp_path / "study", {"b": B, "a": A})


def compared(capsys, *words):
    """What `td3 compare … --json` answers."""
    assert main(["compare", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# --- Which evaluations count ------------------------------------------------------------------------------------------


def test_the_last_evaluation_of_each_seed_counts_and_the_first_setting_is_the_baseline(study):
    found = compare(study)
    (task,) = found.tasks
    assert (task.env, task.step, found.settings, found.baseline) == ("Hopper-v5", 5_000, ["b", "a"], "b")
    of_b, of_a = task.summaries
    assert (of_a.seeds, of_a.mean, of_a.median, of_a.iqm) == (4, 115.0, 115.0, 115.0)
    assert of_a.std == pytest.approx(np.std(A, ddof=1))
    assert (of_b.mean, of_b.iqm, of_b.median) == (222.5, 215.0, 215.0)
    assert of_a.versus.improvement == 0.0 and of_a.versus.difference == -107.5
    assert of_a.versus.p == of_a.versus.adjusted_p == pytest.approx(2 / 70)
    assert of_b.versus is None


def test_another_baseline_turns_the_comparison_round(study, capsys):
    (task,) = compared(capsys, study, "--baseline", "a")["environments"]
    of_b, of_a = task["settings"]
    assert of_b["versus"]["improvement"] == 1.0 and of_b["versus"]["difference"] == 107.5
    assert of_a["versus"] is None


def test_an_earlier_step_takes_the_evaluation_at_or_before_it(study):
    (task,) = compare(study, at=3_500).tasks
    assert task.groups["a"].values == pytest.approx(np.array(A) * 3 / 5)
    assert [score.step for score in task.groups["a"].scores] == [3_000] * 4


def test_the_last_evaluations_are_averaged(study):
    (task,) = compare(study, last=2).tasks
    assert task.groups["a"].values == pytest.approx(np.array(A) * 0.9)


def test_runs_of_different_lengths_are_compared_at_the_last_step_that_all_of_them_evaluated(tmp_path):
    long, short = forge(tmp_path / "l", [1, 2, 3, 4], seed=0), forge(tmp_path / "s", [5, 6], seed=1)
    found = compare([long, short])
    (task,) = found.tasks
    assert task.step == 2_000 and sorted(task.groups["author"].values) == [2, 6]
    assert "2,000" in found.notes[0] and "--at 4000 leaves out 1 run" in found.notes[0] and str(short) in found.notes[0]


def test_a_run_that_did_not_reach_the_step_is_left_out_by_name(tmp_path):
    long, short = forge(tmp_path / "l", [1, 2, 3, 4], seed=0), forge(tmp_path / "s", [5, 6], seed=1)
    found = compare([long, short], at=3_000)
    assert found.tasks[0].groups["author"].values.tolist() == [3]
    assert list(found.left_out) == [str(short)] and "2,000" in found.left_out[str(short)]
    assert str(short) in found.table()


def test_runs_without_numbers_are_left_out_by_name_and_the_others_are_compared(tmp_path):
    forge(tmp_path / "good", [1.0, 2.0], seed=0)
    forge(tmp_path / "none", [], seed=1)
    forge(tmp_path / "nan", [1.0, math.nan], seed=2)
    forge(tmp_path / "torn", [1.0, 3.0], seed=3)
    with (tmp_path / "torn/metrics.jsonl").open("a") as record:
        record.write('{"step": 3000, "eval/mean_ret')
    make_run(tmp_path / "broken").joinpath("config.json").write_text("{")
    found = compare(tmp_path)
    assert sorted(found.tasks[0].groups["author"].values) == [2.0, 3.0]
    assert sorted(Path(name).name for name in found.left_out) == ["broken", "nan", "none"]


def test_one_seed_counts_once_however_often_it_is_there(tmp_path):
    first = forge(tmp_path / "first", [1.0, 2.0], seed=0)
    shutil.copytree(first, tmp_path / "copy")
    append(tmp_path / "copy", rows_of([1.0, 2.0, 9.0])[-2:])
    found = compare([first, tmp_path, first], at=2_000)
    assert [score.run.path.name for score in found.tasks[0].groups["author"].scores] == ["copy"]  # it got further
    assert list(found.left_out) == [str(first)] and "seed 0" in found.left_out[str(first)]


# --- Groups -----------------------------------------------------------------------------------------------------------


def test_runs_outside_a_study_are_grouped_by_the_settings_in_which_they_differ(tmp_path):
    for seed in range(2):
        forge(tmp_path / f"a{seed}", [1.0], seed=seed, actor_lr=1e-3, threads=1)
        forge(tmp_path / f"b{seed}", [2.0], seed=seed, actor_lr=1e-4, checkpoint_every=700)
    groups = compare(tmp_path).tasks[0].groups
    assert {label: len(group.scores) for label, group in groups.items()} == {"actor_lr=0.001": 2, "actor_lr=0.0001": 2}


def test_a_preset_stands_for_what_follows_from_it(tmp_path):
    for preset in ("paper", "author"):
        forge(tmp_path / preset, [1.0], preset=preset)
    forge(tmp_path / "slow", [1.0], preset="author", tau=0.001)
    assert compare(tmp_path).settings == ["preset=author", "preset=paper", "preset=author tau=0.001"]


def test_what_a_task_chooses_for_itself_is_no_difference_between_settings(tmp_path):
    for env in ("Hopper-v5", "Pendulum-v1"):  # another warm-up and size of networks
        forge(tmp_path / env, [1.0], env=env)
    found = compare(tmp_path)
    assert found.settings == ["author"] and len(found.tasks) == 2


def test_a_label_leaves_out_what_follows_and_what_is_the_presets_own(tmp_path):
    forge(tmp_path / "a", [1.0])
    forge(tmp_path / "b", [1.0], hidden=(400, 300), warmup_steps=700)  # update_after and actor_hidden follow
    forge(tmp_path / "c", [1.0], n_step=3)
    assert compare(tmp_path).settings == ["author", "hidden=400,300 warmup_steps=700", "n_step=3"]


def test_long_labels_are_cut_and_stay_different(tmp_path):
    for number in range(3):
        forge(tmp_path / f"r{number}", [float(number)], env_args={"path": "x" * 200 + str(number)})
    settings = compare(tmp_path).settings
    assert len(set(settings)) == 3 and all(len(setting) <= 80 for setting in settings)


def test_ones_own_parts_are_a_setting(tmp_path):
    for name in ("mine:A", "mine:B"):
        run = forge(tmp_path / name[-1], [1.0])
        config = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps({**config, "parts": {"learner": name}}))
    assert compare(tmp_path).settings == ["learner=mine:A", "learner=mine:B"]


def test_settings_of_two_studies_with_one_name_are_the_same_only_if_they_are(tmp_path):
    for name, tau in (("one", 0.1), ("two", 0.2)):
        forge(tmp_path / name / "Hopper-v5/same/seed-0", [1.0], tau=tau)
        (tmp_path / name / "study.toml").write_text("[settings.same]\n")
    assert compare(tmp_path).settings == ["one/same", "two/same"]
    forge(tmp_path / "three/Hopper-v5/same/seed-1", [1.0], tau=0.1, seed=1)
    (tmp_path / "three/study.toml").write_text("broken")
    assert compare([tmp_path / "one", tmp_path / "three"]).settings == ["same"]


# --- Time -------------------------------------------------------------------------------------------------------------


def test_training_time_is_the_sum_over_rows_and_a_resumed_run_counts_its_time_once(tmp_path):
    rows = [
        {"step": 1_000, "time/steps_per_second": 100.0},
        {"step": 1_000, "eval/mean_return": 1.0},
        {"step": 2_000, "time/steps_per_second": 50.0},  # resumed at 1,500: the speed since then
        {"step": 2_500, "eval/mean_return": 2.0},
        {"step": 3_000, "time/steps_per_second": 25.0},
        {"step": 3_400, "eval/mean_return": 3.0},  # no row of time since: at the last speed
    ]
    make_run(tmp_path / "r", rows, Config(env="Hopper-v5").to_data())
    (run,) = compare(tmp_path / "r").tasks[0].groups["author"].runs
    assert run.seconds.tolist() == [10.0, 10.0 + 20.0 + 20.0, 10.0 + 20.0 + 40.0 + 16.0]


def test_a_record_without_times_has_none(tmp_path, capsys):
    make_run(tmp_path / "r", [{"step": 5, "eval/mean_return": 1.0}], Config(env="Hopper-v5").to_data())
    (task,) = compared(capsys, tmp_path / "r")["environments"]
    assert task["settings"][0]["seconds"] is None and task["settings"][0]["curves"]["time"] is None
    main(["compare", str(tmp_path / "r"), "--picture", str(tmp_path / "t.png"), "--against", "time"])
    assert (tmp_path / "t.png").stat().st_size > 5_000


def test_runs_are_compared_after_the_same_training_time(tmp_path, capsys):
    for seed in range(2):
        forge(tmp_path / f"fast{seed}", [1.0, 2.0, 3.0, 4.0], speed=100.0, seed=seed, tau=0.1)
        forge(tmp_path / f"slow{seed}", [5.0, 6.0 + seed], speed=25.0, seed=seed, tau=0.2)
    forge(tmp_path / "short", [9.0], seed=2, tau=0.2)
    found = compare(tmp_path, at="40s")
    (task,) = found.tasks
    assert {label: group.values.tolist() for label, group in task.groups.items()} == {
        "tau=0.1": [4, 4],
        "tau=0.2": [5, 5],
    }
    assert list(found.left_out) == [str(tmp_path / "short")]
    assert "Hopper-v5 after 40 s of training" in found.table() and "tau=0.2 was at step 1,000 then" in found.table()
    (task,) = compared(capsys, tmp_path, "--at", "0.35min")["environments"]
    assert (task["step"], task["seconds"]) == (None, 21.0)
    assert [one["mean"] for one in task["settings"]] == [2.0]  # no evaluation of the other was as early


def test_curves_end_where_the_first_run_ends_and_are_interpolated_in_time(tmp_path):
    forge(tmp_path / "a", [10.0, 20.0, 30.0], speed=100.0, seed=0)
    forge(tmp_path / "b", [20.0, 40.0], speed=50.0, seed=1)
    (task,) = compare(tmp_path).tasks
    steps = curve_of([task], "author")
    assert (steps.places.tolist(), steps.iqm.tolist(), steps.low) == ([1_000, 2_000], [15.0, 30.0], None)
    time = curve_of([task], "author", "time")
    assert (time.places[0], time.places[-1]) == (20.0, 30.0)  # the second begins at 20 s, the first ends at 30 s
    assert (time.iqm[0], time.iqm[-1]) == pytest.approx(((20 + 20) / 2, (30 + 30) / 2))


# --- Normalised scores ------------------------------------------------------------------------------------------------


def test_scores_are_normalised_by_published_figures(tmp_path):
    forge_study(tmp_path / "s", {"a": [19.0, 3226.0], "b": [3226.0, 3226.0]})
    found = compare(tmp_path, normalize="published")
    assert found.tasks[0].scaled(found.tasks[0].groups["a"].values) == pytest.approx([0.0, 1.0])
    assert found.tasks[0].summaries[1].mean == pytest.approx(1.0)


def test_scores_are_normalised_by_a_file_and_averaged_over_environments(tmp_path):
    forge_study(tmp_path / "s", {"a": [10.0, 20.0, 30.0], "b": [40.0, 50.0, 60.0]})
    forge_study(tmp_path / "s", {"a": [0.0, 1.0, 2.0], "b": [3.0, 4.0, 5.0]}, env="mine:Robot")
    (tmp_path / "ends.toml").write_text('["Hopper-v5"]\nlow = 0\nhigh = 100\n["mine:Robot"]\nlow = 0\nhigh = 10\n')
    found = compare(tmp_path / "s", normalize=tmp_path / "ends.toml")
    of_a, of_b = found.overall
    assert (of_a.seeds, of_a.mean, of_a.median) == (6, pytest.approx(0.15), pytest.approx(0.15))
    assert of_b.iqm == pytest.approx((0.4 + 0.4 + 0.5 + 0.5) / 4) and of_b.gap == pytest.approx(1 - 0.45)
    assert of_b.versus.improvement == 1.0 and of_b.versus.p == pytest.approx(2 / 400)
    assert all(one.mean_interval[0] <= one.mean <= one.mean_interval[1] for one in found.overall)


def test_scores_are_normalised_by_the_baseline(study):
    found = compare(study, normalize="baseline", baseline="a")
    of_b, of_a = found.tasks[0].summaries
    low = np.mean(A) / 5  # its first evaluation
    assert of_a.mean == pytest.approx(1.0) and of_b.mean == pytest.approx((222.5 - low) / (115.0 - low))


def test_without_a_common_scale_nothing_is_averaged_over_environments(tmp_path, capsys):
    for env in ("Hopper-v5", "Ant-v5"):
        forge_study(tmp_path / "s", {"a": A, "b": B}, env=env)
    found = compared(capsys, tmp_path / "s")
    of_b = found["overall"][1]
    assert of_b["mean"] is of_b["iqm"] is of_b["versus"]["difference"] is None
    assert of_b["versus"]["improvement"] == 1.0  # has no unit


# --- What is said -----------------------------------------------------------------------------------------------------


def test_three_seeds_cannot_be_distinguished_and_it_is_said_how_many_would_be_needed(tmp_path):
    forge_study(tmp_path / "s", {"a": A[:3], "b": B[:3]})
    (sentence,) = compare(tmp_path).verdicts()
    assert "cannot be distinguished with 3 and 3 seeds" in sentence and "about 4 seeds of each" in sentence
    assert "p = 0.100" in sentence and "so few" in sentence


def test_four_seeds_that_all_win_are_distinguished(study):
    (sentence,) = compare(study, baseline="a").verdicts()
    assert "b is better than a" in sentence and "p = 0.029" in sentence


def test_more_comparisons_ask_for_more(tmp_path):
    forge_study(tmp_path / "s", {"a": A, "b": B, "c": [score + 1 for score in B]})
    found = compare(tmp_path)
    assert [one.versus.adjusted_p for one in found.tasks[0].summaries[1:]] == pytest.approx([4 / 70, 4 / 70])
    assert found.comparisons == 2 and all("cannot" in sentence for sentence in found.verdicts())
    assert "corrected for 2 comparisons" in found.table()


def test_fewer_than_three_seeds_have_no_interval(tmp_path):
    forge_study(tmp_path / "s", {"a": A[:2], "b": B[:1]})
    of_a, of_b = compare(tmp_path).tasks[0].summaries
    assert of_a.iqm_interval is of_a.mean_interval is of_b.versus.improvement_interval is None
    assert of_b.versus.needed is None and of_b.std == 0.0


def test_versions_changed_settings_and_running_runs_are_noted(tmp_path):
    one, other = forge(tmp_path / "one", [1.0], seed=0), forge(tmp_path / "other", [2.0], seed=1)
    (one / "versions.json").write_text('{"mujoco": "3.3.0"}')
    (other / "versions.json").write_text('{"mujoco": "3.11.0"}')
    append(one, [{"step": 500, "changed": {"actor_lr": [1e-3, 1e-4]}}])
    lock = StudyFolder(other)  # has the lock of a run
    lock.open()
    notes = " ".join(compare(tmp_path).notes)
    lock.close()
    assert "mujoco: 3.11.0, 3.3.0" in notes and "actor_lr at step 500" in notes and f"{other} still trains" in notes


def test_published_figures_stand_below_with_version_and_source_unless_the_task_is_another(tmp_path, capsys):
    forge(tmp_path / "r", [500.0], every=100_000, steps=100_000)
    text = compare(tmp_path).table()
    assert "659.0 ± 752.0 at step 100,000 (Hopper-v1, 10 seeds" in text and "v1 to v4 are not v5" in text
    assert "Published" not in compare(tmp_path, published=False).table()
    forge(tmp_path / "changed", [500.0], every=100_000, steps=100_000, env_args={"ctrl_cost_weight": 1.0})
    assert compared(capsys, tmp_path / "changed")["environments"][0]["published"] == []


# --- How it is written ------------------------------------------------------------------------------------------------


def test_the_terminal_has_a_table_and_the_verdict(study, capsys):
    assert main(["compare", str(study), "--baseline", "a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Hopper-v5 at step 5,000"
    assert lines[1].split("  ")[0] == "setting" and lines[2].startswith("b            4  222.5 ± 26.3")
    assert any("b is better than a" in line for line in lines)


def test_a_run_that_failed_is_left_out_with_its_reason(tmp_path):
    for seed, rows in enumerate([[{"step": 500, "eval/mean_return": 1.0}], [{"step": 150, "failed": "It is stuck."}]]):
        make_run(tmp_path / f"run-{seed}", rows, Config(env="Hopper-v5", seed=seed, steps=500).to_data())
    (reason,) = results.compare(tmp_path).left_out.values()
    assert "failed at step 150: It is stuck" in reason


def test_markdown_and_csv_hold_the_same_numbers(study, capsys):
    assert main(["compare", str(study), "--format", "markdown"]) == 0
    assert "| a | 4 | 115.0 ± 12.9 |" in capsys.readouterr().out
    assert main(["compare", str(study), "--format", "csv"]) == 0
    of_b, of_a = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert float(of_a["mean"]) == 115.0 and float(of_a["p"]) == pytest.approx(2 / 70) and of_b["p"] == ""
    assert float(of_a["iqm_low"]) < 115.0 < float(of_a["iqm_high"]) and of_a["step"] == "5000"


def test_json_is_one_document_with_runs_and_curves(study, capsys):
    found = compared(capsys, study)
    own = found["environments"][0]["settings"][1]
    assert [run["return"] for run in own["runs"]] == A and own["seconds"] == 50.0
    assert own["curves"]["steps"]["places"] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert own["curves"]["steps"]["iqm"][-1] == 115.0
    assert json.loads(compare(study).to_json()) == found
    assert main(["compare", str(study), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_picture_has_the_same_bytes_each_time(study, tmp_path, ending):
    pictures = []
    for name in ("one", "two"):
        words = ["--picture", f"{tmp_path}/{name}.{ending}", "--profile", f"{tmp_path}/{name}-p.{ending}"]
        assert main(["compare", str(study), *words, "--format", "csv"]) == 0
        pictures.append([(tmp_path / f"{name}{part}.{ending}").read_bytes() for part in ("", "-p")])
    assert pictures[0] == pictures[1] and pictures[0][0] != pictures[0][1]
    first = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert all(picture.startswith(first) and len(picture) > 5_000 for picture in pictures[0])


def test_a_picture_shows_seeds_their_iqm_its_band_and_published_figures(tmp_path):
    from td3.results import pictures

    forge_study(tmp_path / "s", {"a": A, "b": B})
    for run in tmp_path.glob("s/*/*/*"):
        append(run, [{"step": 100_000, "eval/mean_return": 600.0}])
    found = compare(tmp_path)
    figure, (axes,) = pictures.new_figure(1)
    pictures.plot_chart(axes, found, found.tasks, "steps")
    thick = [line for line in axes.lines if line.get_linewidth() > 2]
    assert [line.get_label() for line in thick] == ["a: IQM of 4 seeds", "b: IQM of 4 seeds"]
    assert thick[0].get_ydata().tolist() == [23.0, 46.0, 69.0, 92.0, 115.0, 600.0]
    assert sum(line.get_linewidth() < 1 for line in axes.lines) == 8 and len(axes.collections) == 2
    levels = [line.get_ydata()[0] for line in axes.lines if "published" in str(line.get_label())]
    assert levels == [659, 597] and axes.get_xlim() == (0, 100_000)
    del figure


def test_hostile_names_are_shown_and_break_nothing(tmp_path, capsys):
    evil = "a\x1b[31m$x^{$ | \u202e<b> \U0001f600" + "y" * 300
    for seed in range(2):
        run = forge(tmp_path / f"r{seed}", [1.0, 2.0], seed=seed)
        config = json.loads((run / "config.json").read_text())
        config |= {"env": f"{evil}", "preset": evil if seed else 7, "tau": {"x": [None, 1e400]}, "extra": "\n"}
        (run / "config.json").write_text(json.dumps(config).replace("Infinity", "1"))
    rows = [{"step": "x"}, {"step": -5, "eval/mean_return": 1}, {"step": 10**30, "eval/mean_return": 1}]
    rows += [{"step": True, "eval/mean_return": 3}, {"step": 9, "eval/mean_return": "9"}, {"step": 3, "changed": 5}]
    append(tmp_path / "r0", [*rows, {"step": 2_000, "time/steps_per_second": -1.0}])
    with (tmp_path / "r0/metrics.jsonl").open("ab") as record:
        record.write(b'[1]\n\xff\xfe\n{"step": 7, "eval/mean_return": 1' + b"0" * 400 + b"}\n")
    for form in ("text", "markdown", "csv"):
        words = ["--picture", f"{tmp_path}/p.svg", "--profile", f"{tmp_path}/q.pdf", "--format", form]
        assert main(["compare", str(tmp_path), *words]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\u202e" not in out and "…" in out
    assert len(compared(capsys, tmp_path)["environments"][0]["settings"]) == 2


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["missing"], "RUN", "missing"),
        (["empty"], "RUN", "empty"),
        (["study", "--baseline", "c"], "--baseline", "c"),
        (["study", "--at", "0"], "--at", 0),
        (["study", "--at", "3days"], "--at", "3days"),
        (["study", "--at", "1.2.3s"], "--at", "1.2.3s"),
        (["study", "--at", "2h"], "--at", "7,200 s"),
        (["study", "--at", "6000"], "--at", "5,000"),
        (["study", "--at", "10"], "--at", "10"),
        (["study", "--last", "x"], "--last", "x"),
        (["study", "--last", "6"], None, "5 evaluations"),
        (["study", "--normalize", "all"], "--normalize", "all"),
        (["study", "--normalize", "missing.toml"], None, "missing.toml"),
        (["study", "--normalize", "scores.toml"], "low", "'x'"),
        (["pendulum", "--normalize", "published"], "--normalize", "Pendulum-v1"),
        (["study", "--normalize", "baseline", "--at", "1000"], "--normalize", "baseline"),
        (["study", "--format", "latex"], "--format", "latex"),
        (["study", "--json", "--format", "csv"], "--json", "csv"),
        (["study", "--against", "time"], "--against", "time"),
        (["study", "--picture", "p.svg", "--against", "hours"], "--against", "hours"),
        (["study", "--picture", "p.gif"], "--picture", "p.gif"),
        (["study", "--profile", "missing/p.svg"], "--profile", "missing/p.svg"),
    ],
)
def test_a_bad_command_line_is_refused_in_one_sentence_and_nothing_is_written(
    words, field, value, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    forge_study(Path("study"), {"a": A, "b": B})
    forge(Path("pendulum"), [1.0], env="Pendulum-v1")
    Path("empty").mkdir()
    Path("scores.toml").write_text('["Hopper-v5"]\nlow = "x"\nhigh = 3\n')
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main(["compare", *words]) == 2
    captured = capsys.readouterr()
    check_names(captured.err, field, value)
    assert captured.out == "" and sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("[other]", "Hopper-v5", "missing"),
        ('"Hopper-v5" = 3', "Hopper-v5", 3),
        ('["Hopper-v5"]\nlow = 1', "high", "None"),
        ('["Hopper-v5"]\nlow = 1\nhigh = inf', "high", "inf"),
        ('["Hopper-v5"]\nlow = 1\nhigh = 1', "low", 1),
        ('["Hopper-v5"]\nlow = 1\nhigh = 2\nheight = 3', "Hopper-v5", "height"),
        ("low = ", None, "TOML"),
    ],
)
def test_a_bad_file_of_scales_is_refused_with_its_name(text, field, value, study, tmp_path):
    (tmp_path / "ends.toml").write_text(text)
    with refusal(ConfigError, field, value, str(tmp_path / "ends.toml")):
        compare(study, normalize=tmp_path / "ends.toml")


def test_no_run_at_all_is_refused():
    with refusal(ConfigError, "RUN", "none"):
        compare([])


def test_without_matplotlib_a_picture_is_refused_with_what_to_install(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refusal(ConfigError, None, "matplotlib", "td3[plot]"):
        compare(study).plot(tmp_path / "p.svg")


# --- Whole studies ----------------------------------------------------------------------------------------------------


def test_thirty_settings_and_thirty_seeds_are_compared(tmp_path):
    rng = np.random.default_rng(0)
    forge_study(
        tmp_path / "many", {f"setting-{number}": rng.normal(100, 10, 3).tolist() for number in range(30)}, steps=2
    )
    forge_study(tmp_path / "deep", {"a": range(30), "b": range(20, 50)}, steps=2)
    found = compare(tmp_path / "many")
    assert len(found.tasks[0].summaries) == 30 and found.comparisons == 29
    found.plot(tmp_path / "many.png")
    (sentence,) = compare(tmp_path / "deep").verdicts()
    assert "b is better than a" in sentence


def test_the_documented_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    forge_study(Path("studies/networks"), {"author": A, "small": B})
    page = (Path(__file__).parents[1] / "docs/many-runs.md").read_text()
    (code,) = re.findall(r"```python\n(from td3 import results.*?)```", page, re.DOTALL)
    exec(code, {})
    assert "| small | 4 | 222.5" in capsys.readouterr().out and Path("networks.pdf").stat().st_size > 5_000


def test_a_study_that_was_trained_is_compared(tmp_path, capsys):
    small = {**runs.SMALL, "hidden": [8]}
    planned = Study(tmp_path / "s", Spec.of({**small, "seeds": 2, "settings": {"a": {}, "b": {"tau": 0.1}}}))
    with planned:
        for run in planned.runs:
            list(td3.train(run.config, planned.path_of(run)))
    (task,) = compared(capsys, tmp_path / "s")["environments"]
    assert (task["env"], task["step"]) == ("Pendulum-v1", 120)
    assert [(one["setting"], one["seeds"]) for one in task["settings"]] == [("a", 2), ("b", 2)]
    assert all(0 < one["seconds"] < 60 and -3_000 < one["mean"] < 0 for one in task["settings"])
    assert results.compare(tmp_path / "s").settings == ["a", "b"]
