"""Checkpoints: everything a run is at a quiet point, published whole, believed only when every hash agrees.

    checkpoints/000015000-0f3a…/   the step, and the beginning of the SHA-256 of its manifest
      manifest.json                SHA-256 and size of each file below, of the memory's segments, of the record so far
      state.json                   counters, random streams, the config, the spaces, the open episodes
      networks.safetensors  optimizers.safetensors  playing.safetensors
    memory/000010000-000015000-….safetensors       rows of the replay memory, written once, shared by checkpoints

A checkpoint is written into a folder with a temporary name, synced, and renamed: it is there whole or not at all.
Nothing is written over; older ones go only after a newer one is on the disk.
"""

import contextlib
import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import safetensors
import safetensors.numpy
import safetensors.torch

from td3.errors import RunError
from td3.keeping import disk
from td3.replay import AnyMemory

FORMAT = 1
NAME = re.compile(r"(\d{9,})-([0-9a-f]{16})")
PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
LARGEST_JSON = 16 * 2**20
LARGEST_TENSORS = 64 * 2**30
SEGMENT = 64 * 2**20  # bytes of rows in one file, about: writing needs twice as much memory for a moment


class File(msgspec.Struct):
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
    tensors: Mapping[str, Mapping[str, Any]]  # networks, optimizers, playing
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
        return self.manifest.step

    @property
    def score(self) -> float | None:
        return self.manifest.score

    def state(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self._read("state.json", LARGEST_JSON), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as problem:
            raise RunError(f"{self.path / 'state.json'} is no JSON object: {problem}.") from None

    def tensors(self, group: str) -> dict[str, Any]:
        """Torch tensors of networks and optimizers."""
        return self._load(self._read(f"{group}.safetensors", LARGEST_TENSORS), safetensors.torch.load, group)

    def arrays(self, group: str) -> dict[str, Any]:
        """NumPy arrays of what was being played."""
        return self._load(self._read(f"{group}.safetensors", LARGEST_TENSORS), safetensors.numpy.load, group)

    def fill(self, memory: AnyMemory, state: Mapping[str, Any]) -> None:
        """The memory as it was, from its segments; every hash is checked before a row is believed."""
        segments = self.manifest.segments
        end = int(state.get("remembered", self.step))  # rows; frames are more than steps
        first = segments[0].first if segments else 0
        for segment in segments:
            rows = self._load(self._segment(segment), safetensors.numpy.load, segment.name)
            for name, column in memory.columns.items():
                values, expected = rows.get(name), (segment.end - segment.first, *column.shape[1:])
                if values is None or values.shape != expected or values.dtype != column.dtype:
                    raise RunError(f"{segment.name} does not hold rows of this run's memory.")
            if memory.written not in (0, segment.first):
                raise RunError(f"{segment.name} does not follow on the rows before it.")
            memory.written = segment.first
            memory.put(rows)
        if memory.written != end or first > memory.oldest:
            raise RunError(f"The memory's segments end at row {memory.written:,}, the checkpoint at {end:,}.")

    def check(self) -> None:
        """Raises for the first file that is not what was written."""
        for name in self.manifest.files:
            self._read(name, LARGEST_TENSORS)
        for segment in self.manifest.segments:
            self._segment(segment)

    def check_run(self) -> None:
        """The same for the files of the run itself, and for its metrics as far as they were written then."""
        folder = self.path.parent.parent
        for name, known in self.manifest.run.items():
            agree(folder / name, disk.read(folder / plain(name), LARGEST_JSON), known)
        self.check_record()

    def check_record(self) -> None:
        path, known = self.path.parent.parent / "metrics.jsonl", self.manifest.record
        agree(path, disk.read(path, LARGEST_TENSORS)[: known.size], known)

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
        except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as problem:
            raise RunError(f"{what} cannot be read: {problem}.") from None


def plain(name: str) -> str:
    if not PLAIN.fullmatch(name):
        raise RunError(f"{name!r} is no name of a file in a run.")
    return name


def described(data: bytes) -> File:
    return File(len(data), hashlib.sha256(data).hexdigest())


def agree(path: Path, data: bytes, known: File) -> None:
    if described(data) != known:
        raise RunError(f"{path} is not what was written: its size or SHA-256 differs.")


def find(run: Path) -> tuple[list[Checkpoint], dict[Path, str]]:
    """All checkpoints whose manifest is whole, oldest first; and what is wrong with the others."""
    found: list[Checkpoint] = []
    wrong: dict[Path, str] = {}
    folder = run / "checkpoints"
    for path in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(path.name)
        if match is None or path.is_symlink() or not path.is_dir():
            continue
        try:
            data = disk.read(path / "manifest.json", LARGEST_JSON)
            if hashlib.sha256(data).hexdigest()[:16] != match[2]:
                raise RunError(f"{path / 'manifest.json'} is not what was written: its SHA-256 differs.")
            manifest = msgspec.json.decode(data, type=Manifest)
            if manifest.format != FORMAT or manifest.step != int(match[1]):
                raise RunError(f"{path} is of format {manifest.format}, step {manifest.step}; this is format {FORMAT}.")
            found.append(Checkpoint(path, manifest))
        except (RunError, msgspec.DecodeError, RecursionError) as problem:
            wrong[path] = str(problem)
    return sorted(found, key=lambda one: (one.step, one.manifest.serial)), wrong


class Keeper:
    """Writes checkpoints of one run, and remembers which rows of the memory are on the disk already."""

    def __init__(self, run: Path, keep_last: int, keep_best: int, versions: dict[str, Any]) -> None:
        self.run, self.keep_last, self.keep_best, self.versions = run, keep_last, keep_best, versions
        beside = {name: disk.read(run / name, LARGEST_JSON) for name in ("config.json", "versions.json")}
        self.beside = {name: described(data) for name, data in beside.items()}
        self.segments: list[Segment] = []  # of the newest checkpoint
        self.newest: Checkpoint | None = None
        self.distrusted: set[Path] = set()  # found damaged: they go with the next prune

    def go_on_from(self, chosen: Checkpoint) -> None:
        """The run goes on from here: later ones, passed over because they are damaged, go with the next prune."""
        self.newest, self.segments = chosen, chosen.manifest.segments
        found, _ = find(self.run)
        self.distrusted = {one.path for one in found if one.step >= chosen.step and one.path != chosen.path}

    def publish(self, snapshot: Snapshot, memory: AnyMemory, record: File) -> Checkpoint:
        folder = self.run / "checkpoints"
        fresh = folder / f".tmp-{uuid.uuid4().hex}"
        try:
            segments = [*self._living(memory), *self._new_rows(memory)]
            fresh.mkdir()
            files = {}
            for name, data in self._contents(snapshot).items():
                disk.write(fresh / name, data)
                files[name] = described(data)
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
            disk.write(fresh / "manifest.json", data)
            disk.sync_folder(fresh)
            final = folder / f"{snapshot.step:09d}-{hashlib.sha256(data).hexdigest()[:16]}"
            disk.rename(fresh, final)
        except OSError as problem:
            with contextlib.suppress(RunError):
                self.prune()  # what was half written would only take room from the next one
            raise RunError(
                f"The checkpoint at step {snapshot.step:,} cannot be saved: {problem.strerror}."
            ) from problem
        self.segments, self.newest = segments, Checkpoint(final, manifest)
        self.prune()
        return self.newest

    @staticmethod
    def _contents(snapshot: Snapshot) -> dict[str, bytes]:
        networks, optimizers, playing = (snapshot.tensors[one] for one in ("networks", "optimizers", "playing"))
        return {
            "state.json": msgspec.json.encode(snapshot.state),
            "networks.safetensors": safetensors.torch.save(dict(networks)),
            "optimizers.safetensors": safetensors.torch.save(dict(optimizers)),
            "playing.safetensors": safetensors.numpy.save(dict(playing)),
        }

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
        folder = self.run / "memory"
        disk.write(folder / f".tmp-{name}", data)
        disk.rename(folder / f".tmp-{name}", folder / name)
        return Segment(name, first, end, len(data), hashlib.sha256(data).hexdigest())

    def prune(self) -> None:
        """The newest and the best stay, with the rows they need; what else is there is removed, and never before."""
        try:
            found = [one for one in find(self.run)[0] if one.path not in self.distrusted]
            judged = [one for one in found if one.score is not None]
            best = sorted(judged, key=lambda one: (one.score, one.step))[
                len(judged) - min(self.keep_best, len(judged)) :
            ]
            kept = {one.path: one for one in [*found[-self.keep_last :], *best]}
            needed = {segment.name for one in kept.values() for segment in one.manifest.segments}
            for path in (self.run / "checkpoints").iterdir():
                if path not in kept:
                    disk.remove(path)
            for path in (self.run / "memory").iterdir():
                if path.name not in needed:
                    disk.remove(path)
        except OSError as problem:
            raise RunError(f"Old checkpoints cannot be removed: {problem.strerror}.") from problem
