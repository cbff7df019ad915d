"""Learning curves of a setting: each seed, their interquartile mean and its band, against steps or training time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from td3.results import statistics
from td3.results.records import Run
from td3.results.statistics import Array
from td3.results.summaries import FEWEST
from td3.results.tasks import Task

STEPS, TIME = "steps", "time"
MOMENTS = 200  # of a curve against time
RESAMPLES = 2_000  # at each point of a band
Scaled = Callable[[Array], Array]


class Curve(NamedTuple):
    """The interquartile mean over seeds at each place, and its 95 % interval where there are enough seeds."""

    places: Array  # steps, or seconds of training
    iqm: Array
    low: Array | None
    high: Array | None


def seed_lines(task: Task, setting: str, against: str) -> list[tuple[Array, Array]]:
    """Returns steps or seconds, and scores, of each seed of a setting."""
    runs = task.groups[setting].runs
    return [(run.steps if against == STEPS else run.seconds, task.scaled(run.returns)) for run in runs]


def curve_of(tasks: Sequence[Task], setting: str, against: str = STEPS) -> Curve | None:
    """Returns the curve of a setting in one environment, or in several with scores on one scale.

    It ends where the first of its runs ends. At a step, a run has the score of its evaluation at or before it; between
    two times, scores are interpolated. None if there is no place that all runs have.
    """
    strata = [(task, usable(task.groups[setting].runs, against)) for task in tasks]
    runs = [run for _, several in strata for run in several]
    if not all(several for _, several in strata):
        return None
    places = places_of(runs, against)
    values = [np.stack([task.scaled(at(run, places, against)) for run in several], 1) for task, several in strata]
    whole = np.all([np.isfinite(scores).all(axis=1) for scores in values], axis=0)
    if not whole.any():
        return None
    values, places = [scores[whole] for scores in values], places[whole]
    if min(scores.shape[1] for scores in values) < FEWEST:
        return Curve(places, statistics.iqm(values), None, None)
    low, high = statistics.bootstrap_interval(statistics.iqm, values, resamples=RESAMPLES)
    return Curve(places, statistics.iqm(values), low, high)


def usable(runs: Sequence[Run], against: str) -> list[Run]:
    """Returns the runs that have a place for each evaluation; without rows of speed there is no time."""
    return [run for run in runs if against == STEPS or bool(np.isfinite(run.seconds).all())]


def places_of(runs: Sequence[Run], against: str) -> Array:
    """Returns the places from where all runs have begun to where the first ends."""
    if against == STEPS:
        begin, end = max(run.steps[0] for run in runs), min(run.steps[-1] for run in runs)
        every = np.unique(np.concatenate([run.steps for run in runs]))
        return np.asarray(every[(every >= begin) & (every <= end)])
    begin, end = max(run.seconds[0] for run in runs), min(run.seconds[-1] for run in runs)
    return np.linspace(begin, end, MOMENTS) if begin < end else np.zeros(0)


def at(run: Run, places: Array, against: str) -> Array:
    """Returns the scores of a run at each place."""
    if against == STEPS:
        return np.asarray(run.returns[np.searchsorted(run.steps, places, side="right") - 1])
    return np.interp(places, run.seconds, run.returns)
