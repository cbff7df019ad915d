"""The picture of a search: its history with the best so far, and the value over each setting."""

import math
from pathlib import Path
from typing import Any

from td3.config.search import Choices, Range
from td3.studies.space import label
from td3.studies.tune_spec import TuneSpec
from td3.studies.tuning import COMPLETE, FAILED, PRUNED, TrialRecord, best_of

COLOURS = {COMPLETE: "#1d4ed8", PRUNED: "#94a3b8"}
MARKS = {COMPLETE: "o", PRUNED: "x"}
FIRST, BEST = "#111827", "#c2410c"
COLUMNS = 3


def draw_search(spec: TuneSpec, trials: list[TrialRecord], path: Path) -> None:
    """Plots the trials of a search that have a value into a file, a .png or .svg."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = math.ceil(len(spec.space) / COLUMNS)
    figure = pyplot.figure(figsize=(11, 3.6 + 2.6 * rows), dpi=150, layout="constrained")
    subfigures: Any = figure.subfigures(2, 1, height_ratios=(3.6, 2.6 * rows))
    above, below = subfigures
    shown = [trial for trial in trials if trial.state in COLOURS and trial.value is not None]
    limits = value_limits([trial.value for trial in shown if trial.state == COMPLETE and trial.value is not None])
    plot_history(above.subplots(), trials, shown, "trial 0" if spec.moved() else "trial 0: the default")
    if limits is not None and any((trial.value or 0.0) < limits[0] for trial in shown):
        below.suptitle(f"trials below {limits[0]:,.0f} are at the lower edge", fontsize=9)
    cells: Any = below.subplots(rows, COLUMNS, squeeze=False, sharey=True).flatten()
    for name, axes in zip(spec.space, cells, strict=False):
        plot_slice(axes, spec, name, shown, limits)
    for axes in cells[len(spec.space) :]:
        axes.set_visible(False)
    figure.suptitle(f"{spec.env}: {len(trials)} trials of {spec.settings['steps']:,} steps")
    figure.savefig(path)
    pyplot.close(figure)


def value_limits(values: list[float]) -> tuple[float, float] | None:
    """Returns limits that show the better half in full: a few trials that learned nothing would flatten the rest."""
    if len(values) < 4:
        return None
    ordered = sorted(values)
    middle, highest = ordered[len(ordered) // 2], ordered[-1]
    low = max(ordered[0], middle - 2.5 * (highest - middle))
    margin = 0.06 * (highest - low) or 1.0
    return low - margin, highest + margin


def plot_history(axes: Any, trials: list[TrialRecord], shown: list[TrialRecord], first: str) -> None:
    """Plots the value of each trial in their order, the best so far, and the first one's value as a line."""
    plot_points(axes, [(trial.number, trial) for trial in shown], None)
    steps, best = [], -math.inf
    for trial in trials:
        if trial.state == COMPLETE and trial.value is not None:
            best = max(best, trial.value)
        if best > -math.inf:
            steps.append((trial.number, best))
    if steps:
        axes.plot(*zip(*steps, strict=True), color=BEST, drawstyle="steps-post", linewidth=1.6, label="best so far")
    if trials and trials[0].state == COMPLETE:
        axes.axhline(trials[0].value, color=FIRST, linewidth=1, linestyle=":", label=first)
    failed = [trial.number for trial in trials if trial.state == FAILED]
    if failed:
        low = axes.get_ylim()[0]
        axes.plot(failed, [low] * len(failed), "v", color=BEST, clip_on=False, label="failed")
    axes.set(xlabel="trial", ylabel="return of the last evaluation")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5)
    axes.grid(alpha=0.25)


def plot_slice(axes: Any, spec: TuneSpec, name: str, shown: list[TrialRecord], limits: Any) -> None:
    """Plots the value of each trial over one of its settings, and marks the best."""
    known = spec.space[name]
    if isinstance(known, Choices):
        labels = [str(label(value)) for value in known.values]
        points = [(labels.index(str(label(trial.settings[name]))), trial) for trial in shown]
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
        axes.set_xlim(-0.5, len(labels) - 0.5)
    else:
        points = [(trial.settings[name], trial) for trial in shown]
        if known.log:
            axes.set_xscale("log")
            axes.set_xticks(ticks(known.low, known.high), [f"{at:g}" for at in ticks(known.low, known.high)])
            axes.minorticks_off()
        axes.set_xlim(*with_margin(known))
    plot_points(axes, points, limits)
    best = best_of(shown)
    if best is not None:
        at = next(place for place, trial in points if trial.number == best.number)
        axes.plot([at], [best.value], "*", color=BEST, markersize=11, zorder=4)
    axes.set_xlabel(name)
    axes.grid(alpha=0.25)


def with_margin(known: Range) -> tuple[float, float]:
    """Returns the ends of a range with a twentieth of it at each side."""
    if known.log:
        factor = (known.high / known.low) ** 0.05
        return known.low / factor, known.high * factor
    margin = 0.05 * (known.high - known.low)
    return known.low - margin, known.high + margin


def ticks(low: float, high: float) -> list[float]:
    """Returns places for the labels of a logarithmic axis: powers of ten, or 1, 2 and 5 times them on a short one."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if last - first > 3 else (1, 3) if last - first > 1 else (1, 2, 5)
    places = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [place for place in places if low <= place * 1.000001 and place <= high * 1.000001]


def plot_points(axes: Any, points: list[tuple[Any, TrialRecord]], limits: Any) -> None:
    """Plots trials at their places; those far below the others are at the lower edge."""
    low = -math.inf if limits is None else limits[0]
    for state, colour in COLOURS.items():
        own = [(place, max(low, trial.value or 0.0)) for place, trial in points if trial.state == state]
        if own:
            axes.plot(*zip(*own, strict=True), MARKS[state], color=colour, markersize=5, clip_on=False, label=state)
    if limits is not None:
        axes.set_ylim(*limits)
