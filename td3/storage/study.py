"""The folder of a study or of a search: its spec, the lock of the one process that trains it, and the runs below."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from td3.errors import ConfigError
from td3.storage import disk
from td3.storage.journal import JOURNAL, Journal
from td3.storage.lock import Lock
from td3.wording import brief

SPEC = "study.toml"
LOG = "study.log"
OWN = {SPEC, f".{SPEC}", "lock", LOG}


class StudyFolder:
    """A study's folder, or that of a search (`kind` "tune"): opened and locked by one process at a time."""

    def __init__(self, path: str | Path, kind: str = "study") -> None:
        self.kind = kind
        try:
            self.path = Path(path)
            self.path.is_dir()
        except (OSError, ValueError, TypeError) as problem:
            raise ConfigError(f"{kind} must be the path of a folder; got {brief(path)} ({problem}).") from None
        self.spec = self.path / f"{kind}.toml"
        self._root: disk.Folder | None = None
        self._lock: Lock | None = None

    def check(self, known: set[str]) -> None:
        """Refuses a folder that holds something else than a study, or folders that are not `known` to this one."""
        if not self.path.exists() or self.spec.is_file():
            return
        if not self.path.is_dir():
            raise ConfigError(f"{self.kind} {str(self.path)!r} is no folder.")
        own = {self.spec.name, f".{self.spec.name}"} | (OWN - {SPEC, f".{SPEC}"})
        for entry in sorted(self.path.iterdir()):
            if entry.name not in own | known:
                raise ConfigError(
                    f"{self.kind} {str(self.path)!r} has no {self.spec.name}, but something else in it: {entry.name!r}."
                )

    def begun(self) -> list[str]:
        """Returns the places of all runs that are begun, as `env/setting/seed-0`."""
        found = [path.parent for path in self.path.glob("*/*/*/checkpoints") if path.is_dir()]
        names = [path.relative_to(self.path).as_posix() for path in found]
        return sorted(name for name in names if "/." not in f"/{name}")  # hidden: it was killed while it was made

    def open(self) -> None:
        """Makes the folder if there is none, and locks it; another process that has it is named."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._root = disk.Folder.open(self.path)
        except OSError as problem:
            raise ConfigError(f"{self.kind} {str(self.path)!r} cannot be written: {problem.strerror}.") from problem
        self._lock = Lock(self._root, str(self.path), self.kind)

    def write(self, spec: bytes) -> None:
        """Writes the spec, if it is not there in these words."""
        self.write_file(self.spec.name, spec)

    def write_file(self, name: str, data: bytes) -> None:
        """Writes a file of the folder whole, if it is not there in these words."""
        path = self.path / name
        try:
            if not path.is_file() or path.read_bytes() != data:
                disk.replace_whole(path, data)
        except OSError as problem:
            raise ConfigError(f"{path} cannot be written: {problem.strerror}.") from problem

    def journal(self) -> Journal:
        """Opens the journal of a search; only while the folder is open."""
        assert self._root
        return Journal(self.path / JOURNAL, self._root)

    @contextlib.contextmanager
    def log(self) -> Iterator[int]:
        """Opens the file for what libraries say that nobody asked; it begins anew with each start."""
        assert self._root is not None
        try:
            file = self._root.open_to_write(LOG)
            os.ftruncate(file, 0)
        except OSError as problem:
            raise ConfigError(f"{self.path / LOG} cannot be written: {problem.strerror}.") from problem
        try:
            yield file
        finally:
            os.close(file)

    def close(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._root is not None:
            self._root.close()
            self._root = None


def is_locked(run: Path) -> bool:
    """Whether a process writes this run now."""
    import fcntl

    with contextlib.suppress(OSError):
        file = os.open(run / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(file)
    return False
