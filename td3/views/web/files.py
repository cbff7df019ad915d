"""Reads files that may grow, shrink or be hostile meanwhile: no link is followed, no pipe waited for."""

import errno
import functools
import os
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec

from td3.errors import RunError

CHUNK = 2**22  # bytes read at once: the most that is ever held of a file
LONGEST_LINE = 2**20  # a longer one is no line of ours
ENDING = 64  # bytes before the place reached, by which a file is known again


class GrowingLines:
    """A file of lines that somebody appends to: `new` returns what came since it was last asked.

    A run that is resumed cuts its file back to where its checkpoint stood, and continues; then everything is `new`
    again, and `restarted` says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = 0  # all whole lines before it are known
        self.restarted = False
        self._known: tuple[int, int] | None = None  # device and inode
        self._ending = b""

    def new(self) -> Generator[tuple[int, bytes], None, None]:
        """The new whole lines, many at once, each lump with the place it begins at."""
        self.restarted = False
        try:
            file = open_regular(self.path)
        except FileNotFoundError:
            self._forget()
            return
        try:
            self._recognise(file)
            while lump := whole_lines(file, self.place):
                begin, self.place = self.place, self.place + len(lump)
                self._ending = lump[-ENDING:]
                yield begin, lump
        finally:
            os.close(file)

    def _recognise(self, file: int) -> None:
        found = os.fstat(file)
        ending = os.pread(file, len(self._ending), self.place - len(self._ending))
        if (found.st_dev, found.st_ino) != self._known or ending != self._ending:
            self._forget()
            self._known = (found.st_dev, found.st_ino)

    def _forget(self) -> None:
        self.restarted = self.place > 0
        self.place, self._ending, self._known = 0, b"", None


def whole_lines(file: int, place: int) -> bytes:
    """As many whole lines as a chunk holds; a line longer than any of ours is passed over with its end."""
    lump = os.pread(file, CHUNK, place)
    end = lump.rfind(b"\n") + 1
    if end == 0 and len(lump) > LONGEST_LINE:
        return lump
    return lump[:end]


def read_range(path: Path, begin: int, end: int) -> bytes:
    """These bytes, or as many of them as there are."""
    file = open_regular(path)
    try:
        return os.pread(file, end - begin, begin)
    finally:
        os.close(file)


def tail(path: Path, most: int) -> bytes:
    """The last whole lines of a file, about so many bytes."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return b""
    try:
        size = os.fstat(file).st_size
        lump = os.pread(file, most, max(0, size - most))
    finally:
        os.close(file)
    begin = lump.find(b"\n") + 1 if size > most else 0
    return lump[begin : lump.rfind(b"\n") + 1]


def open_regular(path: Path) -> int:
    """A regular file, open for reading; RunError for anything else, FileNotFoundError for nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as problem:
        reason = "is a link" if problem.errno == errno.ELOOP else f"cannot be read: {problem.strerror}"
        raise RunError(f"{path.name} {reason}.") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise RunError(f"{path.name} is no regular file.")
    return file


def stamp(path: Path) -> tuple[float, int, int, int]:
    """When it was last written, and its size; and what changes with it even where these do not."""
    try:
        found = path.lstat()
        return found.st_mtime, found.st_size, found.st_ino, found.st_ctime_ns
    except OSError:
        return 0.0, -1, 0, 0


def decoded_lines(lump: bytes, row: Any) -> list[Any]:
    """Each line as a `row`; lines that are none are left out."""
    decoder = decoder_of(row)
    try:
        found: list[Any] = decoder.decode_lines(lump)
        return found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # one bad line hides no other
        return [one for line in lump.split(b"\n") if (one := decoded(line, row)) is not None]


def decoded(line: bytes, row: Any) -> Any:
    """Decodes one line as JSON of this type; None if it is something else."""
    try:
        return decoder_of(row).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@functools.lru_cache(maxsize=256)
def decoder_of(row: Any) -> Any:
    """Made once for each kind of row."""
    return msgspec.json.Decoder(row)
