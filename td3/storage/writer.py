"""Writes checkpoints: each in a new folder that is renamed when it is whole, and only the rows that are new."""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import safetensors.numpy
import safetensors.torch

from td3.errors import RunError
from td3.replay import AnyMemory
from td3.storage import disk
from td3.storage.checkpoint import (
    FORMAT,
    LARGEST_JSON,
    Checkpoint,
    File,
    Manifest,
    Segment,
    Snapshot,
    file_of,
    find,
)
from td3.storage.names import CHECKPOINT_NAME, FILES, FIRST, MANIFEST, SEGMENT_NAME, TEMPORARY, TEMPORARY_SEGMENT

SAVERS: dict[str, Callable[[dict[str, Any]], bytes]] = {  # what writes the named arrays of each group
    "networks": safetensors.torch.save,
    "optimizers": safetensors.torch.save,
    "playing": safetensors.numpy.save,
    "sampler": safetensors.numpy.save,  # only where one keeps anything
}
SEGMENT = 64 * 2**20  # bytes of rows in one file, about: writing needs twice as much memory for a moment


class CheckpointWriter:
    """Writes checkpoints of one run, and remembers which rows of the memory are on the disk already.

    It works in the folders it has opened: a run that is moved is saved where it is now, and one that was begun in its
    place meanwhile is left alone.
    """

    def __init__(
        self,
        run: Path,
        root: disk.Folder,
        keep_last: int,
        keep_best: int,
        versions: dict[str, Any],
        since: Checkpoint | None = None,
    ) -> None:
        """`since` is the checkpoint the run continues from; what is signed with it is not signed anew."""
        self.run, self.root, self.keep_last, self.keep_best, self.versions = run, root, keep_last, keep_best, versions
        try:
            if not root.is_folder("memory"):  # an empty folder is easily lost in a copy
                root.make_folder("memory").close()
            self.checkpoints, self.memory = root.folder("checkpoints"), root.folder("memory")
        except OSError as problem:
            raise RunError(f"run {str(run)!r} cannot be written: {problem.strerror}.") from problem
        self.process = os.getpid()
        self.problem: str | None = None  # with what is old, for the user to know
        self.newest = since
        self.segments: list[Segment] = since.manifest.segments if since else []  # of the newest checkpoint
        self.kept: list[Checkpoint] = []  # on the disk, oldest first
        if since is None:
            beside = {name: disk.read(run / name, LARGEST_JSON) for name in FIRST}
            self.beside = {name: file_of(data) for name, data in beside.items()}
        else:  # later ones, passed over because they are damaged, go with the next prune
            self.beside = since.manifest.run
            found, _ = find(run)
            self.kept = [one for one in found if one.step < since.step or one.path == since.path]

    def publish(self, snapshot: Snapshot, memory: AnyMemory, record: File) -> Checkpoint:
        """Writes a checkpoint whole, then removes those that are no longer kept."""
        fresh = f".tmp-{uuid.uuid4().hex}"
        try:
            segments = [*self._living(memory), *self._new_rows(memory)]
            with contextlib.closing(self.checkpoints.make_folder(fresh)) as folder:
                files = {}
                for name, data in self._contents(snapshot).items():
                    folder.write(name, data)
                    files[name] = file_of(data)
                manifest = Manifest(
                    format=FORMAT,
                    serial=self.newest.manifest.serial + 1 if self.newest else 1,
                    step=snapshot.step,
                    updates=snapshot.updates,
                    score=snapshot.score,
                    threads=snapshot.threads,
                    versions=self.versions,
                    files=files,
                    segments=segments,
                    record=record,
                    run=self.beside,
                )
                data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
                folder.write(MANIFEST, data)
                folder.sync()
            final = f"{snapshot.step:09d}-{hashlib.sha256(data).hexdigest()[:16]}"
            self.checkpoints.rename(fresh, final)
        except OSError as problem:
            with contextlib.suppress(RunError):
                self.prune()  # what was half written would only take room from the next one
            gone = "" if self.root.exists() else " (the run's folder was removed while it trained)"
            raise RunError(
                f"The checkpoint at step {snapshot.step:,} cannot be saved: {problem.strerror}{gone}."
            ) from problem
        self.segments, self.newest = segments, Checkpoint(self.run / "checkpoints" / final, manifest)
        self.kept.append(self.newest)
        try:
            self.prune()
        except RunError as problem:  # this one is saved all the same
            self.problem = str(problem)
        return self.newest

    @staticmethod
    def _contents(snapshot: Snapshot) -> dict[str, bytes]:
        contents = {"state.json": msgspec.json.encode(snapshot.state)}
        for group, save in SAVERS.items():
            if group in snapshot.tensors:
                contents[f"{group}.safetensors"] = save(dict(snapshot.tensors[group]))
        return contents

    def _living(self, memory: AnyMemory) -> list[Segment]:
        """Segments that still hold rows the ring has not overwritten."""
        return [one for one in self.segments if one.end > memory.oldest]

    def _new_rows(self, memory: AnyMemory) -> list[Segment]:
        """What the memory has learned since the last checkpoint, in new files: its cost is what is new."""
        first = max(memory.oldest, self.segments[-1].end if self.segments else 0)
        at_once = max(1, SEGMENT // (memory.nbytes // memory.capacity))  # rows: more would be copied in vain
        starts = range(first, memory.written, at_once)
        return [self._segment_of(memory, start, min(start + at_once, memory.written)) for start in starts]

    def _segment_of(self, memory: AnyMemory, first: int, end: int) -> Segment:
        data = safetensors.numpy.save(memory.rows(first, end))
        name = f"{first:09d}-{end:09d}-{uuid.uuid4().hex[:8]}.safetensors"
        self.memory.write(f".tmp-{name}", data)
        self.memory.rename(f".tmp-{name}", name)
        return Segment(name, first, end, len(data), hashlib.sha256(data).hexdigest())

    def prune(self) -> None:
        """The newest and the best stay, with the rows they need; what else was written here is removed.

        Only what has a name that is given here, and is no link, was written here: a user's own files stay.
        """
        evaluated = [one for one in self.kept if one.score is not None]
        best = sorted(evaluated, key=lambda one: (one.score, one.step))[
            len(evaluated) - min(self.keep_best, len(evaluated)) :
        ]
        self.kept = [one for one in self.kept if one in self.kept[-self.keep_last :] or one in best]
        names = {one.path.name for one in self.kept}
        needed = {segment.name for one in self.kept for segment in one.manifest.segments}
        try:
            for name in self.checkpoints.names():
                ours = CHECKPOINT_NAME.fullmatch(name) or TEMPORARY.fullmatch(name)
                if ours and name not in names and self.checkpoints.is_folder(name):
                    temporary = name if TEMPORARY.fullmatch(name) else f".tmp-{uuid.uuid4().hex}"
                    self.checkpoints.remove_folder(name, FILES, temporary)
            for name in self.memory.names():
                ours = SEGMENT_NAME.fullmatch(name) or TEMPORARY_SEGMENT.fullmatch(name)
                if ours and name not in needed and self.memory.is_file(name):
                    self.memory.remove(name)
        except OSError as problem:
            raise RunError(f"Old checkpoints cannot be removed: {problem.strerror}.") from problem
