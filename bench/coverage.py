"""Measures how often the statistics of few seeds are right: `python -m bench.coverage --help`.

Draws the seeds of imagined studies from distributions with a known truth, and counts:

- how often the 95 % interval of the IQM and of the mean holds the true value,
- how often two settings that are the same are distinguished: by the permutation test, which `td3 compare` uses, and by
  an interval of the difference of means that does not include 0,
- how often a difference is found with as many seeds as `seeds_needed` asks for; it should be 80 %.

The table for normally distributed scores is the one in `td3/results/verdicts.py` and docs/many-runs.md.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from td3.results import bootstrap_interval, difference, iqm, mean, permutation_test, seeds_needed
from td3.results.statistics import ALPHA

Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]
DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: -rng.gamma(2.0, size=shape),  # most seeds good, some much worse
    "one in five fails": lambda rng, shape: rng.normal(size=shape) - 4.0 * (rng.random(shape) < 0.2),
}
SEEDS = (3, 4, 5, 6, 8, 10, 20, 30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--studies", type=int, default=4_000, help="imagined studies for each number (default 4,000)")
    parser.add_argument("--tests", type=int, default=10_000, help="studies to test for a difference (default 10,000)")
    chosen = parser.parse_args()
    for name, draw in DISTRIBUTIONS.items():
        print(
            f"\n{name}\nseeds   IQM in its interval   mean in its   same, but test differs   same, but interval differs"
        )
        for seeds in SEEDS:
            of_iqm, of_mean = coverage(draw, seeds, chosen.studies)
            test, interval = false_alarms(draw, seeds, chosen.tests)
            print(f"{seeds:5d}   {of_iqm:19.1%}   {of_mean:11.1%}   {test:22.1%}   {interval:26.1%}", flush=True)
    print("\nstandard deviations apart   seeds needed   found with so many")
    for apart in (3.0, 2.0, 1.5, 1.0):
        needed, found = power(apart, chosen.tests)
        print(f"{apart:25.1f}   {needed:12d}   {found:18.1%}", flush=True)


def coverage(draw: Draw, seeds: int, studies: int, resamples: int = 2_000, seed: int = 0) -> tuple[float, float]:
    """Return how often the interval of the IQM and that of the mean hold what many seeds would give."""
    rng = np.random.default_rng(seed)
    many = draw(rng, (1_000_000,))
    scores = draw(rng, (studies, seeds))
    held = []
    for statistic in (iqm, mean):
        low, high = bootstrap_interval(statistic, [scores], resamples=resamples, seed=seed)
        held.append(float(np.mean((low <= statistic(many)) & (statistic(many) <= high))))
    return held[0], held[1]


def false_alarms(draw: Draw, seeds: int, studies: int, seed: int = 0) -> tuple[float, float]:
    """Return how often two equal settings differ by the test, and by the interval of their difference."""
    rng = np.random.default_rng(seed)
    scores, others = draw(rng, (studies, seeds)), draw(rng, (studies, seeds))
    tests = [permutation_test(*pair, draws=2_000) <= ALPHA for pair in zip(scores, others, strict=True)]
    low, high = bootstrap_interval(difference, [scores], [others], resamples=2_000, seed=seed)
    return float(np.mean(tests)), float(np.mean((low > 0) | (high < 0)))


def power(apart: float, studies: int, seed: int = 0) -> tuple[int, float]:
    """Return the seeds needed for two normal distributions so far apart, and how often so many find the difference."""
    exact = np.array([-1.0, 1.0]) / np.sqrt(2)  # two numbers with a standard deviation of 1
    needed = seeds_needed(exact + apart, exact)
    assert needed is not None
    rng = np.random.default_rng(seed)
    scores, others = rng.normal(size=(studies, needed)) + apart, rng.normal(size=(studies, needed))
    found = [permutation_test(*pair, draws=2_000) <= ALPHA for pair in zip(scores, others, strict=True)]
    return needed, float(np.mean(found))


if __name__ == "__main__":
    main()
