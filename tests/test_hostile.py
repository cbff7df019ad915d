"""A small part of the campaign of forged run folders; all of it is `python -m bench.hostile`."""

import subprocess
import sys

import pytest

from bench.forging import nodes, packed, read_tensors, twice, with_text, without

FORGED = (
    "plain/untouched",
    "images/untouched",
    "own/untouched",
    "begun/config.json/env/module",
    "plain/state.json/config.env/up",
    "plain/state.json/spaces.observation.shape.0/hundred-million",
    "plain/manifest.json/files.state.json.sha256/nested-lists",
    "plain/metrics.jsonl/all/nested-objects",
    "plain/updates.jsonl/all/2**63",
    "plain/networks.safetensors/header-of-4611686018427387904",
    "plain/segment/offsets-[0, 18446744073709551616]",
    "plain/checkpoints/NEWEST/state.json/link-to-itself-elsewhere",
    "plain/config.json/link-to-zeros",
    "plain/metrics.jsonl/pipe",
    "plain/film.webp/socket",
    "plain/spaces/observation/many-boxes",
)


def test_forged_runs_are_refused_or_opened_without_harm_and_planted_harm_is_noticed():
    only = [word for name in FORGED for word in ("--only", name)]
    command = [sys.executable, "-m", "bench.hostile", "--jobs", "2", "--exactly", *only]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"{len(FORGED)} cases × 12 commands, 0 cases with failures")


def test_a_name_that_is_no_case_is_refused():
    done = subprocess.run([sys.executable, "-m", "bench.hostile", "--only", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no case 'nonsense'" in done.stderr


def test_json_is_forged_value_by_value_and_as_no_writer_would_write_it():
    data = {"a": [1, 2], "b": {"c": None}}
    assert list(nodes(data)) == [("a",), ("a", 0), ("b",), ("b", "c")]
    assert with_text(data, ("b", "c"), "NaN") == b'{"a": [1, 2], "b": {"c": NaN}}'
    assert without(data, ("a", 0)) == b'{"a": [2], "b": {"c": null}}'
    assert twice(data, ("a",), "3") == b'{"a": [1, 2], "a": 3, "b": {"c": null}}'


def test_a_header_of_tensors_may_lie_about_its_length(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(packed({"x": 1}, b"body"))
    assert read_tensors(path) == ({"x": 1}, b"body")
    assert packed({}, b"", 2**64 - 1) == b"\xff" * 8 + b"{}"


def test_fuzzing_without_its_library_says_what_to_install(monkeypatch, capsys):
    from bench import fuzzing

    monkeypatch.setattr(fuzzing.importlib.util, "find_spec", lambda _: None)
    assert fuzzing.fuzz(1) == 2
    assert "pip install 'td3[fuzz]'" in capsys.readouterr().err


@pytest.mark.campaign
def test_every_forged_run_is_refused_or_opened_without_harm():
    assert subprocess.run([sys.executable, "-m", "bench.hostile"]).returncode == 0
