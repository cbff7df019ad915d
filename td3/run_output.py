"""Everything a run writes to its folder: metrics, checkpoints, recorded updates, films."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from td3.config import Config
from td3.environments import Wrappers
from td3.errors import RunError
from td3.events import Event, Noted, SaveFailed
from td3.filming import Film
from td3.recording import Recorder
from td3.replay import AnyMemory
from td3.storage import Checkpoint, CheckpointWriter, File, Record, RunFolder, Snapshot
from td3.types import Policy


class RunOutput:
    """The open files of one run folder."""

    def __init__(
        self,
        folder: RunFolder,
        config: Config,
        versions: dict[str, Any],
        eval_envs: list[Any],
        since: Checkpoint | None = None,
    ) -> None:
        """`since` is the checkpoint of this folder that the run continues from; `eval_envs` are what may be filmed."""
        assert folder.root is not None
        self.folder, self.config = folder, config
        self.record = Record(folder.metrics, since.manifest.record.size if since else 0, folder.root)
        keep = (config.keep_last, config.keep_best)
        self.writer = CheckpointWriter(folder.path, folder.root, *keep, versions, since)
        self.recorder = self.film = None
        self._said = False
        if config.record_updates:
            self.recorder = Recorder(folder.updates, config, since.step if since else 0)
            self.recorder.engine = versions["engine"]
        if config.film and eval_envs:
            wrappers = Wrappers.of(config)
            self.film = Film(folder.film, config.env, eval_envs, wrappers=wrappers, env_args=config.env_args)

    def use_config(self, config: Config) -> None:
        """Follows changed settings."""
        self.config = config
        if self.recorder:
            self.recorder.config = config

    def use_versions(self, versions: dict[str, Any]) -> None:
        """Writes these from now on: another engine performs."""
        self.writer.versions = versions
        if self.recorder:
            self.recorder.engine = versions["engine"]

    def changes_since(self, since: Checkpoint) -> list[str]:
        """Returns which files of the run are not what they were when its checkpoint was made."""
        notes = []
        if self.record.hash.hexdigest() != since.manifest.record.sha256:
            notes.append(f"metrics.jsonl is not what was written before step {since.step:,}.")
        for name in since.manifest.run:
            try:
                since.check_beside(name)
            except RunError:
                notes.append(
                    f"{name} was changed or removed since the run was begun, which changes nothing: "
                    "the run continues with the settings in its checkpoint."
                )
        return notes

    @property
    def ours(self) -> bool:
        """Whether this process may write: a forked child has a copy of the run, and none of its folder."""
        return self.writer.process == os.getpid()

    @property
    def newest(self) -> Path | None:
        """Returns the path of the newest checkpoint, if there is one."""
        return self.writer.newest.path if self.writer.newest else None

    def rewrite_memory(self) -> None:
        """Writes all rows anew with the next checkpoint: those on the disk have other numbers."""
        self.writer.segments = []

    def save(self, snapshot: Snapshot, memory: AnyMemory) -> Path:
        """Writes a checkpoint, and returns its path."""
        record = File(self.record.length, self.record.hash.hexdigest())
        return self.writer.publish(snapshot, memory, record).path

    def film_episode(self, policy: Callable[[], Policy], seed: int, length: int, last: bool) -> None:
        """Offers an evaluated episode to be filmed, in a process of its own."""
        if self.film and self.folder.in_place():
            self.film.offer(policy, seed, length, last)

    def save_problems(self, step: int) -> Iterator[Event]:
        """Yields once what went wrong beside a save."""
        if self.writer.problem:
            yield Noted(step, self.writer.problem)
            self.writer.problem = None

    def problems(self, step: int) -> Iterator[Event]:
        """Yields once what else went wrong: none of it stops the run."""
        if self.film and self.film.problem:
            yield Noted(step, self.film.problem)
            self.film.problem = None
        if self.recorder and self.recorder.problem and not self._said:
            self._said = True  # once is enough
            yield Noted(step, self.recorder.problem)
        if self.record.problem:
            yield SaveFailed(step, self.record.problem)
            self.record.problem = None

    def close(self) -> None:
        """Closes the run's files, and releases its lock."""
        if self.film:
            self.film.close()
        self.record.close()
        if self.recorder:
            self.recorder.close()
        self.folder.release()
