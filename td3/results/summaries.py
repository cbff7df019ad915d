"""The statistics of each setting in each environment and in all, and how it does beside the baseline."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from td3.results import statistics
from td3.results.statistics import Array
from td3.results.tasks import Interval, Summary, Task, Versus

FEWEST = 3  # seeds for which an interval is given


@dataclass(frozen=True)
class Bootstrap:
    """Gives intervals where there are enough seeds."""

    resamples: int
    seed: int

    def interval(self, statistic: Callable[..., Any], *samples: list[Array]) -> Interval | None:
        if any(len(scores) < FEWEST for strata in samples for scores in strata):
            return None
        low, high = statistics.bootstrap_interval(statistic, *samples, resamples=self.resamples, seed=self.seed)
        return float(low), float(high)


def compared(task: Task, setting: str, baseline: str) -> bool:
    """Says whether a setting of a task has a baseline beside it."""
    return setting != baseline and baseline in task.groups


def versus_by_pair(
    pairs: list[tuple[Task, str]], baseline: str, comparisons: int, bootstrap: Bootstrap
) -> dict[tuple[str, str], Versus]:
    """Compares each setting with the baseline in each environment, with p-values corrected for their number."""
    samples = [
        ([task.scaled(task.groups[setting].values)], [task.scaled(task.groups[baseline].values)])
        for task, setting in pairs
    ]
    p_values = [statistics.permutation_test(*both) for both in samples]
    return {
        (task.env, setting): versus(*both, ps, comparisons, bootstrap)
        for (task, setting), both, *ps in zip(pairs, samples, p_values, statistics.holm(p_values), strict=True)
    }


def versus(own: list[Array], base: list[Array], ps: Sequence[float], comparisons: int, bootstrap: Bootstrap) -> Versus:
    """Compares scores with those of the baseline, an array for each environment; `ps` are p and its correction."""
    needed = statistics.seeds_needed(own[0], base[0], comparisons=comparisons) if len(own) == 1 else None
    return Versus(
        improvement=float(statistics.probability_of_improvement(own, base)),
        improvement_interval=bootstrap.interval(statistics.probability_of_improvement, own, base),
        difference=float(statistics.difference(own, base)),
        difference_interval=bootstrap.interval(statistics.difference, own, base),
        p=ps[0],
        adjusted_p=ps[1],
        smallest_p=statistics.smallest_p([(len(one), len(other)) for one, other in zip(own, base, strict=True)]),
        needed=needed,
    )


def summary(task: Task, setting: str, against: dict[tuple[str, str], Versus], bootstrap: Bootstrap) -> Summary:
    """Returns the statistics of one setting in one environment."""
    group = task.groups[setting]
    values = [task.scaled(group.values)]
    return summarised(setting, values, [s.seconds for s in group.scores], against.get((task.env, setting)), bootstrap)


def spread(values: Array) -> float:
    """Returns the standard deviation over seeds, estimated with n − 1; 0 of one seed."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def summarised(
    setting: str, strata: list[Array], seconds: list[float], versus: Versus | None, bootstrap: Bootstrap
) -> Summary:
    """Returns the statistics of scores, an array for each environment."""
    known = [one for one in seconds if math.isfinite(one)]
    return Summary(
        setting=setting,
        seeds=sum(map(len, strata)),
        mean=float(statistics.mean(strata)),
        mean_interval=bootstrap.interval(statistics.mean, strata),
        std=spread(np.concatenate(strata)),
        median=float(statistics.median(strata)),
        iqm=float(statistics.iqm(strata)),
        iqm_interval=bootstrap.interval(statistics.iqm, strata),
        seconds=float(np.median(known)) if known else math.nan,
        versus=versus,
        gap=float(statistics.optimality_gap(strata)) if len(strata) > 1 else None,
    )


def summaries_of_all(tasks: list[Task], settings: list[str], baseline: str, bootstrap: Bootstrap) -> list[Summary]:
    """Returns the statistics over all environments, of the settings that have runs in each of them."""
    everywhere = [setting for setting in settings if all(setting in task.groups for task in tasks)]
    strata = {one: [task.scaled(task.groups[one].values) for task in tasks] for one in everywhere}
    others = [one for one in everywhere if one != baseline] if baseline in everywhere else []
    p_values = [statistics.permutation_test(strata[one], strata[baseline]) for one in others]
    against = {
        one: versus(strata[one], strata[baseline], ps, len(others), bootstrap)
        for one, *ps in zip(others, p_values, statistics.holm(p_values), strict=True)
    }
    seconds = {one: [s.seconds for task in tasks for s in task.groups[one].scores] for one in everywhere}
    found = [summarised(one, strata[one], seconds[one], against.get(one), bootstrap) for one in everywhere]
    return found if all(task.scale for task in tasks) else [without_returns(one) for one in found]


def without_returns(one: Summary) -> Summary:
    """Leaves out what adds returns of different environments, which have no common unit."""
    versus = one.versus and replace(one.versus, difference=math.nan, difference_interval=None)
    none = math.nan
    one = replace(one, mean=none, std=none, median=none, iqm=none, versus=versus)
    return replace(one, mean_interval=None, iqm_interval=None, gap=None)
