"""What the page says of run folders: their states, recorded updates, and what is new."""

import asyncio
import json
import os
import socket

import msgspec
from folders import append, ask, id_of, make_run, rows_of

from td3.config import GROUPS, Config
from td3.storage import RunFolder
from td3.views.web.live import QUEUE, Followed, Hub, Viewer
from td3.views.web.run_index import RunIndex
from td3.views.web.runs import Watched
from td3.views.web.updates import Updates

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


def test_a_run_that_ended_with_an_error_is_failed_until_it_is_resumed(tmp_path):
    failed = [{"step": 250, "eval/mean_return": -7.5}, {"step": 260, "failed": "The gripper is stuck."}]
    make_run(tmp_path / "failed", failed)
    make_run(tmp_path / "resumed", [*failed, {"step": 300}])
    make_run(tmp_path / "hostile", [{"step": 1, "failed": "<b>" * 9_000}])
    make_run(tmp_path / "done", [{"step": 1_000}, {"step": 1_000, "failed": "Too late to matter."}])
    rows = rows_of(tmp_path)
    assert (rows["failed"]["state"], rows["failed"]["problem"]) == ("failed", "The gripper is stuck.")
    assert (rows["resumed"]["state"], rows["resumed"]["problem"]) == ("stopped", None)
    assert (rows["hostile"]["state"], len(rows["hostile"]["problem"])) == ("failed", 500)
    assert (rows["done"]["state"], rows["done"]["problem"]) == ("finished", None)


def test_the_watched_folder_may_be_a_run_itself(tmp_path):
    make_run(tmp_path / "alone", [{"step": 1}])
    assert list(rows_of(tmp_path / "alone")) == ["alone"]


def test_a_run_has_the_same_id_wherever_it_is_watched_from_and_no_other_run_has_it(tmp_path):
    runs = [make_run(tmp_path / name / "seed-0", [{"step": 1}]) for name in ("one", "two")]
    (tmp_path / "link").symlink_to(tmp_path / "one")
    first, second = (id_of(run, "seed-0") for run in runs)  # as `--watch` serves them
    assert first != second
    assert {id_of(tmp_path / name, "seed-0") for name in ("one", "link")} == {first}
    assert id_of(tmp_path, "two/seed-0") == second


def test_names_that_are_no_unicode_are_shown_all_the_same(tmp_path):
    run = make_run(tmp_path / os.fsdecode(b"run\xff"), [{"step": 1}])
    assert list(rows_of(tmp_path)) == ["run?"]
    assert ask(run, "/api/runs").json()["root"] == "run?"


def test_a_folder_that_is_not_there_yet_has_no_runs(tmp_path):
    assert ask(tmp_path / "later", "/api/runs").json().items() >= {"root": "later", "runs": []}.items()


def test_the_goal_and_the_best_score_are_those_of_the_checkpoints(tmp_path):
    make_run(tmp_path / "run", [{"step": 900, "eval/mean_return": 1.0}], goal=5_000, score=8.25)
    row = rows_of(tmp_path)["run"]
    assert (row["goal"], row["best"], row["last"], row["state"]) == (5_000, 8.25, 1.0, "stopped")


def test_a_run_is_live_while_its_process_holds_it(tmp_path):
    run = make_run(tmp_path / "run", [{"step": 1}])
    folder = RunFolder.open(run, to_write=True)
    assert rows_of(tmp_path)["run"]["state"] == "live"
    folder.release()
    assert rows_of(tmp_path)["run"]["state"] == "stopped"
    (run / "lock").write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname()}))
    assert rows_of(tmp_path)["run"]["state"] == "stopped"
    (run / "lock").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    assert rows_of(tmp_path)["run"]["state"] == "live"  # its record was written a moment ago
    os.utime(run / "metrics.jsonl", (1, 1))
    assert rows_of(tmp_path)["run"]["state"] == "stopped"


def test_a_run_is_not_live_because_another_process_has_the_id_of_the_one_that_was_killed(tmp_path):
    run = make_run(tmp_path / "run", [{"step": 1_000}])
    (run / "lock").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))  # and no lock on it
    assert rows_of(tmp_path)["run"]["state"] == "finished"


def test_runs_that_differ_in_their_seed_alone_are_one_group(tmp_path):
    for name, changes in (("a", {"seed": 0}), ("b", {"seed": 1}), ("c", {"seed": 1, "tau": 0.01})):
        make_run(tmp_path / name, config=Config(**changes).to_data())
    rows = rows_of(tmp_path)
    assert rows["a"]["group"] == rows["b"]["group"] != rows["c"]["group"]


def test_a_run_of_before_a_setting_existed_is_of_the_same_group(tmp_path):
    config = Config().to_data()
    make_run(tmp_path / "new", config=config)
    make_run(tmp_path / "old", config={name: value for name, value in config.items() if value is not None})
    assert rows_of(tmp_path)["new"]["group"] == rows_of(tmp_path)["old"]["group"]


def test_a_runs_settings_come_with_the_groups_they_are_shown_in(tmp_path):
    make_run(tmp_path / "run")
    answer = ask(tmp_path, f"/api/run?id={id_of(tmp_path, 'run')}").json()
    assert {name: tuple(names) for name, names in answer["groups"].items()} == GROUPS
    assert {name for names in answer["groups"].values() for name in names} == set(answer["config"])


def test_a_row_is_read_again_only_when_a_file_has_changed(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", [{"step": 1}])
    watched = Watched(tmp_path, run)
    assert watched.row().step == 1
    before = watched.row()
    assert watched.row() is before
    append(run, [{"step": 2}])
    assert watched.row().step == 2


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
    index = RunIndex(tmp_path)
    hub = Hub(index)
    id = Watched(tmp_path, tmp_path / "run").id
    hub._follow({id})
    assert hub._look({id})[1] == {}
    make_run(tmp_path / "run", [{"step": 1, "x": 1.0}])
    index._looked = -100.0
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
    index = RunIndex(tmp_path)
    hub = Hub(index)
    one = make_run(tmp_path / "one", [{"step": 1}])
    make_run(tmp_path / "two", [{"step": 1}])
    assert hub._look(set()) == (b"", {})
    append(one, [{"step": 5}])
    news, _ = hub._look(set())
    data = json.loads(news.decode().split("data: ")[1])
    assert [(row["name"], row["step"]) for row in data["runs"]] == [("one", 5)]
    import shutil

    shutil.rmtree(tmp_path / "two")
    index._looked = -100.0
    news, _ = hub._look(set())
    assert len(json.loads(news.decode().split("data: ")[1])["gone"]) == 1


def test_a_viewer_that_leaves_in_the_moment_it_is_told_something_is_gone():
    async def left_after(turns):
        viewer = Viewer(None)
        waiting = asyncio.create_task(viewer.next())
        await asyncio.sleep(0)
        viewer.tell(b"news")
        for _ in range(turns):
            await asyncio.sleep(0)
        asked = waiting.cancel()  # False where it was answered before
        await asyncio.wait([waiting])
        return waiting.cancelled() == asked

    assert [asyncio.run(left_after(turns)) for turns in range(6)] == 6 * [True]
