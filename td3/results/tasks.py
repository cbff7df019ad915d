"""What a comparison is made of: the score of each run, the groups of an environment, and their statistics."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from td3.results.published import Figure
from td3.results.records import Run
from td3.results.scales import Scale
from td3.results.statistics import Array

Interval = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """The result of one run: a mean return, of which evaluation, and after how much training."""

    run: Run
    step: int
    value: float
    seconds: float


@dataclass(frozen=True)
class Versus:
    """A setting beside the baseline."""

    improvement: float  # probability of improvement
    improvement_interval: Interval | None
    difference: float  # of the means
    difference_interval: Interval | None
    p: float
    adjusted_p: float  # for the number of comparisons
    smallest_p: float  # that so many seeds could give
    needed: int | None  # seeds of each setting that would show such a difference


@dataclass(frozen=True)
class Summary:
    """The scores of one setting in one environment, or in all of them."""

    setting: str
    seeds: int
    mean: float
    mean_interval: Interval | None
    std: float
    median: float
    iqm: float
    iqm_interval: Interval | None
    seconds: float  # median training time; NaN where it is not known
    versus: Versus | None = None  # the baseline; not of itself
    gap: float | None = None  # optimality gap, of normalised scores


@dataclass(frozen=True)
class Group:
    """The runs of one setting in one environment."""

    setting: str
    scores: list[Score]

    @property
    def values(self) -> Array:
        """Returns the scores as numbers."""
        return np.array([score.value for score in self.scores])

    @property
    def runs(self) -> list[Run]:
        """Returns the runs."""
        return [score.run for score in self.scores]


@dataclass(frozen=True)
class Task:
    """One environment: the step at which its runs are compared, their groups and the statistics."""

    env: str
    step: int  # that was asked for, or the last that all runs evaluated; of a comparison by time the first that counts
    groups: dict[str, Group]
    scale: Scale | None
    published: list[Figure]
    seconds: float | None = None  # of training, where runs are compared by time
    summaries: list[Summary] = field(default_factory=list)

    def scaled(self, values: Any) -> Any:
        """Returns scores as they are shown: normalised if that was asked for."""
        return self.scale(values) if self.scale else values


@dataclass(frozen=True)
class Compared:
    """All that was compared. Scores are normalised where that was asked for."""

    tasks: list[Task]
    settings: list[str]
    baseline: str
    last: int  # evaluations that are averaged
    normalized: str | None
    overall: list[Summary]  # over all environments, of the settings that have runs in each; empty where there is one
    left_out: dict[str, str]  # runs that are not compared, by name, with the reason
    notes: list[str]
    comparisons: int  # with the baseline, in all environments
