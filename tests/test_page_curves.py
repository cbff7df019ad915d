"""A metric of any length in few points: no spike is lost, gaps are gaps, and what is appended is read once."""

import json
import os
import re

import msgspec
import numpy as np
import pytest
from folders import ask, id_of, make_run, rows_of

import td3
from td3.config import Config
from td3.metrics import METRICS, OTHERS
from td3.views.web import series
from td3.views.web.files import GrowingLines, decoded_lines
from td3.views.web.series import BLOCK, Record
from td3.views.web.static import PAGES


class Metric:
    """A record of which one metric is looked at."""

    def __init__(self, path, name):
        self.record, self.name = Record(path), name

    def seen(self, first, last, most):
        return self.record.within([self.name], first, last, most)[self.name]

    def within(self, first, last, most):
        return self.seen(first, last, most).points


def write_metric(path, count, spike=None, gap=None):
    values = np.sin(np.arange(count) / 50)
    if spike is not None:
        values[spike] = 1_000.0
    with path.open("wb") as file:
        for step, value in enumerate(values.tolist()):
            number = b"null" if step == gap else b"%r" % value
            file.write(b'{"step":%d,"train/critic_loss":%s,"other":1.5}\n' % (step, number))
    return values


@pytest.mark.parametrize(("first", "last"), [(0, 10**9), (20_000, 40_000), (31_000, 31_300), (31_233, 31_235)])
@pytest.mark.parametrize("near", [0, 500_000, 2**24])
def test_a_single_spike_stays_visible_at_every_zoom(tmp_path, monkeypatch, first, last, near):
    path = tmp_path / "metrics.jsonl"
    values = write_metric(path, 60_000, spike=31_234)
    monkeypatch.setattr(series, "NEAR", near)
    step, value = Metric(path, "train/critic_loss").within(first, last, 600)
    assert len(step) <= 700
    assert value.max() == 1_000.0
    assert step[value.argmax()] == 31_234
    inside = values[first : last + 1]
    assert value.min() == inside.min()
    assert (np.diff(step) >= 0).all()
    np.testing.assert_array_equal(value, values[step.astype(int)])  # every point is a true one
    assert step[0] >= first
    assert step[-1] <= last


