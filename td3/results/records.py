"""Runs as results: the evaluations of each, its training time at each of them, and the settings it was begun with."""

import contextlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from td3.errors import RunError
from td3.metrics import CHANGED, FAILED, STOPPED
from td3.results.statistics import Array
from td3.storage.record import read_metrics
from td3.storage.runs import is_written, read_object
from td3.wording import one_line

SCORE, SPREAD, SPEED = "eval/mean_return", "eval/std_return", "time/steps_per_second"
LARGEST_STEP = 10**15  # of a record that can be believed
SLOWEST = 1e-9  # steps per second that can be believed
MOST_VERSIONS = 30


@dataclass(frozen=True)
class Run:
    """One run: its evaluations in the order of their steps, and what is known about it."""

    name: str  # the path as it was asked for
    path: Path
    env: str
    seed: int | None
    config: dict[str, Any]
    versions: dict[str, str]
    steps: Array  # of the evaluations
    returns: Array  # mean return of each; NaN where it was no number
    spreads: Array  # standard deviation of the returns of each
    seconds: Array  # of training before each, without evaluations; NaN where it is not known
    reached: int  # the newest step in its record
    goal: int | None
    running: bool
    stopped: bool = False  # by itself, before its goal
    failed: str = ""  # why it ended with an error
    changes: dict[int, list[str]] = field(default_factory=dict)  # settings that changed, by step

    def score(self, number: int, last: int = 1) -> tuple[int, float, float]:
        """Returns step, mean return and training seconds of the evaluation with this number, counted from 1.

        With `last`, the return is the mean of so many evaluations up to it. There must be as many.
        """
        returns = self.returns[number - last : number]
        return int(self.steps[number - 1]), float(returns.mean()), float(self.seconds[number - 1])

    def evaluations_until(self, step: float) -> int:
        """Returns how many evaluations there are at or before a step."""
        return int(np.searchsorted(self.steps, step, side="right"))

    def evaluations_within(self, seconds: float) -> int:
        """Returns how many evaluations there are within a training time."""
        return int(np.searchsorted(self.seconds, seconds, side="right"))


def read_run(name: str, path: Path) -> Run:
    """Reads one run; RunError if its settings or its record cannot be read."""
    config = read_object(path / "config.json")
    record = _Record()
    if (path / "metrics.jsonl").exists():
        for row in read_metrics(path / "metrics.jsonl"):
            record.add(row)
    steps = sorted(record.scores)
    env = config.get("env")
    return Run(
        name=name,
        path=path,
        env=one_line(env, 60) if isinstance(env, str) else "?",
        seed=whole(config.get("seed")),
        config=config,
        versions=versions_of(path),
        steps=np.array(steps, np.float64),
        returns=np.array([record.scores[step] for step in steps], np.float64),
        spreads=np.array([record.spreads[step] for step in steps], np.float64),
        seconds=record.seconds_at(steps),
        reached=record.reached,
        goal=whole(config.get("steps")),
        running=is_written(path),
        stopped=record.stopped,
        failed=record.failed,
        changes=record.changes,
    )


def versions_of(path: Path) -> dict[str, str]:
    """Returns the versions that a run was made with, and the engine of its newest checkpoint."""
    found: dict[str, Any] = {}
    with contextlib.suppress(RunError):
        found.update(read_object(path / "versions.json"))
    with contextlib.suppress(RunError, OSError):
        names = [one.name for one in (path / "checkpoints").iterdir() if one.name[:1].isdigit()]
        for name in sorted(names)[-1:]:
            versions = read_object(path / "checkpoints" / name / "manifest.json").get("versions")
            found.update(versions if isinstance(versions, dict) else {})
    texts = {one_line(str(name), 30): one_line(value, 60) for name, value in found.items() if isinstance(value, str)}
    return dict(list(texts.items())[:MOST_VERSIONS])


class _Record:
    """Takes in the rows of a record; what is not as training writes it is passed over."""

    def __init__(self) -> None:
        self.scores: dict[int, float] = {}
        self.spreads: dict[int, float] = {}
        self.changes: dict[int, list[str]] = {}
        self.reached, self.stopped, self.failed = 0, False, ""
        self._steps, self._seconds = [0.0], [0.0]  # training time, wherever a row says how fast it was

    def add(self, row: dict[str, Any]) -> None:
        """Takes in one row."""
        step = whole(row.get("step"))
        if step is None or not 0 <= step <= LARGEST_STEP:
            return
        self.stopped = STOPPED in row or (self.stopped and step <= self.reached)  # until it trains on
        self.failed = one_line(failed, 200) if isinstance(failed := row.get(FAILED), str) else ""  # the last row's
        self.reached = max(self.reached, step)
        if SCORE in row:
            self.scores[step], self.spreads[step] = number(row[SCORE]), number(row.get(SPREAD))
        if isinstance(changed := row.get(CHANGED), dict):
            self.changes[step] = [one_line(str(name), 40) for name in changed][:10]
        speed = number(row.get(SPEED))
        if speed > SLOWEST and step > self._steps[-1]:
            # A resumed run cuts its record back to its checkpoint: each step stands once, and so does its time.
            self._seconds.append(self._seconds[-1] + (step - self._steps[-1]) / speed)
            self._steps.append(float(step))

    def seconds_at(self, steps: list[int]) -> Array:
        """Returns the training seconds before each step; after the last row that says so, at that row's speed."""
        if len(self._steps) < 2:
            return np.full(len(steps), np.nan)
        pace = (self._seconds[-1] - self._seconds[-2]) / (self._steps[-1] - self._steps[-2])
        beyond = np.maximum(0.0, np.array(steps, np.float64) - self._steps[-1])
        return np.interp(steps, self._steps, self._seconds) + pace * beyond


def whole(value: Any) -> int | None:
    """Returns a whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: Any) -> float:
    """Returns a finite number as a float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        found = float(value)
    except OverflowError:
        return math.nan
    return found if math.isfinite(found) else math.nan
