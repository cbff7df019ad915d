"""`td3 runs`: a row for each run below a folder, and what differs between them; and how a study is shown."""

import io
import json
import subprocess
import sys

import pytest
from folders import found_row, make_run
from refusals import check_names
from rich.console import Console

from td3.config import Config
from td3.studies import Began, Driver, Ended, Spec, Study
from td3.studies.driver import Looked
from td3.studies.standing import Standing
from td3.views.cli import main
from td3.views.run_list import listed
from td3.views.study_display import LiveStudy, PlainStudy


@pytest.fixture
def folder(tmp_path):
    """Three runs: two seeds of one setting, one of another; one has a finding, one is not at its goal."""
    for seed, settings, step in ((2, {}, 1_000), (10, {}, 400), (0, {"tau": 0.1}, 1_000)):
        config = Config(env="Hopper-v5", steps=1_000, seed=seed, **settings)
        rows = [{"step": 200, "eval/mean_return": 7.5}, {"step": step, "eval/mean_return": 5.0}]
        extra = [found_row(300)] if settings else []
        make_run(tmp_path / f"runs/a/{'b' if settings else 'a'}/seed-{seed}", [*rows, *extra], config.to_data())
    return tmp_path / "runs"


def test_every_run_below_the_folder_has_a_row_in_the_order_of_its_numbers(folder):
    rows = listed(folder)
    assert [row["run"] for row in rows] == ["a/a/seed-2", "a/a/seed-10", "a/b/seed-0"]
    assert [row["seed"] for row in rows] == [2, 10, 0]
    assert [row["step"] for row in rows] == [1_000, 400, 1_000]
    assert [row["state"] for row in rows] == ["finished", "stopped", "finished"]
    assert [(row["last"], row["best"]) for row in rows] == [(5.0, 7.5)] * 3
    assert [row["findings"] for row in rows] == [0, 0, 1]


def test_only_settings_that_differ_are_listed(folder):
    assert [row["settings"] for row in listed(folder)] == [{"tau": 0.005}, {"tau": 0.005}, {"tau": 0.1}]
    assert [row["settings"] for row in listed(folder / "a/a")] == [{}, {}]


@pytest.mark.parametrize(
    ("words", "count"), [("", 3), ("tau=0.1", 1), ("FINISHED", 2), ("stopped seed-10", 1), ("hopper /a/", 2), ("x", 0)]
)
def test_a_filter_keeps_the_runs_in_which_each_word_stands(words, count, folder, capsys):
    assert main(["runs", str(folder), "--filter", words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == count


def test_the_table_has_a_line_for_each_run(folder, capsys):
    assert main(["runs", str(folder)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert " ".join(head.split()) == "run env seed step goal last best state findings settings"
    assert " ".join(lines[1].split()) == "a/a/seed-10 Hopper-v5 10 400 1,000 5.0 7.5 stopped 0 tau=0.005"


def test_a_damaged_run_is_listed_as_broken_and_one_line_is_a_line(folder, capsys):
    (folder / "a/b/seed-0/config.json").write_text("{")
    (folder / "a/a/seed-2").rename(folder / "a/a/seed\n2")
    assert main(["runs", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "broken" in lines[-1]


def test_a_folder_that_is_none_is_refused(tmp_path, capsys):
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    check_names(capsys.readouterr().err, "FOLDER", str(tmp_path / "nowhere"))


def test_listing_runs_and_reading_studies_load_nothing_that_trains(folder):
    code = (
        "import sys; from td3.views.cli import main; import td3.studies;"
        f" main(['runs', {str(folder)!r}]); main(['study', 'Ant-v5', '--print', '--study', {str(folder / 'new')!r}]);"
        " sys.exit('torch' in sys.modules or 'gymnasium' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4 + 5


# --- How a study is shown ---------------------------------------------------------------------------------------------


def shown(view, study):
    """Shows a view the events of three runs: one is done, one fails, one trains."""
    first, second, third = study.runs
    with view:
        view.show(Began(first, 0))
        view.show(Began(second, 250))
        view.show(Looked(0.35, 125.0, {first.name: 900, second.name: 500}))
        view.show(Ended(first, "finished", "", Standing(True, 1_000, 1_000, -5.0, -4.0, True), 61.0))
        view.show(Ended(second, "failed", "The gripper is stuck.", Standing(True, 500), 3.0))
        view.show(Began(third, 0))
        view.show(Looked(0.75, 60.0, {third.name: 123}))
        return view


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path / "s", Spec.of({"env": "Ant-v5", "steps": 1_000, "seeds": 3}))


def test_plain_lines_say_what_begins_ends_and_fails_and_the_time_left(study, capsys):
    shown(PlainStudy(study, Driver(study, 2, lambda run: None), quiet=False), study)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 8 and lines[3].startswith("30 %") and lines[3].endswith("about 2 min left")
    check_names(lines[2], "Ant-v5/default/seed-1", 250)
    check_names(lines[4], "Ant-v5/default/seed-0", 1_000, "-5.000", "-4.000", "1 min 01 s", "2 runs")
    check_names(lines[5], "Ant-v5/default/seed-1", 500, "The gripper is stuck.")


def test_a_quiet_study_says_only_what_failed(study, capsys):
    view = shown(PlainStudy(study, Driver(study, 2, lambda run: None), quiet=True), study)
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert view.failed == {"Ant-v5/default/seed-1": "The gripper is stuck."}


def test_the_panel_shows_the_runs_that_train_and_the_time_left_for_the_whole(study, capsys):
    view = LiveStudy(study, Driver(study, 2, lambda run: None))
    shown(view, study)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(view._panel())
    text = console.export_text()
    assert "1 of 3 runs done, 1 failed" in text and "about 60 s left" in text
    assert "Ant-v5/default/seed-2   123 of 1,000" in text and "seed-0" not in text
    capsys.readouterr()
