"""Finished runs as small files: the same evaluations, compared like the runs themselves."""

import json

import numpy as np
import pytest
from folders import append, make_run
from refusals import check_names

from td3 import results
from td3.config import Config
from td3.views.cli import main

EVALUATIONS = {0: [10.0, 20.0, 30.0], 1: [12.0, 22.0, 35.0], 2: [11.0, float("nan"), 40.5]}


def study_of(folder, goal=1_500):
    """A study of one environment and two settings, of which one is better by 100."""
    folder.mkdir()
    (folder / "study.toml").write_text('env = ["Ant-v5"]\n[settings.plain]\n[settings.better]\n')
    for setting, more in (("plain", 0.0), ("better", 100.0)):
        for seed, scores in EVALUATIONS.items():
            rows = [
                row
                for place, score in enumerate(scores, 1)
                for row in (
                    {"step": 500 * place, "time/steps_per_second": 250.0},
                    {"step": 500 * place, "eval/mean_return": score + more, "eval/std_return": 1.5},
                )
            ]
            config = Config(env="Ant-v5", seed=seed, steps=goal).to_data()
            make_run(folder / "Ant-v5" / setting / f"seed-{seed}", rows, config)
    return folder


def test_a_comparison_of_the_files_is_that_of_the_runs(tmp_path):
    study = study_of(tmp_path / "study")
    runs = results.compare(study)
    files = runs.save(tmp_path / "kept")
    assert sorted(path.relative_to(tmp_path / "kept").as_posix() for path in files) == [
        f"Ant-v5/{setting}/seed-{seed}.json" for setting in ("better", "plain") for seed in range(3)
    ]
    (tmp_path / "kept/study.toml").write_bytes((study / "study.toml").read_bytes())
    kept = results.compare(tmp_path / "kept")
    assert kept.settings == runs.settings == ["plain", "better"]
    assert kept.table("csv") == runs.table("csv")
    assert kept.tasks[0].groups["better"].values.tolist() == [130.0, 135.0, 140.5]


def test_a_file_holds_every_evaluation_with_its_time_and_the_settings(tmp_path):
    results.compare(study_of(tmp_path / "study")).save(tmp_path / "kept")
    data = json.loads((tmp_path / "kept/Ant-v5/plain/seed-2.json").read_text())
    assert data["evaluations"] == [[500, 11.0, 1.5, 2.0], [1_000, None, 1.5, 4.0], [1_500, 40.5, 1.5, 6.0]]
    assert (data["env"], data["seed"], data["goal"], data["step"]) == ("Ant-v5", 2, 1_500, 1_500)
    assert data["settings"]["gamma"] == 0.99
    assert data["versions"] == {"td3": "0"}


def test_only_what_is_finished_is_kept_and_only_what_changed_is_written(tmp_path):
    assert results.compare(study_of(tmp_path / "far", goal=9_000)).save(tmp_path / "kept") == []
    study = study_of(tmp_path / "study")
    assert len(results.compare(study).save(tmp_path / "kept")) == 6
    assert results.compare(study).save(tmp_path / "kept") == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"format": 1, "env": "Ant-v5", "seed": 0, "goal": 1, "step": 1, "settings": {}, "versions": {}, '
        '"evaluations": [[' + "9" * 400 + ", 1, 1, 1]]}",
        '{"format": 2}',
        '{"format": 1, "env": "Ant-v5", "other": 1}',
        '{"evaluations": [[1]]}',
    ],
)
def test_a_file_that_is_no_result_is_left_out_with_its_name(text, tmp_path, capsys):
    results.compare(study_of(tmp_path / "study")).save(tmp_path / "kept")
    (tmp_path / "kept/Ant-v5/plain/seed-7.json").write_text(text)
    assert main(["compare", str(tmp_path / "kept"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["run"].rpartition("/")[2] for one in found["left_out"]] == ["seed-7.json"]


def test_the_command_says_how_many_files_are_new_and_refuses_a_folder_that_is_none(tmp_path, capsys):
    study = study_of(tmp_path / "study")
    assert main(["compare", str(study), "--save", str(tmp_path / "kept"), "--json"]) == 0
    assert "6 files" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["compare", str(study), "--save", str(tmp_path / "file")]) == 2
    check_names(capsys.readouterr().err, "--save", str(tmp_path / "file"))


def test_the_result_of_another_run_or_of_a_longer_one_is_not_written_over(tmp_path, capsys):
    study = study_of(tmp_path / "study")
    results.compare(study).save(tmp_path / "kept")
    path = tmp_path / "kept/Ant-v5/plain/seed-0.json"
    before = path.read_bytes()
    data = json.loads(before)
    for change, words in (({"step": 9_000}, ["9,000"]), ({"settings": {**data["settings"], "tau": 0.5}}, ["tau"])):
        path.write_text(json.dumps({**data, **change}))
        assert main(["compare", str(study), "--save", str(tmp_path / "kept")]) == 2
        check_names(capsys.readouterr().err, "--save", str(path), *words)
    path.write_bytes(before)
    assert results.compare(study).save(tmp_path / "kept") == []


def test_a_run_that_stopped_by_itself_is_finished_until_it_trains_on(tmp_path, capsys):
    study = study_of(tmp_path / "study", goal=9_000)
    append(study / "Ant-v5/plain/seed-0", [{"step": 1_500, "stopped": "It is good enough."}])
    append(study / "Ant-v5/plain/seed-1", [{"step": 1_500, "stopped": "It is good enough."}, {"step": 1_600}])
    assert main(["compare", str(study), "--save", str(tmp_path / "kept"), "--json"]) == 0
    assert "1 file new" in (said := capsys.readouterr().err) and "5 runs" in said


def test_numbers_come_back_to_three_digits(tmp_path):
    results.compare(study_of(tmp_path / "study")).save(tmp_path / "kept")
    run = results.compare(tmp_path / "kept").tasks[0].groups["plain"].runs[2]
    assert run.steps.tolist() == [500, 1_000, 1_500]
    assert np.isnan(run.returns[1]) and run.seconds.tolist() == [2.0, 4.0, 6.0]
