"""A run's metrics taken out: columns for pandas, CSV on stdout, the newest of each."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from refusals import check_names, refusal

import td3
from td3.errors import ConfigError, RunError
from td3.storage import columns
from td3.views import cli

LINES = [
    '{"step":7,"rollout/ep_return":6.5,"rollout/terminated":true}',
    '{"step":7,"rollout/ep_return":-1,"rollout/terminated":false}',
    '{"step":10,"eval/mean_return":3.25,"eval/returns":[1,2],"finding":"text"}',
    '{"step":11,"changed":{"actor_lr":[1,2]}}',
    '{"step":12,"train/q1_mean":null,"huge":1' + "0" * 400 + "}",
    '{"step":"13","train/q1_mean":1}',
    '{"step":1e400,"train/q1_mean":1}',
    "[1]",
    '{"step":14,"train/q1_mean":2',
]


@pytest.fixture
def run(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("\n".join(LINES))
    return tmp_path


def test_columns_have_a_row_for_each_line_with_a_number_and_nan_elsewhere(run):
    found = td3.read_metrics(run)
    nan = np.nan
    expected = {
        "step": [7, 7, 10, 12],
        "eval/mean_return": [nan, nan, 3.25, nan],
        "huge": [nan, nan, nan, np.inf],
        "rollout/ep_return": [6.5, -1, nan, nan],
        "rollout/terminated": [1, 0, nan, nan],
        "train/q1_mean": [nan, nan, nan, nan],
    }
    assert list(found) == list(expected)
    for name, column in found.items():
        np.testing.assert_array_equal(column, expected[name])
        assert column.dtype == (np.int64 if name == "step" else np.float64)


def test_a_run_while_it_trains_has_what_its_events_said(tmp_path):
    config = td3.Config(
        env="Pendulum-v1", steps=450, warmup_steps=100, hidden=(8,), log_every=100, eval_every=0, film=False
    )
    said = []
    for event in td3.train(config, run=tmp_path / "run"):
        if isinstance(event, td3.EpisodeEnded):
            said.append((event.step, event.metrics["rollout/ep_return"]))
            found = td3.read_metrics(tmp_path / "run")
            ended = ~np.isnan(found["rollout/ep_return"])
            assert list(zip(found["step"][ended], found["rollout/ep_return"][ended], strict=True)) == said
    assert [step for step, _ in said] == [200, 400]


def test_csv_has_the_same_numbers_and_empty_cells(run, capfd):
    assert cli.main(["metrics", str(run), "--csv"]) == 0
    out, err = capfd.readouterr()
    rows = list(csv.DictReader(out.splitlines()))
    assert err == "" and len(rows) == 4
    for name, column in td3.read_metrics(run).items():
        assert [float(row[name] or "nan") for row in rows] == pytest.approx(column.tolist(), nan_ok=True)
    assert rows[2]["eval/mean_return"] == "3.25" and rows[2]["rollout/ep_return"] == ""


def test_json_is_one_document_and_words_are_the_newest_of_each(run, capfd):
    assert cli.main(["metrics", str(run), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rollout/ep_return"] == [6.5, -1, None, None]
    assert cli.main(["metrics", str(run)]) == 0
    out, err = capfd.readouterr()
    lines = [line.split()[:5] for line in out.splitlines()]
    assert ["rollout/ep_return", "-1", "at", "step", "7"] in lines and [
        "eval/mean_return",
        "3.25",
        "at",
        "step",
        "10",
    ] in lines
    assert "train/q1_mean" not in out and "4 rows" in err  # which has no number yet


def test_names_that_a_stranger_chose_reach_a_terminal_as_letters(run, capfd):
    (run / "metrics.jsonl").write_text('{"step":1,"\\u001b[31m,\\"":2}\n')
    for flags in ([], ["--csv"]):
        assert cli.main(["metrics", str(run), *flags]) == 0
        out, _ = capfd.readouterr()
        assert "\x1b" not in out and r"\x1b[31m" in out


def test_a_run_without_numbers_says_so(run, capfd):
    (run / "metrics.jsonl").write_text("")
    assert cli.main(["metrics", str(run)]) == 0 and "no metrics" in capfd.readouterr().err
    assert cli.main(["metrics", str(run), "--csv"]) == 0 and capfd.readouterr().out == "step\n"


def test_more_cells_than_any_run_has_are_refused(run, monkeypatch):
    monkeypatch.setattr(columns, "MOST_CELLS", 5)
    with refusal(RunError, "run", str(run)):
        td3.read_metrics(run)


@pytest.mark.parametrize(
    ("words", "named"), [(["nowhere"], "nowhere"), (["."], "metrics.jsonl"), (["--csv", "--json", "."], "--csv")]
)
def test_bad_input_is_one_sentence(words, named, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["metrics", *words]) == 2
    check_names(capfd.readouterr().err, None, named)
    with refusal(ConfigError, "run", 3):
        td3.read_metrics(3)


def test_reading_metrics_loads_no_torch(run):
    code = f"import sys, td3; td3.read_metrics({str(run)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout == "False\n", done.stderr
