"""Kills the driver of a search at random moments, and compares its trials with those of an undisturbed one.

    python -m bench.tuning --trials 20 --kills 5

Both searches train one run at a time on a small task. Each kill is a `kill -9` of the driver alone, at a random line of
its journal and a random while after it: while it asks, trains, reports or prunes. Its run notices, saves and ends, and
the driver is started again. At the end every trial must be there once, with the settings, the state, the evaluations
and the value that it has in the search that was left alone.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from td3.studies.tune_spec import read_tune_spec
from td3.studies.tuner import Tuner, evaluations
from td3.studies.tuning import TrialRecord

SMALL = {
    "steps": 600, "warmup-steps": 100, "hidden": "16,16", "batch-size": 32, "eval-every": 60, "eval-episodes": 1,
    "checkpoint-every": 100, "log-every": 60,
}  # fmt: skip
TICK = 0.01  # seconds between two looks at a journal


def words(folder: Path, trials: int, seed: int) -> list[str]:
    """The command line of a search."""
    flags = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    return ["tune", "Pendulum-v1", "--tune", str(folder), "--trials", str(trials), "--seed", str(seed), "--jobs", "1",
            *flags, "--no-diagnose", "--no-record-updates", "--json"]  # fmt: skip


def start(arguments: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "td3", *arguments], stdout=subprocess.PIPE)


def finish(arguments: list[str]) -> dict[str, Any]:
    """Runs a search to its end; returns its report."""
    out, _ = start(arguments).communicate()
    report: dict[str, Any] = json.loads(out)
    return report


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def kill_at(arguments: list[str], journal: Path, line: int, patience: float) -> bool:
    """Starts the driver, and kills it a while after its journal has so many lines; whether it was still there."""
    process = start(arguments)
    while process.poll() is None and lines_in(journal) < line:
        time.sleep(TICK)
    time.sleep(patience)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return alive


def trials_of(folder: Path) -> list[TrialRecord]:
    """Reads the trials of a search that has ended."""
    with Tuner(folder, read_tune_spec(folder / "tune.toml")) as tuner:
        return tuner.search.trials()


def differences(folder: Path, other: Path) -> list[str]:
    """Says what is not the same in two searches: their trials, and the evaluations of their runs."""
    found, expected = trials_of(folder), trials_of(other)
    wrong = [f"{len(found)} trials instead of {len(expected)}"] if len(found) != len(expected) else []
    for one, same in zip(found, expected, strict=False):
        if one != same:
            wrong.append(f"trial {one.number}: {one} instead of {same}")
    runs = sorted(path.parent.relative_to(folder) for path in folder.glob("trial-*/seed-*/config.json"))
    if len(runs) != len(found):
        wrong.append(f"{len(runs)} runs of {len(found)} trials")
    for run in runs:
        both = evaluations(folder / run), evaluations(other / run)
        shared = both[0].keys() & both[1].keys()  # a pruned run ends some steps after the evaluation that ended it
        if not shared or any(both[0][step] != both[1][step] for step in shared):
            wrong.append(f"{run}: {both[0]} instead of {both[1]}")
    return wrong


def main() -> int:
    """Runs both searches and reports; returns 0 if they are the same and a trial was pruned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rng = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory() as place:
        alone, killed = Path(place) / "alone", Path(place) / "killed"
        report = finish(words(alone, chosen.trials, chosen.seed))
        states = [trial["state"] for trial in report["trials"]]
        lines = lines_in(alone / "journal.jsonl")
        print(f"left alone: {len(states)} trials, {states.count('pruned')} pruned, {lines} lines", flush=True)
        again, kills = words(killed, chosen.trials, chosen.seed), 0
        for line in sorted(rng.sample(range(2, lines), chosen.kills)):
            kills += kill_at(again, killed / "journal.jsonl", line, rng.uniform(0, 1))
            print(f"kill {kills}: {lines_in(killed / 'journal.jsonl')} lines", flush=True)
        finish(again)
        wrong = differences(killed, alone)
    print(f"{kills} kills: {'all trials, runs and proposals are the same' if not wrong else ''}", *wrong, sep="\n")
    return 1 if wrong or "pruned" not in states else 0


if __name__ == "__main__":
    sys.exit(main())
