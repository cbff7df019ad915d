"""The run folder as a whole: made once, opened by one writer at a time, read by anybody."""

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from td3.config import Config
from td3.errors import ConfigError, RunError
from td3.storage import checkpoint, disk
from td3.storage.checkpoint import Checkpoint
from td3.storage.lock import Lock
from td3.storage.names import AWAITED, CHECKPOINT_NAME
from td3.storage.versions import versions
from td3.wording import brief

Read = TypeVar("Read")
PARTS = ("checkpoints", "memory")
TRIES = 20  # looks at a folder where a living run removes checkpoints while they are read


class RunFolder:
    """A run's folder: makes, opens, locks and reads it."""

    def __init__(self, path: str | Path) -> None:
        try:
            self.path = Path(path).absolute()  # an environment may change the working directory
            os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            pass  # whoever makes or opens it says so
        except (OSError, ValueError, TypeError) as problem:
            raise ConfigError(f"run must be the path of a folder; got {brief(path)} ({problem}).") from None
        self.root: disk.Folder | None = None  # open while the run is written
        self.lock: Lock | None = None

    @property
    def metrics(self) -> Path:
        """Returns the path of the metrics."""
        return self.path / "metrics.jsonl"

    @property
    def updates(self) -> Path:
        """Real updates, recorded now and then for whoever watches; no part of any checkpoint."""
        return self.path / "updates.jsonl"

    @property
    def film(self) -> Path:
        """An episode of the newest evaluation that was filmed; no part of any checkpoint either."""
        return self.path / "film.webp"

    @classmethod
    def create(cls, path: str | Path, config: Config, parts: Mapping[str, str] | None = None) -> "RunFolder":
        """A new folder, held by us, with all that is known before the first step; one in use is left alone.

        `parts` names what the run needs of the user's own code.
        """
        settings = {**config.to_data(), **({"parts": parts} if parts else {})}
        return cls.make(path, {"config.json": _readable(settings), "versions.json": _readable(versions())})

    @classmethod
    def make(cls, path: str | Path, first: Mapping[str, bytes]) -> "RunFolder":
        """Makes a new folder with its first files, held by us.

        A folder that is not there yet is made beside its place and then renamed: it is whole from its first moment.
        """
        run = cls(path)
        exists = run.path.is_dir()  # and is empty: it is filled, and stays the folder that it is
        fresh = run.path if exists else run.path.parent / f".{run.path.name}-{uuid.uuid4().hex}"
        made = False
        try:
            if run.path.exists() and (not run.path.is_dir() or any(run.path.iterdir())):
                there = " --resume (td3.resume) continues the run in it." if (run.path / "checkpoints").is_dir() else ""
                raise ConfigError(f"run must be a new or empty folder; {str(path)!r} has something in it.{there}")
            fresh.mkdir(parents=True, exist_ok=exists)
            made = True
            run.root = disk.Folder.open(fresh)
            for name in PARTS:
                run.root.make_folder(name).close()
            for name, data in first.items():
                run.root.write(name, data)
            run.root.sync()
            run.lock = Lock(run.root, str(path))
            if not exists:
                disk.rename(fresh, run.path)
        except BaseException as problem:
            run.release()
            for one in fresh.iterdir() if made and fresh.is_dir() else ():
                shutil.rmtree(one) if one.is_dir() else one.unlink()
            if not exists:
                shutil.rmtree(fresh, ignore_errors=True)
            if isinstance(problem, OSError):
                raise ConfigError(f"run {str(path)!r} cannot be written: {problem.strerror}.") from problem
            raise
        return run

    @classmethod
    def open(cls, path: str | Path, *, to_write: bool = False) -> "RunFolder":
        """Opens the folder of an existing run and, with `to_write`, locks it."""
        run = cls(path)
        if not run.path.is_dir():
            raise ConfigError(f"run {str(path)!r} is no folder.")
        for part in PARTS:
            if (run.path / part).is_symlink():
                raise ConfigError(f"run {str(path)!r} has a link in place of its folder {part}: it is not followed.")
        if not (run.path / "checkpoints").is_dir():
            raise ConfigError(f"run {str(path)!r} has no checkpoints: it is no run of td3.")
        if to_write:
            try:
                run.root = disk.Folder.open(run.path)
            except OSError as problem:
                raise ConfigError(f"run {str(path)!r} cannot be opened: {problem.strerror}.") from problem
            run.lock = Lock(run.root, str(path))
        return run

    @staticmethod
    def is_new(path: str | Path) -> bool:
        """Whether a run can be created here: nothing is there, or an empty folder."""
        place = RunFolder(path).path
        try:
            return not any(place.iterdir())
        except FileNotFoundError:
            return True
        except OSError:
            return False  # whoever opens it says why

    def begun(self) -> dict[str, Any] | None:
        """The config of a run that has no checkpoint yet, because it was stopped before its first."""
        if any(CHECKPOINT_NAME.fullmatch(one.name) for one in (self.path / "checkpoints").iterdir()):
            return None
        return self.first_config()

    def awaits_checkpoint(self) -> bool:
        """Whether the run trained elsewhere, and no checkpoint came home: its metrics alone may be ahead."""
        return (self.path / AWAITED).is_file()

    def first_config(self) -> dict[str, Any]:
        """The config that the run was started with, and the names of its parts."""
        try:
            return msgspec.json.decode(
                disk.read(self.path / "config.json", checkpoint.LARGEST_JSON), type=dict[str, Any]
            )
        except (msgspec.DecodeError, RecursionError) as problem:
            raise RunError(f"{self.path / 'config.json'} is no JSON object: {problem}.") from None

    def newest(self, read: Callable[[Checkpoint], Read], which: str = "last") -> tuple[Checkpoint, Read, list[str]]:
        """The newest checkpoint (or the best, or a step's) that `read` can read, and what was wrong with others."""
        for _ in range(TRIES):
            found, unreadable = checkpoint.find(self.path)
            wrong, vanished = list(unreadable.values()), False
            for one in self._choose(found, which):
                try:
                    return one, read(one), wrong
                except RunError as problem:
                    if problem.passing and self.root is not None:
                        raise  # whoever writes would remove it as damaged
                    if one.path.exists():
                        wrong.append(str(problem))
                    else:
                        vanished = True
            if not vanished:
                break
        why = " ".join(wrong) if wrong else "none was saved yet."
        raise RunError(f"run {str(self.path)!r} has no whole checkpoint: {why}")

    @staticmethod
    def _choose(found: list[Checkpoint], which: str) -> list[Checkpoint]:
        """Candidates, the most wanted first."""
        if which == "last":
            return found[::-1]
        if which == "best":
            return sorted(found, key=lambda one: (one.score is not None, one.score or 0.0, one.step), reverse=True)
        chosen = [one for one in found if str(one.step) == (which.lstrip("0") or "0")]
        if not chosen:
            steps = ", ".join(dict.fromkeys(str(one.step) for one in found)) or "none"
            raise ConfigError(f"checkpoint must be last, best or one of the steps {steps}; got {which!r}.")
        return chosen

    def in_place(self) -> bool:
        """Whether the path still leads to the folder that is written; not after a run was moved or removed."""
        try:
            return self.root is not None and os.path.samestat(self.path.stat(), os.fstat(self.root.descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Releases the lock, and closes the folder."""
        if self.lock is not None:
            self.lock.release()
            self.lock = None
        if self.root is not None:
            self.root.close()
            self.root = None


def verify(path: str | Path) -> dict[str, str]:
    """Every checkpoint's name, oldest first, with what is wrong with it, or ''."""
    run = RunFolder.open(path)
    results: dict[str, str] = {}
    for _ in range(TRIES):
        found, wrong = checkpoint.find(run.path)
        results = {place.name: why for place, why in wrong.items()}
        for one in found:
            try:
                one.check()
                if one is found[-1]:
                    one.check_run()
                results[one.path.name] = ""
            except RunError as problem:
                if one.path.exists():
                    results[one.path.name] = str(problem)
        if not found or found[-1].path.name in results:  # else the newest was removed, for there is a newer one
            break
    return dict(sorted(results.items(), key=lambda item: int(item[0].split("-")[0])))


def _readable(data: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"
