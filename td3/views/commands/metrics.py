"""`td3 metrics`: a run's numbers as CSV or JSON, or the newest of each."""

import csv
import io
import math
from argparse import Namespace
from typing import Any

from td3.metrics import METRICS
from td3.views.flags import Parser, add_run
from td3.views.speaking import answer, printable, say, write_out
from td3.wording import counted

HELP = "Write a run's metrics as CSV, or show the newest of each."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    parser.add_argument(
        "--csv", action="store_true", help="all of them on stdout: a line for each row, empty where NaN"
    )


def run(chosen: Namespace) -> int:
    """Writes the metrics; returns 0."""
    from td3.errors import ConfigError
    from td3.storage.columns import read_metrics

    if chosen.csv and chosen.json:
        raise ConfigError("--csv and --json are two formats: give one of them.")
    columns = {name: column.tolist() for name, column in read_metrics(chosen.run).items()}
    if chosen.csv:
        write_out(as_csv(columns))
    elif chosen.json:
        answer(columns)
    elif len(columns) == 1:
        say("The run has no metrics yet.")
    else:
        width = max(map(len, columns))
        for name, values in columns.items():
            newest = [
                (step, value) for step, value in zip(columns["step"], values, strict=True) if not math.isnan(value)
            ]
            if name != "step" and newest:
                step, value = newest[-1]
                meaning = f"  {METRICS[name]}" if name in METRICS else ""
                write_out(f"{printable(name):<{width}}  {value:>12.6g}  at step {step:>9,}{meaning}\n")
        say(f"The newest of each, of {counted(len(columns['step']), 'row')}; --csv writes all.")
    return 0


def as_csv(columns: dict[str, list[Any]]) -> str:
    """Returns columns as CSV; a name that a stranger chose is written as letters alone."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(printable, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if isinstance(value, float) and math.isnan(value) else value for value in row)
    return text.getvalue()
