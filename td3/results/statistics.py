"""Statistics over seeds: aggregate scores, bootstrap intervals, probability of improvement, tests and profiles.

The scores of a setting are one list of numbers, a seed each, or one such list for each environment (a stratum). The
aggregates, the stratified bootstrap and the probability of improvement are those of Agarwal et al., "Deep Reinforcement
Learning at the Edge of the Statistical Precipice" (2021), and equal those of its library rliable.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Strata = list[Array]  # one array for each environment; the last axis counts seeds
Statistic = Callable[..., Any]

RESAMPLES = 10_000  # of a bootstrap
DRAWS = 20_000  # of a permutation test; it is exact where there are no more ways to split the seeds
LARGEST_BLOCK = 2**22  # numbers that a bootstrap holds at once
ALPHA, POWER = 0.05, 0.8


def strata_of(scores: Any) -> Strata:
    """Returns scores as one array for each environment; a plain list of numbers is one environment."""
    scores = list(scores)
    if not scores or np.ndim(scores[0]) == 0:
        scores = [scores]
    return [np.asarray(one, np.float64) for one in scores]


# --- Aggregates -------------------------------------------------------------------------------------------------------


def iqm(scores: Any) -> Any:
    """Returns the interquartile mean: the mean of all runs without the lowest and the highest quarter of them."""
    ordered = np.sort(np.concatenate(strata_of(scores), axis=-1), axis=-1)
    number = ordered.shape[-1]
    cut = number // 4
    return ordered[..., cut : number - cut].mean(axis=-1)


def mean(scores: Any) -> Any:
    """Returns the mean over environments of the mean over seeds."""
    return np.mean([one.mean(axis=-1) for one in strata_of(scores)], axis=0)


def median(scores: Any) -> Any:
    """Returns the median over environments of the mean over seeds; of one environment the median over seeds."""
    strata = strata_of(scores)
    if len(strata) == 1:
        return np.median(strata[0], axis=-1)
    return np.median([one.mean(axis=-1) for one in strata], axis=0)


def optimality_gap(scores: Any, optimum: float = 1.0) -> Any:
    """Returns by how much runs fall short of the optimum in the mean; what is above it counts as the optimum."""
    return optimum - np.minimum(np.concatenate(strata_of(scores), axis=-1), optimum).mean(axis=-1)


def difference(scores: Any, others: Any) -> Any:
    """Returns the mean of `scores` minus the mean of `others`."""
    return mean(scores) - mean(others)


def probability_of_improvement(scores: Any, others: Any) -> Any:
    """Returns how probable it is that a run of `scores` beats one of `others`, averaged over environments.

    It is the Mann–Whitney U over the number of pairs: ties count one half.
    """
    pairs = zip(strata_of(scores), strata_of(others), strict=True)
    return np.mean([_share_of_wins(one, other) for one, other in pairs], axis=0)


def _share_of_wins(one: Array, other: Array) -> Any:
    left, right = one[..., :, None], other[..., None, :]
    return ((left > right).mean(axis=(-2, -1)) + (left >= right).mean(axis=(-2, -1))) / 2


def performance_profile(scores: Any, thresholds: Sequence[float] | Array) -> Array:
    """Returns the share of runs above each threshold, over all environments."""
    return np.asarray(_mean_of_all(above(scores, thresholds)))


def above(scores: Any, thresholds: Sequence[float] | Array) -> Strata:
    """Returns for each threshold and run whether it is above; the bootstrap makes bands of it with `_mean_of_all`."""
    limits = np.asarray(thresholds, np.float64)[:, None]
    return [(one[..., None, :] > limits).astype(np.float64) for one in strata_of(scores)]


def _mean_of_all(strata: Any) -> Any:
    return np.concatenate(strata_of(strata), axis=-1).mean(axis=-1)


def profile_band(
    scores: Any, thresholds: Sequence[float] | Array, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Array, Array]:
    """Returns the lower and the upper end of the 95 % interval of a performance profile, at each threshold."""
    low, high = bootstrap_interval(_mean_of_all, above(scores, thresholds), resamples=resamples, seed=seed)
    return np.asarray(low), np.asarray(high)


# --- Intervals --------------------------------------------------------------------------------------------------------


def bootstrap_interval(
    statistic: Statistic, *samples: Any, resamples: int = RESAMPLES, level: float = 0.95, seed: int = 0
) -> tuple[Any, Any]:
    """Returns the ends of the percentile interval of a statistic by stratified bootstrap.

    Seeds are drawn with replacement within each environment, and for each of the `samples` on their own. The same
    scores and seed give the same interval. A sample may have axes before that of the seeds, as the steps of a curve.

    >>> bootstrap_interval(iqm, [4885.0, 4522.0, 5025.0])
    """
    known = [strata_of(sample) for sample in samples]
    rng = np.random.default_rng(seed)
    size = math.prod(sum(one.shape[-1] for one in strata) for strata in known)
    size *= max(math.prod(one.shape[:-1]) for strata in known for one in strata)
    block = max(1, min(resamples, LARGEST_BLOCK // max(1, size)))
    values = []
    for begin in range(0, resamples, block):
        number = min(block, resamples - begin)
        values.append(statistic(*([_resampled(one, number, rng) for one in strata] for strata in known)))
    low, high = np.quantile(np.concatenate(values, axis=-1), [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return low, high


def _resampled(scores: Array, number: int, rng: np.random.Generator) -> Array:
    seeds = scores.shape[-1]
    return scores[..., rng.integers(seeds, size=(number, seeds))]


# --- Can two settings be distinguished? -------------------------------------------------------------------------------


def permutation_test(scores: Any, others: Any, *, draws: int = DRAWS, seed: int = 0) -> float:
    """Returns the p-value of a two-sided permutation test of the difference of means.

    Under the hypothesis that both settings are the same, every way to split an environment's runs into two groups of
    these sizes is equally probable; p is the share of splits with a difference at least as large as the one seen. Each
    environment counts in units of the standard deviation of its runs. All splits are tried where there are at most
    `draws`, and else as many at random. No distribution is assumed.
    """
    pairs = [pair for pair in zip(strata_of(scores), strata_of(others), strict=True) if np.ptp(np.concatenate(pair))]
    if not pairs:
        return 1.0
    units = [np.concatenate(pair).std() for pair in pairs]
    seen = sum((one.mean() - other.mean()) / unit for (one, other), unit in zip(pairs, units, strict=True))
    ways = math.prod(math.comb(len(one) + len(other), len(one)) for one, other in pairs)
    rng = np.random.default_rng(seed)
    total: Any = np.zeros(1)
    for (one, other), unit in zip(pairs, units, strict=True):
        both = np.concatenate([one, other])
        if ways <= draws:
            places = np.array(list(itertools.combinations(range(len(both)), len(one))))
            total = np.add.outer(total, _differences(both, places, unit)).ravel()
        else:
            order = rng.permuted(np.tile(np.arange(len(both)), (draws, 1)), axis=1)
            total = total + _differences(both, order[:, : len(one)], unit)
    as_large = int(np.count_nonzero(np.abs(total) >= abs(seen) * (1 - 1e-9)))
    return as_large / ways if ways <= draws else (as_large + 1) / (draws + 1)


def _differences(both: Array, places: Any, unit: float) -> Any:
    """Returns the difference of means for each choice of places of the first group."""
    size = places.shape[1]
    first = both[places].sum(axis=1)
    return (first / size - (both.sum() - first) / (len(both) - size)) / unit


def smallest_p(sizes: Iterable[tuple[int, int]]) -> float:
    """Returns the smallest p-value that a permutation test can give for these numbers of seeds, an environment each."""
    sizes = list(sizes)
    ways = math.prod(math.comb(one + other, one) for one, other in sizes)
    mirrored = all(one == other for one, other in sizes)  # then the opposite split is as extreme
    return min(1.0, (2 if mirrored else 1) / ways)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number by Holm's method: at most 5 % of families have a false one."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def seeds_needed(
    scores: Sequence[float] | Array, others: Sequence[float] | Array, *, comparisons: int = 1
) -> int | None:
    """Returns about how many seeds of each setting would show a difference as large as the one between these means.

    For a test at 5 % over so many `comparisons` and a power of 80 %, with the spread of these seeds, if scores are
    normally distributed. None where it cannot be known: fewer than two seeds, or equal means.
    """
    one, other = np.asarray(scores, np.float64), np.asarray(others, np.float64)
    if min(len(one), len(other)) < 2 or one.mean() == other.mean():
        return None
    normal = NormalDist()
    z_alpha, z_power = normal.inv_cdf(1 - ALPHA / comparisons / 2), normal.inv_cdf(POWER)
    spread = (one.var(ddof=1) + other.var(ddof=1)) / 2 / (one.mean() - other.mean()) ** 2
    number = float(
        2 * (z_alpha + z_power) ** 2 * spread + z_alpha**2 / 4
    )  # the last term: the spread is estimated, too
    least = next(n for n in itertools.count(2) if smallest_p([(n, n)]) <= ALPHA / comparisons)
    return max(least, math.ceil(min(number, 1e9)))
