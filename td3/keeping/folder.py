"""Makes, reads and prunes run folders."""

import contextlib
import os
import platform
import re
import shutil
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
from gymnasium.spaces import Space

from td3.config import Config
from td3.environments import Worlds
from td3.environments.spaces import space_from_data, space_to_data
from td3.errors import ConfigError, RunError
from td3.keeping.record import Record
from td3.version import VERSION

FORMAT = 1
NUMBERED = re.compile(r"\d{9}")
LARGEST_JSON = 16 * 2**20


@dataclass(frozen=True)
class Checkpoint:
    """The networks at one step; `score` is the mean evaluation return there, where it was judged."""

    path: Path
    step: int
    updates: int
    score: float | None

    @property
    def networks(self) -> Path:
        return self.path / "networks.safetensors"


class RunFolder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @classmethod
    def create(cls, path: str | Path, config: Config, worlds: Worlds) -> "RunFolder":
        """A new folder with all that is known before the first step; a folder in use is left alone."""
        run = cls(path)
        try:
            if run.path.exists() and (not run.path.is_dir() or any(run.path.iterdir())):
                raise ConfigError(f"run must be a new or empty folder; {str(run.path)!r} has something in it.")
            (run.path / "checkpoints").mkdir(parents=True)
            _write_json(run.path / "config.json", config.to_data())
            _write_json(
                run.path / "spaces.json",
                {
                    "observation": space_to_data(worlds.observation.space),
                    "action": space_to_data(worlds.action.space),
                },
            )
            _write_json(run.path / "versions.json", versions())
        except OSError as problem:
            raise ConfigError(f"run {str(run.path)!r} cannot be written: {problem.strerror}.") from problem
        return run

    def record(self) -> Record:
        return Record(self.metrics)

    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """What the agent sees and does, without making the environment."""
        path = self.path / "spaces.json"
        data = _read_json(path)
        try:
            return space_from_data(data["observation"]), space_from_data(data["action"])
        except (KeyError, TypeError, ValueError, AssertionError, RecursionError) as problem:
            raise RunError(f"{path} describes no spaces: {type(problem).__name__}: {problem}.") from problem

    def config_data(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise ConfigError(f"run {str(self.path)!r} is no folder.")
        if not (self.path / "config.json").is_file():
            raise ConfigError(f"run {str(self.path)!r} has no config.json: it is no run of td3.")
        data = _read_json(self.path / "config.json")
        if not isinstance(data, dict):
            raise RunError(f"{self.path / 'config.json'} is no JSON object.")
        return data

    def save(self, tensors: Mapping[str, Any], step: int, updates: int, score: float | None) -> Checkpoint:
        """A new checkpoint, whole or not at all; then all but the newest and the best go."""
        from safetensors.torch import save_file

        final = self.path / "checkpoints" / f"{step:09d}"
        kept = Checkpoint(final, step, updates, score)
        if final.exists():  # the same step of the same run: the same bytes
            return kept
        fresh = final.parent / f".tmp-{uuid.uuid4().hex}"
        try:
            fresh.mkdir(parents=True)
            save_file(dict(tensors), fresh / kept.networks.name)
            _write_json(fresh / "state.json", {"format": FORMAT, "step": step, "updates": updates, "score": score})
            for file in (fresh / kept.networks.name, fresh / "state.json", fresh):
                _sync(file)
            fresh.rename(final)
            _sync(final.parent)
        except OSError as problem:
            shutil.rmtree(fresh, ignore_errors=True)
            raise RunError(f"The checkpoint at step {step:,} cannot be saved: {problem.strerror}.") from problem
        self._prune()
        return kept

    def checkpoints(self) -> list[Checkpoint]:
        """All that are whole enough to be read, oldest first."""
        folder = self.path / "checkpoints"
        found = []
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if NUMBERED.fullmatch(path.name) and path.is_dir():
                with contextlib.suppress(RunError, msgspec.ValidationError):
                    state = msgspec.convert(_read_json(path / "state.json"), _State)
                    found.append(Checkpoint(path, state.step, state.updates, state.score))
        return found

    def checkpoint(self, which: str = "last") -> Checkpoint:
        """`last`, `best` or a step."""
        found = self.checkpoints()
        if not found:
            raise RunError(f"run {str(self.path)!r} has no checkpoint yet.")
        steps = ", ".join(f"{one.step}" for one in found)
        if which == "last":
            return found[-1]
        if which == "best":
            return best_of(found) or found[-1]
        for one in found:
            if which.isdigit() and one.step == int(which):
                return one
        raise ConfigError(f"checkpoint must be last, best or one of the steps {steps}; got {which!r}.")

    def _prune(self) -> None:
        found = self.checkpoints()
        keep = {found[-1].path, (best_of(found) or found[-1]).path} if found else set()
        for one in found:
            if one.path not in keep:
                shutil.rmtree(one.path, ignore_errors=True)


class _State(msgspec.Struct):
    step: int
    updates: int
    score: float | None


def best_of(checkpoints: list[Checkpoint]) -> Checkpoint | None:
    """The highest score; of equals the latest."""
    scored = [one for one in checkpoints if one.score is not None]
    return max(scored, key=lambda one: (one.score, one.step), default=None)


def versions() -> dict[str, Any]:
    """What a result depends on besides the config; MuJoCo's physics changes between releases."""
    packages = ("torch", "numpy", "gymnasium", "mujoco", "safetensors")
    found: dict[str, Any] = {"td3": VERSION, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return {**found, "platform": f"{sys.platform} {platform.machine()}", "format": FORMAT}


def _write_json(path: Path, data: Any) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")


def _read_json(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_JSON + 1)
        if len(text) > LARGEST_JSON:
            raise RunError(f"{path} is larger than any run's file: {LARGEST_JSON:,} bytes.")
        return msgspec.json.decode(text)
    except OSError as problem:
        raise RunError(f"{path} cannot be read: {problem.strerror}.") from problem
    except msgspec.DecodeError as problem:
        raise RunError(f"{path} is no valid JSON: {problem}.") from problem
    except RecursionError:
        raise RunError(f"{path} is nested too deeply.") from None


def _sync(path: Path) -> None:
    """On the disk, not only on its way there."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
