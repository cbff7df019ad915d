"""The record of a run: one JSON object per line, appended in one write, readable while it grows."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from td3.errors import RunError


class Record:
    """The writing side. NaN and infinity are written as null, which every JSON reader understands."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        os.write(self._file, msgspec.json.encode({"step": step, **metrics}) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line; a last one torn by a crash is passed over."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as problem:
        raise RunError(f"The metrics {path} cannot be read: {problem.strerror}.") from problem
    for line in lines[:-1]:
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            continue
