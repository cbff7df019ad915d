"""The only hands that touch the disk: whole files, on it and not on their way, and read with suspicion.

Every call that changes something passes `_fault`, where a test may stop or break it: the environment variable
`TD3_FAULT` names the moment (`before` or `after`), the act (`write`, `sync`, `rename`, `remove`), its number, and what
happens there: `die`, or an error such as `ENOSPC`. `before:rename:3:die` dies before the third rename.
"""

import errno
import os
import shutil
import stat
from pathlib import Path

from td3.errors import RunError

_counts: dict[str, int] = {}


def write(path: Path, data: bytes) -> None:
    """A new file, whole and on the disk; an existing one is never written over."""
    _fault("before", "write")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        _fault("after", "write")
        _sync(file)
    finally:
        os.close(file)


def rename(old: Path, new: Path) -> None:
    """The step that makes something appear, whole, under its name."""
    _fault("before", "rename")
    old.rename(new)
    _fault("after", "rename")
    sync_folder(new.parent)


def remove(path: Path) -> None:
    """A file or a folder with all that is in it; links are removed, not followed."""
    _fault("before", "remove")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    _fault("after", "remove")


def sync_folder(path: Path) -> None:
    """A name is on the disk only when its folder is."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _sync(file)
    finally:
        os.close(file)


def read(path: Path, most: int) -> bytes:
    """The whole of a regular file of at most so many bytes; no link, no pipe, no device."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        reason = "is a link" if problem.errno == errno.ELOOP else f"cannot be read: {problem.strerror}"
        raise RunError(f"{path} {reason}.") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise RunError(f"{path} is no regular file.")
        if found.st_size > most:
            raise RunError(f"{path} has {found.st_size:,} bytes, more than the {most:,} it may have.")
        with os.fdopen(os.dup(file), "rb") as opened:
            return opened.read(found.st_size)
    except OSError as problem:
        raise RunError(f"{path} cannot be read: {problem.strerror}.") from None
    finally:
        os.close(file)


def _sync(file: int) -> None:
    _fault("before", "sync")
    os.fsync(file)
    _fault("after", "sync")


def _fault(moment: str, act: str) -> None:
    wanted = os.environ.get("TD3_FAULT")
    if wanted is None:
        return
    when, which, number, what = wanted.split(":")
    if (when, which) != (moment, act):
        return
    _counts[act] = _counts.get(act, 0) + 1
    if number != "every" and _counts[act] != int(number):
        return
    if what == "die":
        os._exit(137)
    raise OSError(getattr(errno, what), os.strerror(getattr(errno, what)))
