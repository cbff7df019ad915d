"""One writer per run: a lock that the system itself releases when its holder dies."""

import contextlib
import errno
import fcntl
import os
import socket

import msgspec

from td3.errors import ConfigError
from td3.storage import disk


class Lock:
    """Held from creation to `release`; whoever comes second learns who has it."""

    def __init__(self, folder: disk.Folder, name: str, kind: str = "run") -> None:
        try:
            self._file = folder.open_to_write("lock")
        except OSError as problem:
            raise ConfigError(f"{kind} {name!r} cannot be written: lock: {problem.strerror}.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            holder = self._holder()
            os.close(self._file)
            if problem.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise ConfigError(f"{kind} {name!r} cannot be locked: {problem.strerror}.") from None
            raise ConfigError(f"{kind} {name!r} is being written by {holder}: wait for it, or stop it.") from None
        self._process = os.getpid()
        self._write_holder(os.getpid())

    def _write_holder(self, process: int) -> None:
        with contextlib.suppress(OSError):  # who holds it is a courtesy; that it is held is the lock
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, msgspec.json.encode({"pid": process, "host": socket.gethostname()}), 0)

    def _holder(self) -> str:
        try:
            found = msgspec.json.decode(os.pread(self._file, 1_000, 0), type=dict[str, str | int])
            return f"process {found['pid']} on {found['host']}"
        except (OSError, KeyError, msgspec.DecodeError):
            return "another process"

    def release(self) -> None:
        """Releases the lock; a forked child only closes its copy."""
        if self._process == os.getpid():  # a forked child that still has it open would hold it on
            self._write_holder(0)  # this process may live on: whoever watches must not take the run for live
            fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)
