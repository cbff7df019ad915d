"""The page's server: reads run folders only, tells what is there, and lets nobody out of them."""

import asyncio
import hashlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import httpx
import msgspec
import numpy as np
import pytest
from folders import append, make_run

import td3
from td3.config import Config
from td3.errors import RunError
from td3.types import METRICS
from td3.views import cli
from td3.views.watching import address_of, is_here
from td3.views.web import series
from td3.views.web.explanation import explanation
from td3.views.web.files import GrowingLines, decoded_lines
from td3.views.web.house import House, Unknown
from td3.views.web.live import QUEUE, Followed, Hub, Viewer
from td3.views.web.runs import Watched, find
from td3.views.web.series import BLOCK, Record
from td3.views.web.server import Page
from td3.views.web.updates import Updates


def ask(root, path, *, headers=None, method="GET", host="127.0.0.1", token=None, base="http://127.0.0.1:8533"):
    async def go():
        transport = httpx.ASGITransport(Page(root, host, token), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(go())


def rows_of(root):
    return {one["name"]: one for one in ask(root, "/api/runs").json()["runs"]}


def id_of(root, name):
    return rows_of(root)[name]["id"]


# ---- finding runs ----


def test_every_run_below_the_folder_is_found_and_a_broken_one_harms_no_other(tmp_path):
    make_run(tmp_path / "one", [{"step": 250, "eval/mean_return": -7.5, "time/steps_per_second": 99.0}])
    make_run(tmp_path / "deep/er/two", [{"step": 1_000, "eval/mean_return": 3.0}])
    broken = make_run(tmp_path / "broken", [{"step": 5}])
    (broken / "config.json").write_text("{no json")
    (tmp_path / "empty").mkdir()
    (make_run(tmp_path / "robbed") / "checkpoints").rmdir()
    rows = rows_of(tmp_path)
    assert set(rows) == {"one", "deep/er/two", "broken", "robbed"}
    assert (rows["robbed"]["state"], rows["robbed"]["problem"]) == ("broken", "checkpoints is no folder.")
    assert rows["one"]["state"] == "stopped"
    assert (rows["one"]["step"], rows["one"]["last"], rows["one"]["speed"]) == (250, -7.5, 99.0)
    assert (rows["deep/er/two"]["state"], rows["deep/er/two"]["goal"]) == ("finished", 1_000)
    assert rows["broken"]["state"] == "broken"
    assert rows["broken"]["problem"] == "config.json is no JSON object."


def test_the_watched_folder_may_be_a_run_itself(tmp_path):
    make_run(tmp_path / "alone", [{"step": 1}])
    assert list(rows_of(tmp_path / "alone")) == ["alone"]


def test_a_folder_that_is_not_there_yet_has_no_runs(tmp_path):
    assert ask(tmp_path / "later", "/api/runs").json() == {"root": "later", "runs": []}


def test_the_goal_and_the_best_score_are_those_of_the_checkpoints(tmp_path):
    make_run(tmp_path / "run", [{"step": 900, "eval/mean_return": 1.0}], goal=5_000, score=8.25)
    row = rows_of(tmp_path)["run"]
    assert (row["goal"], row["best"], row["last"], row["state"]) == (5_000, 8.25, 1.0, "stopped")


def test_a_run_is_live_while_its_process_holds_it(tmp_path):
    run = make_run(tmp_path / "run", [{"step": 1}])
    (run / "lock").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    assert rows_of(tmp_path)["run"]["state"] == "live"
    (run / "lock").write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname()}))
    assert rows_of(tmp_path)["run"]["state"] == "stopped"
    (run / "lock").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    assert rows_of(tmp_path)["run"]["state"] == "live"  # its record was written a moment ago
    os.utime(run / "metrics.jsonl", (1, 1))
    assert rows_of(tmp_path)["run"]["state"] == "stopped"


def test_runs_that_differ_in_their_seed_alone_are_one_group(tmp_path):
    for name, changes in (("a", {"seed": 0}), ("b", {"seed": 1}), ("c", {"seed": 1, "tau": 0.01})):
        make_run(tmp_path / name, config=Config(**changes).to_data())
    rows = rows_of(tmp_path)
    assert rows["a"]["group"] == rows["b"]["group"] != rows["c"]["group"]


