"""Findings of the diagnosis on their way from a run's record to the page: found, bounded, and gone with their rows."""

import ast
import json
from pathlib import Path

import pytest
from folders import append, ask, found_row, id_of, make_run, rows_of

import td3.diagnosis
from td3.config import Config
from td3.views.web import run_index
from td3.views.web.findings import LONGEST_SENTENCE, MOST, Findings, is_harmless
from td3.views.web.live import Followed
from td3.views.web.run_index import RunIndex
from td3.views.web.runs import Watched
from td3.views.web.updates import Updates


def found_in(root, name="run"):
    return ask(root, f"/api/run?id={id_of(root, name)}").json()["findings"]


def followed(root, run):
    return Followed(Watched(root, run), Updates(run / "updates.jsonl"))


def events(messages):
    """Names and data of server-sent events."""
    texts = [message.decode().strip().split("\n") for message in messages]
    return {name.removeprefix("event: "): json.loads(data.removeprefix("data: ")) for name, data in texts}


def test_a_run_comes_with_its_findings_and_the_worst_first(tmp_path):
    rows = [
        found_row(
            4_000,
            name="critics_explain_nothing",
            seen="100 % are silent.",
            command=[],
            chart="health/residual_variance",
        ),
        found_row(5_000, name="a_rule_of_tomorrow", chart="", command=["evaluate", "RUN", "--episodes", "20"]),
        found_row(6_000),
        found_row(7_000, seen="Once more."),
    ]
    run = make_run(tmp_path / "run", rows, Config(env="Pendulum-v1").to_data())
    one, two, three = found_in(tmp_path)
    assert (one["name"], one["step"], one["chart"]) == ("one_action", 6_000, "health/one_end")
    assert one["command"] == "td3 check Pendulum-v1"
    assert (two["name"], two["command"]) == ("critics_explain_nothing", None)
    assert (three["chart"], three["command"]) == ("", f"td3 evaluate {run} --episodes 20")
    row = rows_of(tmp_path)["run"]
    assert (row["findings"], row["finding"]) == (3, one["seen"])
    assert ask(tmp_path, f"/api/run?id={row['id']}").json()["doctor"] == f"td3 doctor {run}"


def test_a_command_names_the_run_from_where_the_page_was_started(tmp_path, monkeypatch):
    make_run(tmp_path / "runs" / "a b", [found_row(command=["evaluate", "RUN"])])
    monkeypatch.chdir(tmp_path)
    assert found_in(tmp_path / "runs", "a b")[0]["command"] == "td3 evaluate 'runs/a b'"


def test_a_new_finding_is_sent_once_and_one_that_was_cut_off_disappears(tmp_path):
    run = make_run(tmp_path / "run", [{"step": 1, "x": 1.0}])
    viewed = followed(tmp_path, run)
    assert viewed.news() == []
    append(run, [found_row()])
    assert [one["step"] for one in events(viewed.news())["findings"]["findings"]] == [4_000]
    assert viewed.news() == []
    append(run, [{"step": 4_001, "x": 1.0}])
    assert list(events(viewed.news())) == ["points"]
    (run / "metrics.jsonl").write_text('{"step":1,"x":1}\n{"step":2,"x":1}\n')
    assert events(viewed.news())["findings"]["findings"] == []
    append(run, [found_row(5_000)])
    assert [one["step"] for one in events(viewed.news())["findings"]["findings"]] == [5_000]
    (run / "metrics.jsonl").unlink()
    assert events(viewed.news())["findings"]["findings"] == []


def test_the_list_searches_long_records_a_little_at_each_look(tmp_path, monkeypatch):
    monkeypatch.setattr("td3.views.web.files.CHUNK", 1_000)
    monkeypatch.setattr(run_index, "SEARCHED", 2_000)
    padding = [{"step": step, "x": 1.5} for step in range(200)]
    for name in ("a", "b", "c"):
        make_run(tmp_path / name, [*padding, found_row()])
    index = RunIndex(tmp_path)
    counts = []
    while not counts or counts[-1] < 3:
        counts.append(sum(row.findings for row in index.rows()))
    assert counts[0] == 0
    assert 5 <= len(counts) <= 12
    before = {row.id: row for row in index.rows()}
    assert all(before[row.id] is row for row in index.rows())  # nothing new, nothing made


@pytest.mark.parametrize(
    "row",
    [
        {"finding": None},
        {"finding": "words"},
        {"finding": {"name": "x"}},
        found_row(seen=7),
        found_row(seen=" "),
        found_row(-1),
        found_row(1e300),
        found_row(command="check ENV"),
        {"step": 1, "note": '"finding"'},
    ],
)
def test_what_is_no_finding_is_passed_over(tmp_path, row):
    run = make_run(tmp_path / "run", [row, found_row(name="true")])
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"finding":\n"finding"\n')
    assert [one["name"] for one in found_in(tmp_path)] == ["true"]


def test_a_strangers_finding_is_short_one_line_and_points_nowhere_else(tmp_path):
    words = {"seen": "a\n\u202eb\x1b[31m" + 9_000 * "c", "advice": 9_000 * "d"}
    hostile = found_row(**words, chart="javascript:alert(1)", command=["train", "ENV"])
    make_run(tmp_path / "run", [hostile, *(found_row(name=f"n{number}") for number in range(200))])
    found = found_in(tmp_path)
    assert len(found) == MOST
    one = found[0]
    assert one["seen"].startswith("a\\n\\u202eb\\x1b[31mccc")
    assert (len(one["seen"]), len(one["advice"])) == (LONGEST_SENTENCE, LONGEST_SENTENCE)
    assert (one["chart"], one["command"]) == ("", None)


@pytest.mark.parametrize("env", ["--help", "x" * 1_000, "tests:<lambda>", "", 7, None])
def test_a_command_with_an_environment_that_it_could_not_name_is_left_out(tmp_path, env):
    make_run(tmp_path / "run", [found_row()], {**Config().to_data(), "env": env})
    assert found_in(tmp_path)[0]["command"] is None


def test_an_environment_is_quoted_for_a_shell(tmp_path):
    make_run(tmp_path / "run", [found_row()], {**Config().to_data(), "env": "a; rm -rf ~"})
    assert found_in(tmp_path)[0]["command"] == "td3 check 'a; rm -rf ~'"


def test_only_commands_that_read_may_be_offered():
    offered = [
        [word.value if isinstance(word, ast.Constant) else "20" for word in keyword.value.elts]
        for path in Path(td3.diagnosis.__file__).parent.glob("*.py")
        for keyword in ast.walk(ast.parse(path.read_text()))
        if isinstance(keyword, ast.keyword) and keyword.arg == "command" and isinstance(keyword.value, ast.Tuple)
    ]
    assert len(offered) >= 10
    assert all(map(is_harmless, offered))
    for words in (["train", "ENV"], ["check", "evil:env"], ["check", "ENV", "--env=x"], [], ["check"] * 9):
        assert not is_harmless(words)


def test_a_record_that_is_no_regular_file_has_no_findings(tmp_path):
    run = make_run(tmp_path / "run")
    (tmp_path / "elsewhere").write_text(json.dumps(found_row()) + "\n")
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    row = rows_of(tmp_path)["run"]
    assert (row["findings"], row["finding"]) == (0, None)
    assert Findings(tmp_path / "nowhere").search() == 0
