"""The only code that touches the disk: whole files, on it and not on their way, and read with suspicion.

A run is written through an open `Folder`: what is written lands in that folder even if it is moved meanwhile, never in
another one that took its name, and no link is followed on the way.

Every call that changes something passes `_fault`, where a test may stop or break it: the environment variable
`TD3_FAULT` names the moment (`before` or `after`), the act (`make`, `write`, `sync`, `rename`, `remove`), its number,
and what happens there: `die`, or an error such as `ENOSPC`. `before:rename:3:die` dies before the third rename.
"""

import contextlib
import errno
import hashlib
import os
import stat
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from td3.errors import RunError

CHUNK = 2**23  # bytes read at once where a file is only hashed

_counts: dict[str, int] = {}


class Folder:
    """An open folder. Names are those of its own entries, never paths."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> "Folder":
        """Opens a folder by its path."""
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY))

    def folder(self, name: str) -> "Folder":
        """Opens a folder inside; a link in its place is refused by the system."""
        return Folder(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.descriptor))

    def make_folder(self, name: str) -> "Folder":
        """Makes a folder inside, and opens it."""
        _fault("before", "make")
        os.mkdir(name, dir_fd=self.descriptor)
        return self.folder(name)

    def names(self) -> list[str]:
        """Returns the names of its entries."""
        return os.listdir(self.descriptor)  # noqa: PTH208 - a descriptor, not a path

    def exists(self) -> bool:
        """Whether it is still on the disk, under any name."""
        return os.fstat(self.descriptor).st_nlink > 0

    def is_file(self, name: str) -> bool:
        """Whether the name is a regular file's, not a link's."""
        return stat.S_ISREG(self._mode(name))

    def is_folder(self, name: str) -> bool:
        """Whether the name is a real folder's, not a link's."""
        return stat.S_ISDIR(self._mode(name))

    def _mode(self, name: str) -> int:
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
        except OSError:
            return 0

    def open_to_write(self, name: str) -> int:
        """Opens a file that stays open while the run is written.

        A link or a hard link is refused: writing would change a file that is not the run's own.
        """
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=self.descriptor)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(file)
            raise OSError(errno.EMLINK, "it is no file of its own, but a hard link, pipe or device")
        return file

    def write(self, name: str, data: bytes) -> None:
        """Writes a new file, whole and on the disk; an existing one is never written over."""
        _fault("before", "write")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(name, flags, 0o666, dir_fd=self.descriptor)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            _fault("after", "write")
            _sync(file)
        finally:
            os.close(file)

    def rename(self, old: str, new: str) -> None:
        """Makes something appear, whole, under its name."""
        _fault("before", "rename")
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        _fault("after", "rename")
        self.sync()

    def remove(self, name: str) -> None:
        """Removes a file."""
        _fault("before", "remove")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)
        _fault("after", "remove")

    def remove_folder(self, name: str, known: Iterable[str], temporary: str) -> None:
        """Removes a folder with the files it is known to hold; any other file in it stays, in a folder NAME-rest.

        It takes the temporary name first: no reader sees half of it under its own.
        """
        _fault("before", "remove")
        if name != temporary:
            os.rename(name, temporary, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        with contextlib.closing(self.folder(temporary)) as folder:
            for file in known:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(file, dir_fd=folder.descriptor)
        try:
            os.rmdir(temporary, dir_fd=self.descriptor)
        except OSError:  # somebody's own file is in it
            os.rename(temporary, f"{name}-rest", src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        _fault("after", "remove")

    def sync(self) -> None:
        """A name is on the disk only when its folder is."""
        _sync(self.descriptor)


def replace_whole(path: Path, data: bytes) -> None:
    """Writes beside its place and renames: whoever reads it sees a whole file, this one or the one before."""
    beside = path.with_name(f".{path.name}")
    beside.unlink(missing_ok=True)  # of a run that was killed just here
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def rename(old: Path, new: Path) -> None:
    """Makes a folder appear, whole, under its name."""
    _fault("before", "rename")
    old.rename(new)
    _fault("after", "rename")
    parent = Folder.open(new.parent)
    parent.sync()
    parent.close()


def read(path: Path, most: int) -> bytes:
    """Reads the whole of a regular file of at most so many bytes; no link, no pipe, no device."""
    with regular_file(path) as (file, size):
        if size > most:
            raise RunError(f"{path} has {size:,} bytes, more than the {most:,} it may have.")
        try:
            with os.fdopen(os.dup(file), "rb") as opened:
                return opened.read(size)
        except MemoryError:
            raise RunError(f"{path} has {size:,} bytes, more than there is memory for.") from None


def digest(path: Path, size: int) -> str:
    """Hashes the first `size` bytes of a regular file, a piece at a time; '' where it has fewer."""
    with regular_file(path) as (file, _):
        hashed, length = hash_of(file, size)
        return hashed.hexdigest() if length == size else ""


def ending(path: Path, most: int) -> bytes:
    """The last bytes of a regular file, at most so many."""
    with regular_file(path) as (file, size):
        return os.pread(file, min(most, size), size - min(most, size))


def size_of(path: Path) -> int:
    """Returns the size of a regular file."""
    with regular_file(path) as (_, size):
        return size


def hash_of(file: int, size: int) -> "tuple[hashlib._Hash, int]":
    """The SHA-256 of the first `size` bytes, or of all where there are fewer, and how many they were.

    In pieces: the system reads at most 2 GiB at once, and memory has better uses.
    """
    hashed, length = hashlib.sha256(), 0
    while piece := os.pread(file, min(CHUNK, size - length), length):
        hashed.update(piece)
        length += len(piece)
    return hashed, length


@contextlib.contextmanager
def regular_file(path: Path) -> Iterator[tuple[int, int]]:
    """An open regular file and its size; whatever is wrong with it is a RunError."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError) as problem:
        number, why = getattr(problem, "errno", None), getattr(problem, "strerror", None) or str(problem)
        reason = "is a link" if number == errno.ELOOP else f"cannot be read: {why}"
        refusal = RunError(f"{path} {reason}.")
        # Not there, or a link: that stays so. Anything else may be over in a moment, and is no damage.
        refusal.passing = number not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, None)
        raise refusal from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise RunError(f"{path} is no regular file.")
        yield file, found.st_size
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