def test_a_row_is_read_again_only_when_a_file_has_changed(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", [{"step": 1}])
    watched = Watched(tmp_path, run)
    assert watched.row().step == 1
    before = watched.row()
    assert watched.row() is before
    append(run, [{"step": 2}])
    assert watched.row().step == 2


# ---- a metric of any length ----


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
    for _ in td3.train(Config(env="Pendulum-v1", steps=250, log_every=50, **settings), tmp_path / "run"):
        pass
    rows = [msgspec.json.decode(line) for line in (tmp_path / "run/metrics.jsonl").read_bytes().splitlines()]
    names = {name for row in rows for name, value in row.items() if isinstance(value, int | float)}
    assert names == {*METRICS, "step", "rollout/env"}


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


# ---- recorded updates ----


def recorded(update, **more):
    return {"update": update, "step": update + 10, "delayed": update % 2 == 0, "batch": {"twin_gap": 0.5}, **more}


def test_recorded_updates_are_listed_and_handed_out_as_they_were_written(tmp_path):
    run = make_run(tmp_path / "run")
    append(run, [recorded(5), recorded(6, note="<b>")], "updates.jsonl")
    id = id_of(tmp_path, "run")
    found = ask(tmp_path, f"/api/updates?id={id}").json()
    assert found["updates"] == [
        {"update": 5, "step": 15, "delayed": False},
        {"update": 6, "step": 16, "delayed": True},
    ]
    assert found["series"]["twin_gap"] == [0.5, 0.5]
    assert ask(tmp_path, f"/api/update?id={id}&update=5").json() == recorded(5)
    assert ask(tmp_path, f"/api/update?id={id}&update=newest").json() == recorded(6, note="<b>")
    assert ask(tmp_path, f"/api/update?id={id}&update=7").status_code == 404
    assert ask(tmp_path, f"/api/update?id={id}&update=seven").status_code == 400


def test_a_new_recorded_update_is_noticed(tmp_path):
    run = make_run(tmp_path / "run")
    updates = Updates(run / "updates.jsonl")
    assert updates.refresh() == []
    assert updates.one(None) is None
    append(run, [recorded(1)], "updates.jsonl")
    assert [one.update for one in updates.refresh()] == [1]
    append(run, [recorded(2)], "updates.jsonl")
    assert msgspec.json.decode(updates.one(None))["update"] == 2


def test_recorded_updates_that_were_cut_back_are_read_anew_and_the_newest_are_kept(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run")
    updates = Updates(run / "updates.jsonl")
    append(run, [recorded(number) for number in range(1, 9)], "updates.jsonl")
    assert len(updates.refresh()) == 8
    lines = (run / "updates.jsonl").read_bytes().splitlines(keepends=True)
    (run / "updates.jsonl").write_bytes(b"".join(lines[:5]))
    append(run, [recorded(20)], "updates.jsonl")
    assert [one.update for one in updates.refresh()] == [1, 2, 3, 4, 5, 20]
    assert updates.one(7) is None
    monkeypatch.setattr("td3.views.web.updates.MOST_UPDATES", 3)
    append(run, [recorded(21)], "updates.jsonl")
    assert [one.update for one in updates.refresh()] == [5, 20, 21]
    assert updates.one(1) is None
    assert msgspec.json.decode(updates.one(20)) == recorded(20)


# ---- news ----


def test_news_of_a_run_are_its_new_rows_and_no_others(tmp_path):
    run = make_run(tmp_path / "run", [{"step": 1, "x": 1.0}])
    followed = Followed(Watched(tmp_path, run), Updates(run / "updates.jsonl"))
    assert followed.news() == []
    append(run, [{"step": 2, "x": None, "returns": [1]}, {"step": 3, "x": 4.0}])
    (news,) = followed.news()
    event, data = news.decode().strip().split("\n")
    assert event == "event: points"
    assert json.loads(data.removeprefix("data: "))["series"] == {"x": {"step": [2, 3], "value": [None, 4.0]}}
    assert followed.news() == []
    (run / "metrics.jsonl").write_text('{"step":1,"x":9}\n')
    assert json.loads(followed.news()[0].decode().split("data: ")[1])["again"] is True


def test_a_run_that_appears_after_somebody_asked_for_it_is_fetched_from_its_beginning(tmp_path):
    house = House(tmp_path)
    hub = Hub(house)
    id = Watched(tmp_path, tmp_path / "run").id
    hub._follow({id})
    assert hub._look({id})[1] == {}
    make_run(tmp_path / "run", [{"step": 1, "x": 1.0}])
    house._looked = -100.0
    news = hub._look({id})[1][id].decode()
    assert json.loads(news.split("data: ")[1].split("\n")[0]) == {"id": id, "again": True}
    assert hub._look({id})[1][id] == b""


def test_a_slow_viewer_holds_little_and_is_sent_to_fetch_anew():
    async def go():
        viewer = Viewer(None)
        for number in range(100):
            viewer.tell(b"%d" % number)
        read = [await viewer.next() for _ in range(QUEUE)]
        assert read == [b"%d" % number for number in range(QUEUE)]
        assert await viewer.next() is None  # its stream ends; the browser comes back by itself

    asyncio.run(go())


def test_the_hub_tells_which_rows_changed_and_which_runs_are_gone(tmp_path):
    house = House(tmp_path)
    hub = Hub(house)
    one = make_run(tmp_path / "one", [{"step": 1}])
    make_run(tmp_path / "two", [{"step": 1}])
    assert hub._look(set()) == (b"", {})
    append(one, [{"step": 5}])
    news, _ = hub._look(set())
    data = json.loads(news.decode().split("data: ")[1])
    assert [(row["name"], row["step"]) for row in data["runs"]] == [("one", 5)]
    import shutil

    shutil.rmtree(tmp_path / "two")
    house._looked = -100.0
    news, _ = hub._look(set())
    assert len(json.loads(news.decode().split("data: ")[1])["gone"]) == 1


# ---- safety ----


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_can_be_written_through_the_page(tmp_path, method):
    answer = ask(tmp_path, "/api/runs", method=method)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "path", ["/", "/run", "/steps", "/text", "/api/runs", "/static/style.css", "/static/plotly.js", "/events"]
)
def test_head_answers_without_a_body(tmp_path, path):
    answer = ask(tmp_path, path, method="HEAD")
    assert answer.status_code == 200
    assert answer.content == b""


@pytest.mark.parametrize("path", ["/", "/api/runs", "/nothing", "/static/style.css", "/api/run?id=x"])
def test_every_answer_carries_the_strict_policy(tmp_path, path):
    headers = ask(tmp_path, path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self';" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8533", "127.0.0.1.evil.example", "", "10.0.0.1", "localhost.evil", "evillocalhost"],
)
def test_a_foreign_host_is_refused(tmp_path, host):
    assert ask(tmp_path, "/api/runs", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8533", "localhost", "localhost:1", "[::1]:8533", "127.0.0.2"])
def test_this_machines_own_names_are_answered(tmp_path, host):
    assert ask(tmp_path, "/api/runs", headers={"Host": host}).status_code == 200


COOKIE = "td3_" + hashlib.sha256(b"secret").hexdigest()[:8]


def test_beyond_loopback_only_the_token_opens(tmp_path):
    known = {"host": "0.0.0.0", "token": "secret"}
    assert ask(tmp_path, "/api/runs", **known).status_code == 403
    assert ask(tmp_path, "/api/runs?token=wrong", **known).status_code == 403
    named = {"Host": socket.gethostname(), "Cookie": f"{COOKIE}=secret"}
    assert ask(tmp_path, "/api/runs", headers=named, **known).status_code == 200
    assert ask(tmp_path, "/api/runs", headers={"Cookie": f"{COOKIE}=wrong"}, **known).status_code == 403
    assert ask(tmp_path, "/api/runs", headers={"Cookie": f"{COOKIE}=secret"}, **known).status_code == 200
    assert (
        ask(tmp_path, "/api/runs", headers={"Host": "evil.example", "Cookie": f"{COOKIE}=secret"}, **known).status_code
        == 400
    )
    welcome = ask(tmp_path, "/run?id=5&token=secret", **known)
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/run?id=5")
    assert "HttpOnly" in welcome.headers["set-cookie"]
    assert "samesite=lax" in welcome.headers["set-cookie"].lower()
    assert (
        ask(tmp_path, "http://127.0.0.1:8533//evil.example/?token=secret", **known)
        .headers["location"]
        .startswith("/evil.example")
    )


HOSTILE = [
    "../secret",
    "..%2fsecret",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%252fsecret",
    "....//secret",
    "/etc/passwd",
    "..\\secret",
    "%00",
    "C:\\secret",
    "..%c0%afsecret",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_path_leaves_the_folder_in_any_encoding(tmp_path, name):
    (tmp_path / "secret").write_text("the secret")
    make_run(tmp_path / "runs/one")
    for path in (
        f"/static/{name}",
        f"/api/run?id={name}",
        f"/api/film?id={name}",
        f"/{name}",
        f"/api/update?id={name}",
    ):
        answer = ask(tmp_path / "runs", path)
        assert answer.status_code in (400, 404), path
        assert b"the secret" not in answer.content


def test_links_are_not_followed(tmp_path):
    outside = make_run(tmp_path / "outside", [{"step": 1, "x": 42.0}])
    (tmp_path / "secret").write_text('{"step": 1, "x": 42.0, "env": "secret"}\n')
    root = tmp_path / "runs"
    run = make_run(root / "run")
    (root / "linked").symlink_to(outside)
    for name in ("metrics.jsonl", "updates.jsonl", "film.webp", "config.json"):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(tmp_path / "secret")
    rows = rows_of(root)
    assert list(rows) == ["run"]
    assert rows["run"]["state"] == "broken"
    assert rows["run"]["problem"].endswith("is a link.")
    for path in ("run", "series", "updates", "update", "film"):
        answer = ask(root, f"/api/{path}?id={rows['run']['id']}&metric=x")
        assert b"42" not in answer.content
        assert b"secret" not in answer.content


def test_a_run_that_becomes_a_link_is_gone_and_linked_checkpoints_are_not_read(tmp_path):
    outside = make_run(tmp_path / "outside", goal=777, score=4_242.0)
    root = tmp_path / "runs"
    run = make_run(root / "run")
    house = House(root)
    (row,) = house.rows()
    (run / "checkpoints").rmdir()
    (run / "checkpoints").symlink_to(outside / "checkpoints")
    (row,) = house.rows()
    assert (row.best, row.goal, row.state) == (None, 1_000, "broken")
    run.rename(tmp_path / "away")
    run.symlink_to(outside)
    with pytest.raises(Unknown):
        house.detail(row.id)


def test_unknown_names_do_not_make_the_server_search_again_and_again(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr("td3.views.web.house.find", lambda root: looked.append(root) or [])
    house = House(tmp_path)
    for number in range(20):
        with pytest.raises(Unknown):
            house.run(f"{number:012}")
    assert len(looked) == 1


def test_a_pipe_in_a_records_place_is_not_waited_for(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "metrics.jsonl").unlink()
    os.mkfifo(run / "metrics.jsonl")
    os.mkfifo(run / "updates.jsonl")
    assert rows_of(tmp_path)["run"]["problem"] == "metrics.jsonl is no regular file."
    with pytest.raises(RunError):
        Updates(run / "updates.jsonl").refresh()


@pytest.mark.parametrize("query", ["points=0", "points=1e9", "points=x", "from=nan", "to=--", ""])
def test_a_bad_value_in_the_address_is_one_sentence(tmp_path, query):
    make_run(tmp_path / "run", [{"step": 1, "x": 1.0}])
    metric = "&metric=x" if query else ""
    answer = ask(tmp_path, f"/api/series?id={id_of(tmp_path, 'run')}{metric}&{query}")
    assert answer.status_code == 400
    assert answer.json()["problem"].endswith(".")


def test_a_hostile_name_is_carried_as_text(tmp_path):
    make_run(tmp_path / "<img src=x onerror=alert(1)>")
    answer = ask(tmp_path, "/api/runs")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["runs"][0]["name"] == "<img src=x onerror=alert(1)>"


def test_a_name_that_is_no_unicode_is_shown_all_the_same(tmp_path):
    make_run(Path(os.fsdecode(os.fsencode(tmp_path) + b"/run-\xff")))
    assert list(rows_of(tmp_path)) == ["run-?"]


def test_a_config_nested_beyond_measure_breaks_only_its_run(tmp_path):
    make_run(tmp_path / "good")
    (make_run(tmp_path / "bad") / "config.json").write_text('{"a":' * 100_000)
    rows = rows_of(tmp_path)
    assert (rows["good"]["state"], rows["bad"]["state"]) == ("stopped", "broken")


def test_the_page_imports_no_pytorch():
    words = "import sys, td3.views.web.server, td3.views.watching; assert not {'torch', 'gymnasium'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0


def test_the_explanation_has_the_titles_of_the_document_and_the_lines_of_the_code():
    root = Path(__file__).parents[1]
    import re

    titles = re.findall(r"^## (\d+) · (.+)$", (root / "docs/fifteen-steps.md").read_text(), re.MULTILINE)
    code = (root / "td3/learner/td3.py").read_text().splitlines()
    steps = explanation()
    assert [(str(step["number"]), step["title"]) for step in steps] == titles
    for step in steps:
        path, line = step["code"].rsplit(":", 1)
        assert path == "td3/learner/td3.py"
        assert f"# {step['number']} · " in code[int(line) - 1]


def test_folders_too_deep_are_not_searched(tmp_path):
    make_run(tmp_path / "1/2/3/4/5/6")
    make_run(tmp_path / "a/2/3/4/5/6/7")
    assert [one.name for one in find(tmp_path)] == ["6"]


def test_the_code_and_the_document_can_be_read_on_the_page(tmp_path):
    root = Path(__file__).parents[1]
    for of, path in (("code", "td3/learner/td3.py"), ("docs", "docs/fifteen-steps.md")):
        assert ask(tmp_path, f"/api/text?of={of}").json() == {
            "path": path,
            "lines": (root / path).read_text().splitlines(),
        }
    assert ask(tmp_path, "/api/text?of=../secret").status_code == 404


# ---- the commands ----


def fetch(address):
    with urllib.request.urlopen(address, timeout=20) as answer:
        return json.load(answer)


def running(pid):
    """Whether it lives; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_explain_shows_an_agent_that_learns_and_leaves_nothing_behind(tmp_path, number):
    words = [sys.executable, "-m", "td3", "explain", "--json", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        address = json.loads(process.stdout.readline())["address"]
        (folder,) = tmp_path.iterdir()
        deadline = time.monotonic() + 60
        base, id = address.split("steps?id=")
        while not (runs := fetch(f"{base}api/runs")["runs"]):
            assert time.monotonic() < deadline
        assert [(run["env"], run["id"]) for run in runs] == [("Pendulum-v1", id)]
        while fetch(f"{base}api/runs")["runs"][0]["state"] != "live":
            assert time.monotonic() < deadline
        holder = json.loads((folder / "Pendulum-v1/lock").read_text())["pid"]
        process.send_signal(number)
        process.wait(20)
        while running(holder):  # the one that trained ends with us
            assert time.monotonic() < deadline
    assert folder.exists() == (number == signal.SIGKILL)


def test_train_with_watch_prints_a_page_that_ends_with_it(tmp_path):
    run = tmp_path / "run"
    words = ["train", "--steps", "400", "--warmup-steps", "100", "--hidden", "16", "--run", str(run), "--watch"]
    with subprocess.Popen([sys.executable, "-m", "td3", *words], stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        assert first.startswith("Watch it at http://127.0.0.1:")
        base, id = first.removeprefix("Watch it at ").strip().split("run?id=")
        assert fetch(f"{base}api/explanation")["steps"][8]["number"] == 9
        assert "Done: 400 steps" in process.stderr.read()
        assert process.wait(30) == 0
    assert Watched(run, run).id == id
    with pytest.raises(urllib.error.URLError):
        fetch(f"{base}api/runs")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["watch", "nowhere"], "'nowhere'"),
        (["watch", "--port", "65536"], "'65536'"),
        (["watch", "--host", "no.such.host.invalid"], "'no.such.host.invalid'"),
        (["explain", "--port", "x"], "'x'"),
    ],
)
def test_a_page_that_cannot_be_started_is_one_sentence(words, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 2
    told = capsys.readouterr().err
    assert named in told
    assert told.count("\n") == 1


def test_a_missing_library_is_named_with_the_command_that_brings_it(capsys, monkeypatch):
    true = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "uvicorn" else true(name, *more)
    )
    assert cli.main(["watch"]) == 2
    assert "needs uvicorn" in (told := capsys.readouterr().err) and "pip install 'td3[watch]'" in told


def test_only_a_loopback_address_goes_without_a_token():
    assert is_here("127.0.0.1") and is_here("localhost") and is_here("::1")
    assert not is_here("0.0.0.0") and not is_here("192.168.1.5") and not is_here("::")
    assert address_of("::1", 8, None) == "http://[::1]:8/"
    assert address_of("10.0.0.7", 8, "t", "steps?id=5") == "http://10.0.0.7:8/steps?id=5&token=t"
    assert address_of("0.0.0.0", 8, "t") == f"http://{socket.gethostname()}:8/?token=t"
