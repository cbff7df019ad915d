"""A comparison as text: columns for a terminal, Markdown for a document, CSV for a program."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from td3.errors import ConfigError
from td3.results.published import Figure
from td3.results.tasks import Compared, Interval, Summary, Task
from td3.results.verdicts import digits_for, interval_text, method, p_text, score_text, verdicts
from td3.wording import brief, counted

FORMATS = ("text", "markdown", "csv")
MOST_LEFT_OUT = 10  # that are named
CSV_COLUMNS = (
    "env", "step", "setting", "seeds", "mean", "std", "mean_low", "mean_high", "median", "iqm", "iqm_low", "iqm_high",
    "improvement", "improvement_low", "improvement_high", "difference", "difference_low", "difference_high", "p",
    "adjusted_p", "optimality_gap", "seconds",
)  # fmt: skip


def written(compared: Compared, form: str) -> str:
    """Writes a comparison in one of the formats."""
    if form not in FORMATS:
        raise ConfigError(f"--format must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}; got {brief(form)}.")
    if form == "csv":
        return as_csv(compared)
    table, item = (in_markdown, "- ") if form == "markdown" else (in_columns, "")
    blocks: list[list[str]] = []
    for task in compared.tasks:
        place = f"after {time_text(task.seconds)} of training" if task.seconds else f"at step {task.step:,}"
        head = f"{task.env} {place}{what(compared, task)}"
        blocks.append([f"**{escaped(head)}**", ""] if form == "markdown" else [head])
        blocks[-1] += table(rows_of(task.summaries, digits_of(task)))
        if task.published:
            blocks.append([item + line for line in published_lines(task)])
    if compared.overall and has_overall(compared):
        head = f"All {len(compared.tasks)} environments"
        blocks.append([f"**{head}**", ""] if form == "markdown" else [head])
        blocks[-1] += table(rows_of_all(compared))
    blocks.append([item + line for line in verdicts(compared)])
    blocks.append([item + line for line in [*notes(compared), *method(compared)]])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def what(compared: Compared, task: Task) -> str:
    """Says which evaluations count, and on which scale."""
    mean = f", mean of the last {compared.last} evaluations" if compared.last > 1 else ""
    if task.scale is None:
        return mean
    return f"{mean}, normalised: {task.scale.low:,.6g} is 0 and {task.scale.high:,.6g} is 1"


def digits_of(task: Task) -> int:
    """Returns how many decimals the scores of an environment are shown with."""
    return digits_for(max(abs(one.mean) for one in task.summaries))


def rows_of(summaries: Sequence[Summary], digits: int) -> list[list[str]]:
    """Returns the cells of one environment's table; the first row is the head."""
    head = ["setting", "seeds", "mean ± std", "median", "IQM", "95 % of the IQM"]
    against = any(one.versus for one in summaries)
    head += ["P(better)", "95 % of P", "p"] if against else []
    rows = []
    for one in summaries:
        mean = f"{score_text(one.mean, digits)} ± {score_text(one.std, digits)}" if one.seeds > 1 else ""
        row = [
            one.setting,
            str(one.seeds),
            mean or score_text(one.mean, digits),
            score_text(one.median, digits),
            score_text(one.iqm, digits),
            interval_text(one.iqm_interval, digits),
        ]
        rows.append([*row, *(versus_cells(one) if against else []), time_text(one.seconds)])
    return [[*head, "training time"], *rows]


def versus_cells(one: Summary) -> list[str]:
    """Returns the cells that compare with the baseline."""
    if one.versus is None:
        return ["–", "–", "–"]
    versus = one.versus
    return [f"{versus.improvement:.2f}", interval_text(versus.improvement_interval, 2), p_text(versus.adjusted_p)]


def has_overall(compared: Compared) -> bool:
    """Says whether there is anything to show over all environments."""
    return any(one.versus or math.isfinite(one.iqm) for one in compared.overall)


def rows_of_all(compared: Compared) -> list[list[str]]:
    """Returns the cells of the table over all environments."""
    normalized = compared.normalized is not None
    against = any(one.versus for one in compared.overall)
    scores = ["IQM", "95 % of the IQM", "median", "mean", "95 % of the mean", "optimality gap"] if normalized else []
    head = ["setting", "runs", *scores]
    head += ["P(better)", "95 % of P", "p"] if against else []
    rows = []
    for one in compared.overall:
        cells = [
            score_text(one.iqm, 3),
            interval_text(one.iqm_interval, 3),
            score_text(one.median, 3),
            score_text(one.mean, 3),
            interval_text(one.mean_interval, 3),
            score_text(math.nan if one.gap is None else one.gap, 3),
        ]
        rows.append([one.setting, str(one.seeds), *(cells if scores else []), *(versus_cells(one) if against else [])])
    return [head, *rows]


