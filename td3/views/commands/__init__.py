"""The commands of td3, one file each; a new one is its file and a line in this table.

Each file has HELP, `add_arguments(parser)` and `run(chosen)`, which returns the exit code. What takes long to import is
imported inside `run`: `td3 --help` loads every file here.
"""

from argparse import Namespace
from typing import Protocol

from td3.views.commands import (
    bench,
    check,
    compare,
    doctor,
    evaluate,
    explain,
    export,
    metrics,
    resume,
    runs,
    selftest,
    study,
    train,
    tune,
    verify,
    video,
    watch,
)
from td3.views.flags import Parser


class Command(Protocol):
    """What a command's file has."""

    HELP: str

    def add_arguments(self, parser: Parser) -> None:
        """Adds the command's flags to its parser."""

    def run(self, chosen: Namespace) -> int:
        """Runs the command, and returns the exit code."""


COMMANDS: dict[str, Command] = {
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "verify": verify,
    "export": export,
    "check": check,
    "doctor": doctor,
    "study": study,
    "tune": tune,
    "runs": runs,
    "compare": compare,
    "metrics": metrics,
    "selftest": selftest,
    "watch": watch,
    "explain": explain,
    "video": video,
    "bench": bench,
}