def test_a_spike_outside_the_zoom_hides_none_inside(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    lines = (
        f'{{"step":{step},"x":{200 if step == 30_010 else 100 if step == 30_020 else 0}}}\n' for step in range(60_000)
    )
    path.write_text("".join(lines))
    monkeypatch.setattr(series, "NEAR", 0)
    step, value = Metric(path, "x").within(30_015, 10**9, 300)
    assert (value.max(), step[value.argmax()]) == (100, 30_020)


@pytest.mark.parametrize("near", [0, 2**24])
def test_a_thinned_curve_comes_with_its_true_means(tmp_path, monkeypatch, near):
    path = tmp_path / "metrics.jsonl"
    values = np.random.default_rng(0).exponential(20, 50_000)
    path.write_text("".join(f'{{"step":{step},"x":{value!r}}}\n' for step, value in enumerate(values.tolist())))
    monkeypatch.setattr(series, "NEAR", near)
    metric = Metric(path, "x")
    for first, last in ((0, 49_999), (10_100, 30_300)):
        step, value = metric.seen(first, last, 60).mean
        assert 20 <= len(step) <= 60
        assert (np.diff(step) > 0).all() and first <= step[0] and step[-1] <= last
        assert value.mean() == pytest.approx(values[first : last + 1].mean(), rel=0.02)
        assert value.max() < 30 < values[first : last + 1].max()
    assert metric.seen(100, 110, 60).mean is None


def test_a_close_look_shows_every_row(tmp_path):
    path = tmp_path / "metrics.jsonl"
    values = write_metric(path, 5 * BLOCK + 100)
    metric = Metric(path, "train/critic_loss")
    step, value = metric.within(1_000, 1_400, 2_000)
    np.testing.assert_array_equal(step, np.arange(1_000, 1_401))
    np.testing.assert_array_equal(value, values[1_000:1_401])
    step, _ = metric.within(5 * BLOCK + 90, 10**9, 2_000)
    np.testing.assert_array_equal(step, np.arange(5 * BLOCK + 90, 5 * BLOCK + 100))


def test_a_missing_number_is_a_gap_at_every_zoom(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    write_metric(path, 60_000, gap=30_000)
    metric = Metric(path, "train/critic_loss")
    monkeypatch.setattr(series, "NEAR", 100_000)  # so that the whole is seen by its blocks
    for first, last in ((0, 60_000), (29_990, 30_010)):
        step, value = metric.within(first, last, 300)
        assert step[np.isnan(value)].tolist() == [30_000]


def test_a_refresh_reads_only_what_is_new(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    write_metric(path, 20_000)
    metric, size = Metric(path, "train/critic_loss"), path.stat().st_size
    metric.within(0, 10**9, 300)
    read = []
    true_read = os.pread
    monkeypatch.setattr(
        os, "pread", lambda file, count, place: read.append(got := true_read(file, count, place)) or got
    )
    with path.open("ab") as file:
        file.write(b'{"step":20000,"train/critic_loss":7.0}\n')
    step, value = metric.within(19_999, 10**9, 4_000)
    assert (step[-1], value[-1]) == (20_000, 7.0)
    assert sum(map(len, read)) < 100_000 < size  # the block looked at and the new row, not the whole


def test_a_record_that_was_cut_back_and_grew_again_is_read_anew(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step":{step},"x":1}}\n' for step in range(100)))
    metric = Metric(path, "x")
    assert metric.within(0, 1e9, 500).value.sum() == 100
    kept = path.read_text().splitlines(keepends=True)[:60]
    path.write_text("".join(kept) + "".join(f'{{"step":{step},"x":2}}\n' for step in range(60, 200)))
    step, value = metric.within(0, 1e9, 500)
    assert step.tolist() == list(range(200))
    assert value.sum() == 60 + 2 * 140
    path.unlink()
    assert len(metric.within(0, 1e9, 500).step) == 0


def test_metrics_that_are_asked_for_at_different_times_agree(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step":1,"x":1,"y":10}\n')
    record = Record(path)
    record.within(["x"], 0, 9, 100)
    with path.open("a") as file:
        file.write('{"step":2,"x":2,"y":20}\n')
    found = record.within(["y", "x"], 0, 9, 100)
    assert {name: one.points.value.tolist() for name, one in found.items()} == {"y": [10, 20], "x": [1, 2]}


def test_a_score_far_from_the_records_end_is_found(tmp_path):
    rows = [
        {"step": 1, "eval/mean_return": 7.0},
        *({"step": step, "rollout/ep_return": 1.5} for step in range(2, 9_000)),
    ]
    make_run(tmp_path / "run", rows)
    row = rows_of(tmp_path)["run"]
    assert (row["last"], row["step"]) == (7.0, 8_999)
    found = ask(tmp_path, f"/api/series?id={row['id']}&metric=eval/mean_return").json()["series"]["eval/mean_return"]
    assert found["value"] == [7.0]


def test_a_last_row_longer_than_a_look_is_read_whole(tmp_path):
    make_run(tmp_path / "run", [{"step": 5}, {"step": 1_000, "eval/mean_return": 3.0, "eval/returns": [1.5] * 50_000}])
    row = rows_of(tmp_path)["run"]
    assert (row["step"], row["last"], row["state"]) == (1_000, 3.0, "finished")


def test_a_true_run_has_no_metric_that_is_not_known(tmp_path):
    settings = {"warmup_steps": 50, "hidden": (8,), "eval_every": 100, "eval_episodes": 1, "film": False}
    for _ in td3.train(Config(env="Pendulum-v1", steps=1_000, log_every=50, **settings), tmp_path / "run"):
        pass
    rows = [msgspec.json.decode(line) for line in (tmp_path / "run/metrics.jsonl").read_bytes().splitlines()]
    assert {name for row in rows for name in row} <= {*METRICS, *OTHERS, "step"}
    names = {name for row in rows for name, value in row.items() if isinstance(value, float)}
    assert names == {*METRICS} - {"rollout/ep_length", "health/image_change"}


def test_every_metric_has_words_on_the_page():
    script = (PAGES / "charts.js").read_text()
    table = script[script.index("export const METRICS") : script.index("};")]
    assert set(re.findall(r'^  "([a-z0-9_/]+)": \{ words:', table, re.MULTILINE)) == set(METRICS)


def test_torn_and_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(
        b'{"step":1,"x":1}\nnot json\n{"step":2,"x":"words"}\n\xff\xfe\n[1]\n{"step":3,"x":3}\n{"step":4,"x"'
    )
    step, value = Metric(path, "x").within(0, 10, 100)
    assert (step.tolist(), value.tolist()) == ([1, 3], [1, 3])


def test_a_line_without_an_end_is_not_waited_for_for_ever(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"x" * 5_000_000 + b"\n" + b'{"a":1}\n')
    lines = GrowingLines(path)
    found = [row for _, lump in lines.new() for row in decoded_lines(lump, dict[str, int])]
    assert found == [{"a": 1}]


def test_infinity_and_nan_arrive_as_valid_json_and_are_gaps(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "metrics.jsonl").write_text('{"step":1,"x":1e999}\n{"step":2,"x":null}\n{"step":3,"x":2.5}\n')
    answer = ask(tmp_path, f"/api/series?id={id_of(tmp_path, 'run')}&metric=x")
    found = json.loads(answer.content, parse_constant=lambda word: pytest.fail(word))
    assert found["series"]["x"]["value"][-1] == 2.5
    assert None in found["series"]["x"]["value"]


def test_several_metrics_come_in_one_answer_and_unknown_ones_are_empty(tmp_path):
    make_run(tmp_path / "run", [{"step": 1, "a": 1.0, "b": 2}, {"step": 2, "a": 3.0, "list": [1]}])
    found = ask(tmp_path, f"/api/series?id={id_of(tmp_path, 'run')}&metric=a&metric=b&metric=c").json()["series"]
    assert found["a"] == {"step": [1, 2], "value": [1, 3], "mean": None}
    assert found["b"] == {"step": [1], "value": [2], "mean": None}
    assert found["c"] == {"step": [], "value": [], "mean": None}
    detail = ask(tmp_path, f"/api/run?id={id_of(tmp_path, 'run')}").json()
    assert detail["metrics"] == sorted(["a", "b", *METRICS])
    assert detail["config"]["tau"] == 0.005
    assert detail["film"] is False