def published_lines(task: Task) -> list[str]:
    """Returns a line for each published figure, with its source."""

    def line(figure: Figure) -> str:
        digits = digits_of(task)
        spread = "" if figure.std is None else f" ± {score_text(spread_of(task, figure.std), digits)}"
        mean, source = score_text(task.scaled(figure.mean), digits), figure.source
        about = f"{figure.task}-{source.version}, {counted(source.seeds, 'seed')}, {source.label}"
        return f"Published: {mean}{spread} at step {figure.step:,} ({about})"

    return [line(figure) for figure in task.published]


def spread_of(task: Task, std: float) -> float:
    """Returns a standard deviation as it is shown."""
    return std / abs(task.scale.high - task.scale.low) if task.scale else std


def notes(compared: Compared) -> list[str]:
    """Returns what a reader must know: runs left out, scales, and what makes runs less comparable."""
    lines = []
    if compared.left_out:
        names = [f"{name} {reason}" for name, reason in compared.left_out.items()]
        more = f"; and {len(names) - MOST_LEFT_OUT:,} more" if len(names) > MOST_LEFT_OUT else ""
        lines.append(f"Left out: {'; '.join(names[:MOST_LEFT_OUT])}{more}.")
    lines += compared.notes
    lines += [
        f"Scores: {source}." for source in dict.fromkeys(task.scale.source for task in compared.tasks if task.scale)
    ]
    if len(compared.tasks) > 1 and compared.normalized is None:
        lines.append("Returns of different environments have no common unit: --normalize gives their IQM and mean.")
    sources = dict.fromkeys(figure.source for task in compared.tasks for figure in task.published)
    lines += [f"Source of {source.label}: {source.origin}." for source in sources]
    versions = {figure.source.version for task in compared.tasks for figure in task.published}
    if versions and any(not task.env.endswith(one) for task in compared.tasks for one in versions):
        lines.append("Versions of an environment differ in physics, rewards or observations: v1 to v4 are not v5.")
    return lines


def time_text(seconds: float) -> str:
    """Writes a training time: 40 s, 12 min, 3 h 05 min; a dash for none."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def in_columns(rows: list[list[str]]) -> list[str]:
    """Writes rows in columns: the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        first = row[0].ljust(widths[0])
        return "  ".join(
            [first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()

    return [line(row) for row in rows]


def in_markdown(rows: list[list[str]]) -> list[str]:
    """Writes rows as a Markdown table."""
    head, *rest = [f"| {' | '.join(map(escaped, row))} |" for row in rows]
    return [head, f"| --- |{' ---: |' * (len(rows[0]) - 1)}", *rest]


def escaped(text: str) -> str:
    """Keeps a text from being taken for Markdown."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def as_csv(compared: Compared) -> str:
    """Writes a row for each environment and setting, and for all environments if scores are normalised."""
    out = io.StringIO()
    table = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    table.writeheader()
    for task in compared.tasks:
        step = task.step if task.seconds is None else ""
        table.writerows(csv_row(one, task.env, step) for one in task.summaries)
    table.writerows(csv_row(one, "all", "") for one in compared.overall)
    return out.getvalue()


def csv_row(one: Summary, env: str, step: int | str) -> dict[str, Any]:
    """Returns the cells of one row; those that are not known are empty."""
    versus = one.versus
    cells: dict[str, Any] = {
        "env": env,
        "step": step,
        "setting": one.setting,
        "seeds": one.seeds,
        "mean": one.mean,
        "std": one.std,
        "median": one.median,
        "iqm": one.iqm,
        "optimality_gap": one.gap,
        "seconds": one.seconds,
        **ends("mean", one.mean_interval),
        **ends("iqm", one.iqm_interval),
    }
    if versus is not None:
        cells |= {"improvement": versus.improvement, "difference": versus.difference}
        cells |= {"p": versus.p, "adjusted_p": versus.adjusted_p}
        cells |= {**ends("improvement", versus.improvement_interval), **ends("difference", versus.difference_interval)}
    return {name: value for name, value in cells.items() if value is not None and value == value}


def ends(name: str, interval: Interval | None) -> dict[str, float]:
    """Returns both ends of an interval under their names."""
    return {} if interval is None else {f"{name}_low": interval[0], f"{name}_high": interval[1]}
