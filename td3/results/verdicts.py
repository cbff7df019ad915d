"""Says in plain words whether two settings can be distinguished, and what the intervals of few seeds are worth.

The criterion is a permutation test of the difference of means at 5 %, corrected for the number of comparisons: it keeps
its 5 % with any number of seeds and any distribution of scores, which intervals of a few seeds do not. With three seeds
of each of two settings no difference can be shown at all.
"""

import math

from td3.results.statistics import ALPHA
from td3.results.summaries import FEWEST
from td3.results.tasks import Compared, Interval, Summary, Versus
from td3.wording import counted

# How often in 100 the 95 % interval of the IQM and of the mean held the true value, by the number of seeds, for
# normally distributed scores: measured with `python -m bench.coverage`.
COVERAGE = {3: (75, 75), 4: (87, 79), 5: (90, 84), 6: (91, 86), 8: (92, 88), 10: (94, 91)}
MOST_SEEDS = 1_000  # that somebody may train


def digits_for(size: float) -> int:
    """Returns how many decimals numbers of a size are shown with."""
    return 0 if size >= 1_000 else 1 if size >= 10 else 3


def score_text(value: float, digits: int) -> str:
    """Writes a score; a dash for none."""
    return f"{value:,.{digits}f}" if math.isfinite(value) else "–"


def interval_text(interval: Interval | None, digits: int) -> str:
    """Writes an interval; a dash for none."""
    return "–" if interval is None else f"{interval[0]:,.{digits}f} to {interval[1]:,.{digits}f}"


def p_text(p: float) -> str:
    """Writes a p-value."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def verdicts(compared: Compared) -> list[str]:
    """Returns a sentence for each setting beside the baseline, in each environment and in all."""
    lines = []
    for task in compared.tasks:
        seeds = {one.setting: one.seeds for one in task.summaries}
        digits = digits_for(max((abs(one.mean) for one in task.summaries), default=0))
        sentences = [
            sentence(one, one.versus, compared.baseline, seeds, digits) for one in task.summaries if one.versus
        ]
        lines += [f"{task.env}: {text}" for text in sentences]
    seeds = {one.setting: one.seeds for one in compared.overall}
    sentences = [
        sentence(one, one.versus, compared.baseline, seeds, 3, "run") for one in compared.overall if one.versus
    ]
    return [*lines, *(f"All {len(compared.tasks)} environments: {text}" for text in sentences)]


def sentence(
    one: Summary, versus: Versus, baseline: str, seeds: dict[str, int], digits: int, noun: str = "seed"
) -> str:
    """Says whether a setting and the baseline can be distinguished."""
    number = f"{one.seeds} and {counted(seeds[baseline], noun)}"
    seen = f"p = {p_text(versus.adjusted_p)}".replace("= <", "<")
    if math.isfinite(versus.difference):
        interval = versus.difference_interval
        ends = "" if interval is None else f" (95 % interval {interval_text(interval, digits)})"
        seen = f"the means differ by {versus.difference:+,.{digits}f}{ends}, {seen}"
    if versus.adjusted_p <= ALPHA:
        better = "better" if versus.improvement > 0.5 else "worse"
        return f"{one.setting} is {better} than {baseline}: {seen}, with {number}."
    few = " No difference can show with so few." if versus.smallest_p > ALPHA else ""
    more = needed(versus, max(one.seeds, seeds[baseline]))
    return f"{one.setting} and {baseline} cannot be distinguished with {number}: {seen}.{few}{more}"


def needed(versus: Versus, seeds: int) -> str:
    """Says about how many seeds would show a difference as large as the one seen."""
    if versus.needed is None:
        return ""
    least = max(versus.needed, seeds + 1)
    how_many = f"about {least:,}" if least <= MOST_SEEDS else f"more than {MOST_SEEDS:,}"
    return f" To show a difference of this size takes {how_many} seeds of each."


def method(compared: Compared) -> list[str]:
    """Says what the intervals and p-values are, and what few seeds make of them."""
    lines = []
    fewest = min(one.seeds for task in compared.tasks for one in task.summaries)
    intervals = [one.seeds for task in compared.tasks for one in task.summaries if one.iqm_interval]
    if intervals:
        lines.append("Intervals: 95 % percentile bootstrap over seeds, within each environment.")
    if intervals and (known := [number for number in COVERAGE if number >= min(intervals)]):
        of_iqm, of_mean = COVERAGE[known[0]]
        lines.append(
            f"With {min(intervals)} seeds they are too narrow: they hold the true IQM in about {of_iqm} of 100 cases, "
            f"and the true mean in {of_mean}."
        )
    if fewest < FEWEST:
        lines.append(f"With fewer than {FEWEST} seeds no interval is given.")
    if compared.comparisons:
        family = (
            f", corrected for {counted(compared.comparisons, 'comparison')} by Holm's method"
            if compared.comparisons > 1
            else ""
        )
        lines.append(f"P(better): how probable it is that a run beats one of {compared.baseline}; ties count one half.")
        lines.append(
            f"p: permutation test of the difference of means{family}; settings count as different at 0.05 or less."
        )
    return lines
