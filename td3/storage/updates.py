"""The file of recorded updates: whole lines only, in the order of their steps."""

import contextlib
import os
import stat
from pathlib import Path

import msgspec

LONGEST_LINE = 2**20


class UpdatesFile:
    """Appends to a run's `updates.jsonl`. Where there is no such file to be had, nothing is written."""

    def __init__(self, path: Path, step: int) -> None:
        """Opens the file and cuts off what it has of steps after `step`: the run continues from there."""
        self._length = 0
        self._file = open_regular(path)
        if self._file is not None:
            try:
                self._length = length_until(self._file, step)
                os.ftruncate(self._file, self._length)
            except OSError:
                self.close()

    @property
    def length(self) -> int:
        """Returns how many bytes were written so far."""
        return self._length

    @property
    def is_open(self) -> bool:
        """Whether lines are written."""
        return self._file is not None

    def append(self, line: bytes) -> None:
        """Appends a line in one write, or not at all."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            if os.pwrite(self._file, line, self._length) == len(line):
                self._length += len(line)
            else:
                os.ftruncate(self._file, self._length)

    def close(self) -> None:
        """Closes the file; nothing is written from here on."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def open_regular(path: Path) -> int | None:
    """Opens a regular file to write to; None where there is none to be had. Links, pipes and devices are left."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            return None
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        if stat.S_ISREG(os.fstat(file).st_mode) and os.fstat(file).st_nlink == 1:
            return file
        os.close(file)
    return None


class Line(msgspec.Struct):
    """What must be known of a line to keep it."""

    step: int
    update: int


def length_until(file: int, step: int) -> int:
    """Returns the bytes of the whole lines, from the first on, that are of no later step than `step`."""
    length = 0
    with os.fdopen(os.dup(file), "rb") as lines:
        while (line := lines.readline(LONGEST_LINE)).endswith(b"\n"):
            try:
                if msgspec.json.decode(line, type=Line).step > step:
                    break
            except (msgspec.DecodeError, RecursionError):
                break
            length += len(line)
    return length
