"""The numbers of a run's record as columns of equal length: ready for pandas, a CSV file or a plot."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.errors import ConfigError, RunError
from td3.storage.record import read_metrics as read_rows
from td3.wording import brief

MOST_CELLS = 2**28  # rows × columns, 2 GiB of numbers: no run of td3 has so many

Columns = dict[str, NDArray[Any]]


def read_metrics(run: str | Path) -> Columns:
    """Reads the metrics of a run, also while it trains: `pandas.DataFrame(td3.read_metrics("runs/cheetah"))`.

    A row is a line of `metrics.jsonl` that has a number. `step` is int64, all others are float64 in alphabetical order,
    with NaN where the line has nothing; true is 1 and false is 0. Lists and texts are in `metrics.jsonl` alone.
    """
    steps: list[int] = []
    cells: dict[str, tuple[list[int], list[float]]] = {}  # by column: the rows that have a number, and the numbers
    for row in read_rows(_record_of(run)):
        step = row.pop("step", None)
        numbers = {name: number for name, value in row.items() if (number := _number(value)) is not None}
        if type(step) is not int or not 0 <= step < 2**63 or not numbers:
            continue
        for name, number in numbers.items():
            rows, values = cells.setdefault(name, ([], []))
            rows.append(len(steps))
            values.append(number)
        steps.append(step)
        if len(steps) * len(cells) > MOST_CELLS:
            raise RunError(f"run {brief(str(run))} has more metrics than can be read: {len(cells):,} columns.")
    columns: Columns = {"step": np.array(steps, np.int64)}
    for name, (rows, values) in sorted(cells.items()):
        columns[name] = np.full(len(steps), np.nan)
        columns[name][rows] = values
    return columns


def _record_of(run: str | Path) -> Path:
    """Returns the path of a run's record; refuses what is no run."""
    try:
        path = Path(run)
        there, record = path.is_dir(), (path / "metrics.jsonl").exists()
    except (TypeError, ValueError, OSError) as problem:
        raise ConfigError(f"run must be the path of a folder; got {brief(run)} ({problem}).") from None
    if not there:
        raise ConfigError(f"run {brief(str(run))} is no folder.")
    if not record:
        raise ConfigError(f"run {brief(str(run))} has no metrics.jsonl: it is no run of td3.")
    return path / "metrics.jsonl"


def _number(value: Any) -> float | None:
    """Returns a number; NaN for null, which stands for a number that was not finite; None for anything else."""
    if value is None:
        return math.nan
    try:
        return float(value) if isinstance(value, bool | int | float) else None
    except OverflowError:
        return math.inf if value > 0 else -math.inf
