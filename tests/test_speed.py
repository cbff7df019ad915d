"""`td3 bench`: it measures what it says, counts operations as one would by hand, and refuses what it does not know."""

import json
import math

import pytest

from td3.speed.cases import CASES, Case, operations
from td3.speed.report import draw, tables
from td3.speed.rounds import REST, interleave
from td3.views import cli


def test_the_operations_of_an_update_are_counted_right():
    # By hand: one unit each, batch 1. The actor has 2 products, a critic 1 · 2 + 1 = 3, of which 1 is not its inputs'.
    tiny = Case("tiny", 1, 1, (1,), 1)
    critics_only = 2 + 6 * 3 + 2 * 1
    delayed = 2 + 3 + (1 + 1) + 2 + 1  # actor, critic, back to the action, the actor's weights, and back
    assert operations(tiny) == 2 * (critics_only + delayed / 2)
    assert operations(tiny, policy_delay=1) == 2 * (critics_only + delayed)
    assert operations(CASES["author"]) == pytest.approx(413.5e6, rel=1e-3)


def test_rounds_are_interleaved_and_the_best_and_the_middle_are_told(monkeypatch):
    now, order = [0.0], []
    monkeypatch.setattr("td3.speed.rounds.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("td3.speed.rounds.time.sleep", lambda seconds: order.append(seconds))

    def run_at(name, seconds_each):
        def run(count):
            order.append(name)
            now[0] += count * next(seconds_each)

        return run

    slow = run_at("slow", iter([0.02] * 2 + [9, 0.02, 9, 0.04, 9, 0.01]))  # before each round a few untimed
    fast = run_at("fast", iter([0.001] * 10))
    speeds = interleave({"slow": slow, "fast": fast}, rounds=3, seconds=0.32)
    assert order[-18:] == [REST, "slow", "slow", REST, "fast", "fast"] * 3
    assert (speeds["slow"].best, speeds["slow"].median) == pytest.approx((100, 50))
    assert (speeds["fast"].best, speeds["fast"].median) == pytest.approx((1000, 1000))


def test_a_small_benchmark_runs_in_a_process_of_its_own_and_answers_json(capsys):
    assert (
        cli.main(
            ["bench", "--threads", "1", "--sections", "updates,acting", "--cases", "small", "--rounds", "1", "--json"]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    (run,) = result["runs"]
    assert run["threads"] == 1 and list(run["subjects"])[:2] == ["td3 native", "td3 torch"]
    speeds = run["updates"]["small"]["speeds"]
    assert speeds["td3 native"]["best"] > speeds["td3 torch"]["best"] > 1
    share = speeds["td3 native"]["best"] * operations(CASES["small"]) / 1e9 / run["peak_gflops"]
    assert 0 < share < 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cases", "smal"], "--cases must be of small, author, paper, large, wide; got 'smal'. Did you mean small?"),
        (["--threads", "0"], "--threads must be a whole number, at least 1; got '0'."),
        (["--threads", "1,4096"], "--threads must be at most"),
        (["--sections", "all"], "--sections must be of updates, steps, acting, growth; got 'all'."),
        (["--picture", "speed.foo"], "--picture must be a .png or .svg in a folder that exists; got 'speed.foo'."),
        (["--picture", "nowhere/speed.png"], "--picture must be a .png or .svg in a folder that exists"),
        (["--rounds", "few"], "--rounds must be a whole number, at least 1; got 'few'."),
    ],
)
def test_what_it_does_not_know_is_refused_in_one_sentence(words, sentence, capsys):
    assert cli.main(["bench", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"td3: {sentence}") and said.count("\n") == 1


def speed(best):
    return {"best": best, "median": best / 2}


def result(peak=100.0):
    growth = {"32": {**speed(900.0), "gflops": 40.0}, "64": {**speed(500.0), "gflops": 45.0}}
    case = CASES["author"]
    run = {
        "threads": 2,
        "rounds": 3,
        "peak_gflops": peak,
        "subjects": {"td3 native": "native avx2", "Peer": "1.0"},
        "updates": {
            "author": {
                "case": case._asdict(),
                "operations": 5e8,
                "speeds": {"td3 native": speed(160.0), "Peer": speed(40.0)},
            }
        },
        "steps": {
            "env": "HalfCheetah-v5",
            "case": case._asdict(),
            "speeds": {"td3 native": speed(150.0), "Peer": speed(50.0)},
            "around": {"update": 2_600.0, "env": 200.0, "around": 200.0},
        },
        "acting": {"case": case._asdict(), "speeds": {"td3 native": speed(50_000.0)}},
        "growth": {
            "engine": "td3 native",
            "batch": growth,
            "width": growth,
            "environments": {"1": speed(150.0)},
            "memory": {"5,000": speed(160.0)},
        },
    }
    return {"machine": "any", "runs": [json.loads(json.dumps(run))]}


def test_the_tables_tell_speeds_shares_and_ratios():
    told = tables(result())
    assert "| author (256-256, batch 256, 17 → 6) | 160 (80) | 40 (20) | 0.80 | 4.0 × |" in told
    assert "| author (256-256, batch 256, 17 → 6) | 150 (75) | 50 (25) | 3.0 × |" in told
    assert "all else (acting, storing, sampling, bookkeeping) 200 µs: 6.7%." in told
    assert "td3 native 20.0 µs" in told and "| of peak | 0.40 | 0.45 |" in told
    assert "of peak" not in tables(result(math.nan)) and "nan" not in tables(result(math.nan))


def test_the_picture_is_drawn(tmp_path):
    draw(result(), tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
