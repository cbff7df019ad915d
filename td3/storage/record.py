"""The record of a run: one JSON object per line, appended in one write, readable while it grows."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from td3.errors import RunError
from td3.storage import disk

LONGEST_ROW = 2**20  # bytes


class Record:
    """The writing side. NaN and infinity are written as null, which every JSON reader understands.

    It knows the length and the hash of all it has written, so that a checkpoint can say where the record stood and
    a resumed run continues from there: what was written after it is cut off, and each step stands once.
    """

    def __init__(self, path: Path, length: int = 0, folder: disk.Folder | None = None) -> None:
        """`folder` is the open one that holds it, wherever it is now."""
        self.problem: str | None = None  # of the last row that could not be written
        try:
            self._file = (folder or disk.Folder.open(path.parent)).open_to_write(path.name)
            self.hash, self.length = disk.hash_of(self._file, length)
            os.ftruncate(self._file, self.length)
        except OSError as problem:
            raise RunError(f"The metrics {path} cannot be written: {problem.strerror}.") from problem

    def write(self, step: int, metrics: dict[str, Any]) -> None:
        """Appends one row; if the disk refuses it, keeps the reason in `problem`."""
        try:
            self.append(msgspec.json.encode({"step": step, **metrics}) + b"\n")
        except OSError as problem:
            self.problem = f"A row of metrics at step {step:,} cannot be written: {problem.strerror}."

    def append(self, lines: bytes) -> None:
        """Appends whole lines in one write, or nothing if the disk refuses them."""
        try:
            if os.pwrite(self._file, lines, self.length) != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self.length)
            raise
        self.hash.update(lines)
        self.length += len(lines)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row that was written so far."""
        with os.fdopen(os.dup(self._file), "rb") as lines:
            lines.seek(0)
            yield from rows_of(lines)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def last_step(path: Path) -> int:
    """The step of the last row; 0 where there is none to be read."""
    try:
        lines = disk.ending(path, LONGEST_ROW).split(b"\n")
    except RunError:
        return 0
    for line in reversed(lines):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(line, type=Row).step
    return 0


class Row(msgspec.Struct):
    """Holds the step of a row; its metrics are not decoded."""

    step: int


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line; a last one torn by a crash is passed over."""
    try:
        with disk.regular_file(path) as (file, _), os.fdopen(os.dup(file), "rb") as lines:
            yield from rows_of(lines)
    except OSError as problem:
        raise RunError(f"The metrics {path} cannot be read: {problem.strerror}.") from problem


def rows_of(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Every whole line of moderate length that is a JSON object."""
    while line := lines.readline(LONGEST_ROW):
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=dict[str, Any])
