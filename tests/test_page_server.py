"""The page's server: reads run folders only, lets nobody out of them, and answers nobody it should not."""

import hashlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ask, id_of, make_run, rows_of

from td3.errors import RunError
from td3.storage.runs import find
from td3.views.web.explanation import explanation
from td3.views.web.run_index import RunIndex, Unknown
from td3.views.web.updates import Updates


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
    index = RunIndex(root)
    (row,) = index.rows()
    (run / "checkpoints").rmdir()
    (run / "checkpoints").symlink_to(outside / "checkpoints")
    (row,) = index.rows()
    assert (row.best, row.goal, row.state) == (None, 1_000, "broken")
    run.rename(tmp_path / "away")
    run.symlink_to(outside)
    with pytest.raises(Unknown):
        index.detail(row.id)


def test_unknown_names_do_not_make_the_server_search_again_and_again(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr("td3.views.web.run_index.find", lambda root: looked.append(root) or [])
    index = RunIndex(tmp_path)
    for number in range(20):
        with pytest.raises(Unknown):
            index.run(f"{number:012}")
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
    modules = "td3.views.web.server, td3.views.page_host, td3.views.page_process"
    words = f"import sys, {modules}; assert not {{'torch', 'gymnasium'}} & set(sys.modules)"
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


@pytest.mark.parametrize("path", ["/run", "/static/shared.js", "/static/plotly.js"])
def test_a_file_is_sent_compressed_and_not_again_to_a_browser_that_has_it(tmp_path, path):
    whole = ask(tmp_path, path, headers={"Accept-Encoding": "identity"})
    small = ask(tmp_path, path, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in whole.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.content == whole.content  # as the browser unpacks it
    assert int(small.headers["content-length"]) < 0.4 * int(whole.headers["content-length"])
    assert small.headers["etag"] == whole.headers["etag"]
    again = ask(tmp_path, path, headers={"If-None-Match": small.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert ask(tmp_path, path, headers={"If-None-Match": '"another"'}).status_code == 200
