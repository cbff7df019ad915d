"""Results: what the seeds of several settings show, as statistics, tables and pictures.

Reads the records of runs alone; nothing that trains is loaded.

>>> from td3 import results
>>> comparison = results.compare("studies/networks")
>>> print(comparison.table())
>>> comparison.plot("networks.svg")
"""

from td3.results.comparison import Comparison, compare
from td3.results.published import FIGURES, Figure
from td3.results.statistics import (
    bootstrap_interval,
    difference,
    holm,
    iqm,
    mean,
    median,
    optimality_gap,
    performance_profile,
    permutation_test,
    probability_of_improvement,
    profile_band,
    seeds_needed,
)

__all__ = [
    "FIGURES",
    "Comparison",
    "Figure",
    "bootstrap_interval",
    "compare",
    "difference",
    "holm",
    "iqm",
    "mean",
    "median",
    "optimality_gap",
    "performance_profile",
    "permutation_test",
    "probability_of_improvement",
    "profile_band",
    "seeds_needed",
]
