"""Checkpoints: everything a run is at a quiet point, published whole, believed only when every hash agrees.

    checkpoints/000015000-0f3a…/   the step, and the beginning of the SHA-256 of its manifest
      manifest.json                SHA-256 and size of each file below, of the memory's segments, of the record so far
      state.json                   counters, random streams, the config, the spaces, the open episodes
      networks.safetensors  optimizers.safetensors  playing.safetensors
    memory/000010000-000015000-….safetensors       rows of the replay memory, written once, shared by checkpoints

A checkpoint is written into a folder with a temporary name, synced, and renamed: it is there whole or not at all.
Nothing is written over; older ones go only after a newer one is on the disk, and no other file is ever removed.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors
import safetensors.numpy
import safetensors.torch

from td3.errors import RunError
from td3.replay import AnyMemory
from td3.storage import disk
from td3.storage.names import CHECKPOINT_NAME, MANIFEST

FORMAT = 1
PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
LARGEST_JSON = 16 * 2**20
LARGEST_TENSORS = 64 * 2**30
HEADER = 2**20  # bytes of names and shapes that a file of tensors may have beside its numbers


class File(msgspec.Struct):
    """What a file of a checkpoint must be like."""

    size: int
    sha256: str


class Segment(msgspec.Struct):
    """Rows `first` to before `end` of the memory, in a file of their own."""

    name: str
    first: int
    end: int
    size: int
    sha256: str


class Manifest(msgspec.Struct):
    """Lists what a checkpoint holds, with the size and hash of every file."""

    format: int
    serial: int  # of the checkpoints of this run: two may stand at one step, when its goal was moved
    step: int
    updates: int
    score: float | None
    threads: int
    versions: dict[str, Any]
    files: dict[str, File]
    segments: list[Segment]
    record: File  # metrics.jsonl as far as it was written then
    run: dict[str, File]  # the files beside it that never change


@dataclass(frozen=True)
class Snapshot:
    """A run at a quiet point, in memory: plain data, and named arrays in groups."""

    state: dict[str, Any]
    tensors: Mapping[str, Mapping[str, Any]]  # by the names in `names.GROUPS`
    step: int
    updates: int
    score: float | None
    threads: int


@dataclass(frozen=True)
class Checkpoint:
    """One on the disk. Its manifest is known to be the one that was written; its files are checked when read."""

    path: Path
    manifest: Manifest

    @property
    def step(self) -> int:
        """Returns the step it was made at."""
        return self.manifest.step

    @property
    def score(self) -> float | None:
        """Returns the mean return of the evaluation at its step, if there was one."""
        return self.manifest.score

    def state(self) -> dict[str, Any]:
        """Reads its plain data."""
        try:
            return msgspec.json.decode(self._read("state.json", LARGEST_JSON), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as problem:
            raise RunError(f"{self.path / 'state.json'} is no JSON object: {problem}.") from None

    def has(self, group: str) -> bool:
        """Whether it holds named arrays of this group."""
        return f"{group}.safetensors" in self.manifest.files

    def tensors(self, group: str, most: int = LARGEST_TENSORS) -> dict[str, Any]:
        """Torch tensors of networks and optimizers, which take at most so many bytes."""
        return self._load(self._read(f"{group}.safetensors", most + HEADER), safetensors.torch.load, group)

    def arrays(self, group: str, most: int = LARGEST_TENSORS) -> dict[str, Any]:
        """NumPy arrays of what was being played, which take at most so many bytes."""
        return self._load(self._read(f"{group}.safetensors", most + HEADER), safetensors.numpy.load, group)

    def fill(self, memory: AnyMemory, state: Mapping[str, Any]) -> None:
        """The memory as it was, from its segments; every hash is checked before a row is believed."""
        segments = self.manifest.segments
        end = int(state.get("remembered", self.step))  # rows; frames are more than steps
        first = segments[0].first if segments else 0
        for segment in segments:
            if memory.written not in (0, segment.first):
                raise RunError(f"{segment.name} does not follow on the rows before it.")
            rows = self._rows(segment, memory)
            memory.written = segment.first
            memory.load(rows)
        if memory.written != end or first > memory.oldest:
            raise RunError(f"The memory's segments end at row {memory.written:,}, the checkpoint at {end:,}.")

    def fill_undamaged(self, memory: AnyMemory) -> tuple[int, list[str]]:
        """Fills the memory with every segment that can be believed; how many rows are lost, and why.

        Rows are numbered anew, and none is linked to the one before a gap.
        """
        lost, reasons = 0, []
        for segment in self.manifest.segments:
            try:
                rows = self._rows(segment, memory)
            except RunError as problem:
                lost += max(0, segment.end - segment.first)
                reasons.append(str(problem))
                memory.break_links()
            else:
                memory.load(rows)
        return lost, reasons

    def fill_newest(self, memory: AnyMemory, count: int) -> None:
        """Fills a memory with the newest segments that hold `count` rows together, as far as there are so many."""
        newest: list[Segment] = []
        for segment in reversed(self.manifest.segments):
            if sum(one.end - one.first for one in newest) >= count:
                break
            newest.append(segment)
        for segment in reversed(newest):
            memory.load(self._rows(segment, memory))

    def _rows(self, segment: Segment, memory: AnyMemory) -> dict[str, Any]:
        """A segment's rows; sizes and shapes follow from the memory, not from what the file says of itself."""
        count = segment.end - segment.first
        each = sum(column[:1].nbytes for column in memory.columns.values())
        if not 0 < count <= 2**48 or segment.size > count * each + HEADER:
            raise RunError(f"{segment.name} has {segment.size:,} bytes, too many for {count:,} rows of this run.")
        rows = self._load(self._segment(segment), safetensors.numpy.load, segment.name)
        for name, column in memory.columns.items():
            values, expected = rows.get(name), (count, *column.shape[1:])
            if values is None or values.shape != expected or values.dtype != column.dtype:
                raise RunError(f"{segment.name} does not hold rows of this run's memory.")
        return rows

    def check(self, memory: bool = True) -> None:
        """Raises for the first file that is not what was written; a piece at a time, however large it is."""
        for name, known in self.manifest.files.items():
            agree_on_disk(self.path / plain(name), known)
        for segment in self.manifest.segments if memory else ():
            path = self.path.parent.parent / "memory" / plain(segment.name)
            agree_on_disk(path, File(segment.size, segment.sha256))

    def memory_problem(self) -> str:
        """What is wrong with its segments of the memory, or nothing."""
        try:
            self.check()
        except RunError as problem:
            return str(problem)
        return ""

    def check_run(self) -> None:
        """The same for the files of the run itself, and for its metrics as far as they were written then."""
        for name in self.manifest.run:
            self.check_beside(name)
        path, known = self.path.parent.parent / "metrics.jsonl", self.manifest.record
        if disk.digest(path, known.size) != known.sha256:
            raise changed(path)

    def check_beside(self, name: str) -> None:
        """Raises where a file of the run that never changes is not what it was when this checkpoint was made."""
        agree_on_disk(self.path.parent.parent / plain(name), self.manifest.run[name])

    def _segment(self, segment: Segment) -> bytes:
        path = self.path.parent.parent / "memory" / plain(segment.name)
        data = disk.read(path, segment.size)
        agree(path, data, File(segment.size, segment.sha256))
        return data

    def _read(self, name: str, most: int) -> bytes:
        known = self.manifest.files.get(plain(name))
        if known is None:
            raise RunError(f"{self.path} has no {name}.")
        data = disk.read(self.path / name, min(most, known.size))
        agree(self.path / name, data, known)
        return data

    @staticmethod
    def _load(data: bytes, load: Any, what: str) -> dict[str, Any]:
        try:
            loaded: dict[str, Any] = load(data)
            return loaded
        except (safetensors.SafetensorError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as problem:
            raise RunError(f"{what} cannot be read: {problem or type(problem).__name__}.") from None


def plain(name: str) -> str:
    """Returns the name; refuses one that could lead out of the run's folder."""
    if not PLAIN.fullmatch(name):
        raise RunError(f"{name!r} is no name of a file in a run.")
    return name


def file_of(data: bytes) -> File:
    """Returns the size and hash of these bytes."""
    return File(len(data), hashlib.sha256(data).hexdigest())


def agree(path: Path, data: bytes, known: File) -> None:
    """Refuses data that is not what was written."""
    if file_of(data) != known:
        raise changed(path)


def agree_on_disk(path: Path, known: File) -> None:
    """Refuses a file that is not what was written; reads it piece by piece."""
    if disk.size_of(path) != known.size or disk.digest(path, known.size) != known.sha256:
        raise changed(path)


def changed(path: Path) -> RunError:
    """Returns the error for a file that is not what was written."""
    return RunError(f"{path} is not what was written: its size or SHA-256 differs.")


def find(run: Path) -> tuple[list[Checkpoint], dict[Path, str]]:
    """Returns all checkpoints with a whole manifest, oldest first; and what is wrong with the others."""
    found: list[Checkpoint] = []
    wrong: dict[Path, str] = {}
    folder = run / "checkpoints"
    for path in folder.iterdir() if folder.is_dir() and not folder.is_symlink() else ():
        match = CHECKPOINT_NAME.fullmatch(path.name)
        if match is None or path.is_symlink() or not path.is_dir():
            continue
        try:
            data = disk.read(path / MANIFEST, LARGEST_JSON)
            if hashlib.sha256(data).hexdigest()[:16] != match[2]:
                raise changed(path / MANIFEST)
            manifest = msgspec.json.decode(data, type=Manifest)
            if manifest.format != FORMAT or manifest.step != int(match[1]):
                raise RunError(f"{path} is of format {manifest.format}, step {manifest.step}; this is format {FORMAT}.")
            found.append(Checkpoint(path, manifest))
        except (RunError, msgspec.DecodeError, RecursionError, ValueError) as problem:
            if path.exists():  # a living run removes old ones while somebody looks
                wrong[path] = str(problem)
    return sorted(found, key=lambda one: (one.step, one.manifest.serial)), wrong
