"""Plots learning curves and performance profiles, in one style for all: thin seeds, a thick mean, a pale band.

The same comparison gives the same bytes, in SVG and PDF too.
"""

import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from td3.errors import ConfigError, RunError
from td3.results import statistics
from td3.results.curves import STEPS, TIME, curve_of, seed_lines
from td3.results.published import SOURCES, Figure
from td3.results.statistics import Array
from td3.results.summaries import FEWEST
from td3.results.tasks import Compared, Task
from td3.wording import brief

COLOURS = ("#1d4ed8", "#c2410c", "#15803d", "#7e22ce", "#0e7490", "#be185d", "#a16207", "#475569")
PUBLISHED = "#64748b"
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)))  # of settings beyond the last colour
DOTS = ((0, (4, 2)), (0, (1, 1.5)), (0, (4, 1.5, 1, 1.5)), (0, (8, 2)), (0, (2, 3)))  # of published figures
ENDINGS = (".svg", ".png", ".pdf")
COLUMNS = 3
LEGEND_ROW = 0.19  # inches
THRESHOLDS = 201
AXES = (STEPS, TIME)
HOUR, MINUTE = 3_600.0, 60.0


def check_picture(name: str, path: str | Path) -> Path:
    """Returns the path of a picture that can be written; refuses another ending or a folder that is not there."""
    try:
        picture = Path(path)
        fits = picture.suffix.lower() in ENDINGS and picture.absolute().parent.is_dir() and not picture.is_dir()
    except (TypeError, ValueError, OSError):
        fits = False
    if not fits:
        raise ConfigError(f"{name} must be a .svg, .png or .pdf file in a folder that exists; got {brief(str(path))}.")
    return picture


def plot_curves(compared: Compared, path: str | Path, against: str = STEPS) -> None:
    """Plots a chart for each environment, and one of all where scores are normalised; published figures as lines."""
    if against not in AXES:
        raise ConfigError(f"--against must be {' or '.join(AXES)}; got {brief(against)}.")
    picture = check_picture("--picture", path)
    charts = [[task] for task in compared.tasks]
    if compared.normalized and len(charts) > 1 and compared.overall:
        charts.append(compared.tasks)
    figure, all_axes = new_figure(len(charts))
    for axes, tasks in zip(all_axes, charts, strict=True):
        plot_chart(axes, compared, tasks, against)
    finish_all(figure, all_axes)
    save(figure, picture)


