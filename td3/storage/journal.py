"""The journal of a search: one JSON object per line, each on the disk before the next step is taken."""

import os
from pathlib import Path
from typing import Any

import msgspec

from td3.errors import RunError
from td3.storage import disk

TUNE_SPEC, JOURNAL, RESULTS, BEST = "tune.toml", "journal.jsonl", "results.csv", "best.toml"  # the files of a search
LARGEST = 2**30  # bytes


class Journal:
    """Rows that are only ever added, by the one process that holds the folder's lock.

    A last row that a crash has torn is cut off: whoever wrote it never learned that it was there.
    """

    def __init__(self, path: Path, folder: disk.Folder) -> None:
        """`folder` is the open one that holds it."""
        self.path = path
        try:
            self._file = folder.open_to_write(path.name)
        except OSError as problem:
            raise RunError(f"{path} cannot be written: {problem.strerror}.") from None
        try:
            data = disk.read(path, LARGEST)
            self._length = data.rfind(b"\n") + 1
            os.ftruncate(self._file, self._length)
            self._rows = [self._decoded(number, line) for number, line in enumerate(data[: self._length].splitlines())]
        except BaseException:
            self.close()
            raise

    def _decoded(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            raise RunError(f"{self.path} is damaged in line {number + 1}: it is no JSON object.") from None

    def rows(self, first: int) -> list[dict[str, Any]]:
        """Returns the rows from number `first` on."""
        return self._rows[first:]

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Adds rows, all of them or none; returns when they are on the disk."""
        data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        try:
            if os.pwrite(self._file, data, self._length) != len(data):
                raise OSError(28, "No space left on device")
            os.fsync(self._file)
        except OSError as problem:
            os.ftruncate(self._file, self._length)
            raise RunError(f"{self.path} cannot be written: {problem.strerror}.") from problem
        self._length += len(data)
        self._rows += [msgspec.json.decode(msgspec.json.encode(row)) for row in rows]

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)
