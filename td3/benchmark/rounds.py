"""Measuring in rounds: every library a little, again and again, so that a noisy machine is noisy for all."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from td3.benchmark.libraries import Workload

REST = 0.02  # seconds: the threads of whoever ran before spin for a while, and would take a core from the next


class Speed(NamedTuple):
    """Per second: the best round, and the one in the middle."""

    best: float
    median: float


def interleave(
    runs: Mapping[str, Workload], rounds: int, seconds: float, between: Callable[[], None] = lambda: None
) -> dict[str, Speed]:
    """Each run for about so many seconds a round; `between` is called once a round."""
    counts = {name: calibrate(run, seconds) for name, run in runs.items()}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        between()
        for name, run in runs.items():
            time.sleep(REST)
            run(8)  # its numbers come back into the caches, untimed
            rates[name].append(counts[name] / timed(run, counts[name]))
    return {name: Speed(max(found), statistics.median(found)) for name, found in rates.items()}


def calibrate(run: Workload, seconds: float) -> int:
    """How many take about so long: a multiple of 32, or of 8 where 32 are too many."""
    run(8)  # whatever is compiled or allocated at first
    count = 8 * seconds / timed(run, 8)
    if count < 32:
        return max(8, round(count / 8) * 8)
    run(32)
    return round(32 * seconds / timed(run, 32) / 32) * 32 or 32


def timed(run: Workload, count: int) -> float:
    """Returns the seconds that `count` repetitions take."""
    began = time.perf_counter()
    run(count)
    return time.perf_counter() - began