def plot_chart(axes: Any, compared: Compared, tasks: Sequence[Task], against: str) -> None:
    """Plots one environment, or the interquartile mean of several."""
    several, end, unit = len(tasks) > 1, 0.0, unit_of(tasks, against)
    crowded = len(compared.settings) > len(COLOURS)  # then thin lines and bands would hide the thick ones
    settings = [one for one in compared.settings if all(one in task.groups for task in tasks)]
    for setting in settings:
        colour, dash = look_of(compared, setting)
        lines = [] if several else seed_lines(tasks[0], setting, against)
        for places, scores in [] if crowded else lines:
            axes.plot(places / unit, scores, color=colour, linestyle=dash, linewidth=0.8, alpha=pale(len(lines)))
        ends = [places[-1] for places, _ in lines if np.isfinite(places[-1])]
        if curve := curve_of(tasks, setting, against):
            seeds = seeds_text(compared, setting)
            label = readable(f"{setting}: {'' if seeds == '1 seed' else 'IQM of '}{seeds}")
            axes.plot(curve.places / unit, curve.iqm, color=colour, linestyle=dash, linewidth=2.4, label=label)
            if curve.low is not None and not crowded:
                axes.fill_between(curve.places / unit, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
            ends.append(curve.places[-1])
        end = max(end, *ends) if ends else end
    if not several:
        for published in tasks[0].published:
            plot_published(axes, tasks[0], published, against)
    label = "normalised score" if compared.normalized else "return of evaluations"
    title = f"all {len(tasks)} environments" if several else tasks[0].env
    set_up(axes, readable(title), end / unit, label)
    if against == TIME:
        axes.set_xlabel(f"{'hours' if unit == HOUR else 'minutes'} of training, without evaluations")
        axes.xaxis.set_major_formatter("{x:g}")
        if not end:
            axes.text(0.5, 0.5, "no times recorded", transform=axes.transAxes, ha="center", color=PUBLISHED)


def unit_of(tasks: Sequence[Task], against: str) -> float:
    """Returns the seconds of a unit of the horizontal axis: hours for long runs, else minutes; steps are steps."""
    if against == STEPS:
        return 1.0
    runs = [run for task in tasks for group in task.groups.values() for run in group.runs]
    return HOUR if any(run.seconds[-1] > 2 * HOUR for run in runs) else MINUTE


def plot_published(axes: Any, task: Task, figure: Figure, against: str) -> None:
    """Plots a published figure as a line, with a mark at its step."""
    source = figure.source
    label = readable(f"published, {source.version}, at {step_text(figure.step)}: {source.label}")
    level, dash = task.scaled(figure.mean), DOTS[SOURCES.index(source) % len(DOTS)]
    axes.axhline(level, color=PUBLISHED, linewidth=1.2, linestyle=dash, label=label, zorder=1)
    if against == STEPS:
        axes.plot([figure.step], [level], "D", color=PUBLISHED, markersize=5, clip_on=False)


def plot_profiles(compared: Compared, path: str | Path) -> None:
    """Plots the share of runs above each score, for each environment, or for all where scores are normalised."""
    picture = check_picture("--profile", path)
    together = compared.normalized and len(compared.tasks) > 1 and compared.overall
    charts = [compared.tasks] if together else [[task] for task in compared.tasks]
    figure, all_axes = new_figure(len(charts))
    for axes, tasks in zip(all_axes, charts, strict=True):
        plot_profile(axes, compared, tasks)
    finish_all(figure, all_axes)
    save(figure, picture)


def plot_profile(axes: Any, compared: Compared, tasks: Sequence[Task]) -> None:
    """Plots the profiles of all settings in one chart."""
    settings = [one for one in compared.settings if all(one in task.groups for task in tasks)]
    strata = {one: [task.scaled(task.groups[one].values) for task in tasks] for one in settings}
    thresholds = thresholds_of([scores for several in strata.values() for scores in several])
    for setting, scores in strata.items():
        colour, dash = look_of(compared, setting)
        label = readable(f"{setting}: {seeds_text(compared, setting)}")
        profile = statistics.performance_profile(scores, thresholds)
        axes.plot(thresholds, profile, color=colour, linestyle=dash, linewidth=2.4, label=label)
        if min(map(len, scores)) >= FEWEST:
            low, high = statistics.profile_band(scores, thresholds, resamples=2_000)
            axes.fill_between(thresholds, low, high, color=colour, alpha=0.15, linewidth=0)
    score = "normalised score" if compared.normalized else "return"
    title = tasks[0].env if len(tasks) == 1 else f"all {len(tasks)} environments"
    axes.set(xlabel=f"{score} τ", ylabel=f"share of runs with {score} > τ", title=readable(title), ylim=(-0.03, 1.03))
    axes.set_xlim(thresholds[0], thresholds[-1])
    tidy(axes)


def thresholds_of(scores: Iterable[Array]) -> Array:
    """Returns thresholds from below the lowest score to above the highest."""
    every = np.concatenate(list(scores))
    margin = 0.05 * (np.ptp(every) or 1.0)
    return np.linspace(every.min() - margin, every.max() + margin, THRESHOLDS)


# --- What all pictures share ------------------------------------------------------------------------------------------


def plot_seeds(axes: Any, steps: Any, seeds: Any, colour: str, label: str) -> None:
    """Plots each seed as a thin line and their mean as a thick one."""
    for returns in seeds:
        axes.plot(steps, returns, color=colour, linewidth=1, alpha=pale(len(seeds)))
    axes.plot(steps, np.mean(seeds, axis=0), color=colour, linewidth=2.6, label=f"{label}: mean of {len(seeds)} seeds")


def set_up(axes: Any, title: str, end: float, label: str = "return of evaluations") -> None:
    """Sets what all charts of learning curves share."""
    axes.set(xlabel="environment steps", ylabel=label, title=title)
    if end > 0:
        axes.set_xlim(0, end)
    axes.xaxis.set_major_formatter(lambda value, _: step_text(value))
    tidy(axes)


def tidy(axes: Any) -> None:
    """Draws a pale grid, and no frame above and to the right."""
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def pale(seeds: int) -> float:
    """Returns how pale thin lines are: the paler, the more."""
    return 0.45 if seeds < 6 else 0.25


def step_text(value: float) -> str:
    """Writes steps: 0, 50k, 1M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value else "0"


def seeds_text(compared: Compared, setting: str) -> str:
    """Writes how many seeds a setting has in an environment."""
    numbers = sorted({len(task.groups[setting].scores) for task in compared.tasks if setting in task.groups})
    most = f"–{numbers[-1]}" if len(numbers) > 1 else ""
    return f"{numbers[0]}{most} seed{'' if numbers[-1] == 1 else 's'}"


def look_of(compared: Compared, setting: str) -> tuple[str, Any]:
    """Returns the colour and the dashes of a setting, the same in every chart."""
    place = compared.settings.index(setting)
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def readable(text: str) -> str:
    """Keeps matplotlib from taking a name for a formula, or a leading underscore for a label to hide."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def new_figure(number: int) -> tuple[Any, list[Any]]:
    """Makes a figure with so many charts side by side, three in a row."""
    try:
        from matplotlib.figure import Figure as Canvas
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise ConfigError("Pictures need matplotlib, which is not installed: pip install 'td3[plot]'") from None
    columns = 2 if number == 4 else min(COLUMNS, number)
    rows = -(-number // columns)
    width = 7.0 if number == 1 else 4.6 * columns
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)  # inches
    figure = Canvas(figsize=(width, 4.6 if number == 1 else 3.7 * rows), dpi=150, layout=layout)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[number:]:
        axes.remove()
    return figure, list(grid[:number])


def finish_all(figure: Any, all_axes: Sequence[Any]) -> None:
    """Adds one legend for all charts, below them, with each label once, and names the vertical axis of a row once."""
    for axes in all_axes:
        if not axes.get_subplotspec().is_first_col():
            axes.set_ylabel("")
    handles: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if not handles:
        return
    longest = max(map(len, handles))
    inches = figure.get_size_inches()[0]
    columns = max(1, min(len(handles), int(inches * 15 // (longest + 6))))
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * max(0, rows - 2))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def save(figure: Any, path: Path) -> None:
    """Writes a figure to its file, with the same bytes for the same figure."""
    import matplotlib

    form = path.suffix[1:].lower()
    dates: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    data = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "td3"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may have signs that the font has not
        figure.savefig(data, format=form, metadata=dates.get(form))
    try:
        path.write_bytes(data.getvalue())
    except OSError as problem:
        raise RunError(f"{path} cannot be written: {problem.strerror}.") from None
