"""The folder of a run that trains elsewhere: it takes in what is new, in the order in which training writes it.

So it is whole at every instant, and every command works on it. What arrives is checked by its hash before it gets a
name, and only names that training gives are given here, whatever the other side says.
"""

import contextlib
import hashlib
import uuid
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from td3.errors import ConfigError, RunError
from td3.storage import disk
from td3.storage.checkpoint import FORMAT, LARGEST_JSON, Checkpoint, File, Manifest, changed, file_of
from td3.storage.folder import RunFolder
from td3.storage.names import AWAITED, CHECKPOINT_NAME, FILES, FILM, FIRST, MANIFEST, SEGMENT_NAME
from td3.storage.record import Record
from td3.storage.scratch import News
from td3.storage.updates import UpdatesFile
from td3.storage.writer import CheckpointWriter

PIECE = 4 * 2**20  # bytes that are sent at once
LARGEST_FILE = 2**31  # a file of a checkpoint: rows come in files of about 64 MB
LARGEST_FILM = 64 * 2**20

Fetch = Callable[[str, int, int], bytes]  # reads a piece of a file where the run trains: place, start, size


class NotSaved(RunError):
    """The disk at home refuses something. It stays where the run trains, and may be taken in later."""


class Part(NamedTuple):
    """A file that a run needs to continue elsewhere."""

    place: str
    size: int


class HomeFolder:
    """The folder of one run that trains elsewhere; locked until it is closed."""

    def __init__(self, path: Path, keep_last: int, keep_best: int) -> None:
        """`keep_last` and `keep_best` say which checkpoints stay, unless the run's own settings say otherwise."""
        self.path, self._keep = path, (keep_last, keep_best)
        self._folder: RunFolder | None = None
        self._open: _Open | None = None
        self._taken: set[str] = set()  # checkpoints that were taken in
        self._film = 0

    @property
    def step(self) -> int:
        """Returns the step of the newest checkpoint, from which the run would continue."""
        return self._open.writer.newest.step if self._open and self._open.writer.newest else 0

    def begin(self, check: Callable[[RunFolder], None] = lambda _: None) -> list[Part]:
        """Cuts the records back to the newest whole checkpoint; returns the files with which the run continues there.

        `check` may refuse a run that is begun and has no checkpoint.
        """
        self._close_files()
        if self._folder is None:
            if RunFolder.is_new(self.path):
                return []
            self._folder = RunFolder.open(self.path, to_write=True)
        if self._folder.begun() is not None:
            check(self._folder)
            self._open_files(self._folder, None)
            return [Part(name, disk.size_of(self.path / name)) for name in FIRST]
        since, _, _ = self._folder.newest(Checkpoint.check)
        kept = since.state().get("config", {})
        last, best = (kept.get(name) for name in ("keep_last", "keep_best"))
        if isinstance(last, int) and isinstance(best, int):
            self._keep = last, best
        return list(self._parts(since, self._open_files(self._folder, since)))

    def _open_files(self, folder: RunFolder, since: Checkpoint | None) -> "_Open":
        assert folder.root is not None
        self._open = _Open(
            CheckpointWriter(self.path, folder.root, *self._keep, {}, since),
            Record(folder.metrics, since.manifest.record.size if since else 0, folder.root),
            UpdatesFile(folder.updates, since.step if since else 0),
        )
        self._taken = {since.path.name} if since else set()
        self._film = 0
        return self._open

    def _parts(self, since: Checkpoint, opened: "_Open") -> Iterator[Part]:
        for name in FIRST:
            with contextlib.suppress(RunError):  # edited or removed, which changes nothing
                yield Part(name, disk.size_of(self.path / name))
        yield Part("metrics.jsonl", opened.record.length)
        yield Part("updates.jsonl", opened.updates.length)
        for segment in since.manifest.segments:
            yield Part(f"memory/{segment.name}", segment.size)
        for name in [*since.manifest.files, MANIFEST]:
            place = f"checkpoints/{since.path.name}/{name}"
            yield Part(place, disk.size_of(self.path / place))

    def read(self, part: Part) -> Iterator[bytes]:
        """Reads a file piece by piece; one piece at least."""
        with disk.regular_file(self.path / part.place) as (file, _), open(file, "rb", closefd=False) as opened:
            left = part.size
            while piece := opened.read(min(PIECE, left)):
                yield piece
                left -= len(piece)
            if part.size == 0:
                yield b""

    def take(self, news: News, fetch: Fetch) -> list[str]:
        """Takes in all that is new, and returns the checkpoints among it."""
        if self._folder is None:
            if not all(name in news.sizes for name in FIRST):
                return []
            first = {name: self._fetched(fetch, name, news.sizes[name], LARGEST_JSON) for name in FIRST}
            try:
                self._folder = RunFolder.make(self.path, {**first, AWAITED: b""})
            except ConfigError as problem:
                raise NotSaved(str(problem)) from None
            self._open_files(self._folder, None)
        assert self._open is not None
        taken = []
        manifests = {name: checked(name, data) for name, data in news.checkpoints.items() if name not in self._taken}
        for name in sorted(manifests, key=lambda name: (manifests[name].step, manifests[name].serial)):
            self._take_checkpoint(self._open, name, news.checkpoints[name], manifests[name], fetch)
            self._taken.add(name)
            taken.append(name)
        self._take_lines(self._open, news.sizes, fetch)
        self._take_film(news, fetch)
        return taken

    def _take_checkpoint(self, opened: "_Open", name: str, data: bytes, manifest: Manifest, fetch: Fetch) -> None:
        writer, fresh = opened.writer, f".tmp-{uuid.uuid4().hex}"
        try:
            take_record(opened.record, manifest.record.size, fetch)
            if self._record_hash(opened.record, manifest.record.size) != manifest.record.sha256:
                raise changed(self.path / "metrics.jsonl")
            for own, known in manifest.run.items():
                if writer.beside.get(own, known) != known:
                    raise changed(self.path / own)
            there = set(writer.memory.names())
            for segment in manifest.segments:
                if segment.name not in there:
                    rows = self._agreeing(fetch, f"memory/{segment.name}", File(segment.size, segment.sha256))
                    writer.memory.write(f".tmp-{segment.name}", rows)
                    writer.memory.rename(f".tmp-{segment.name}", segment.name)
            with contextlib.closing(writer.checkpoints.make_folder(fresh)) as folder:
                for file, known in manifest.files.items():
                    folder.write(file, self._agreeing(fetch, f"checkpoints/{name}/{file}", known))
                folder.write(MANIFEST, data)
                folder.sync()
            writer.checkpoints.rename(fresh, name)
        except OSError as problem:
            with contextlib.suppress(RunError):
                writer.prune()  # what was half written would only take room from the next try
            raise NotSaved(
                f"The checkpoint at step {manifest.step:,} cannot be saved in {str(self.path)!r}: {problem.strerror}."
            ) from problem
        writer.newest = Checkpoint(self.path / "checkpoints" / name, manifest)
        writer.kept.append(writer.newest)
        with contextlib.suppress(OSError):  # it means nothing beside a checkpoint
            writer.root.remove(AWAITED)
        with contextlib.suppress(RunError):  # this one is saved all the same
            writer.prune()

    def _record_hash(self, record: Record, length: int) -> str:
        if record.length == length:
            return record.hash.hexdigest()
        return disk.digest(self.path / "metrics.jsonl", length)

    def _take_lines(self, opened: "_Open", sizes: dict[str, int], fetch: Fetch) -> None:
        try:
            take_record(opened.record, sizes.get("metrics.jsonl", 0), fetch)
        except OSError as problem:
            raise NotSaved(f"Metrics cannot be saved in {str(self.path)!r}: {problem.strerror}.") from problem
        updates, end = opened.updates, sizes.get("updates.jsonl", 0)
        while updates.is_open and updates.length < end:
            before = updates.length
            piece = fetch("updates.jsonl", before, min(PIECE, end - before))
            updates.append(piece[: piece.rfind(b"\n") + 1])
            if updates.length == before:  # no whole line, or no room: it is no part of any checkpoint
                return

    def _take_film(self, news: News, fetch: Fetch) -> None:
        if news.film == self._film or not 0 < news.sizes.get(FILM, 0) <= LARGEST_FILM:
            return
        film = self._fetched(fetch, FILM, news.sizes[FILM], LARGEST_FILM)
        if len(film) == news.sizes[FILM]:  # else it was replaced meanwhile
            self._film = news.film
            with contextlib.suppress(OSError):  # as training does: a film is worth no word
                disk.replace_whole(self.path / FILM, film)

    def _fetched(self, fetch: Fetch, place: str, size: int, most: int) -> bytes:
        if not 0 <= size <= most:
            raise RunError(f"{place} has {size:,} bytes where the run trains, more than the {most:,} it may have.")
        data = bytearray()
        while len(data) < size and (piece := fetch(place, len(data), min(PIECE, size - len(data)))):
            data += piece
        return bytes(data)

    def _agreeing(self, fetch: Fetch, place: str, known: File) -> bytes:
        """Fetches a file, and refuses it unless it has the hash that its checkpoint says."""
        data = self._fetched(fetch, place, known.size, LARGEST_FILE)
        if file_of(data) != known:
            raise RunError(f"{place} arrived damaged: its size or SHA-256 differs.")
        return data

    def _close_files(self) -> None:
        if self._open is not None:
            self._open.record.close()
            self._open.updates.close()
            self._open = None

    def close(self) -> None:
        """Closes the files, and releases the lock."""
        self._close_files()
        if self._folder is not None:
            self._folder.release()
            self._folder = None


class _Open(NamedTuple):
    writer: CheckpointWriter
    record: Record
    updates: UpdatesFile


def take_record(record: Record, end: int, fetch: Fetch) -> None:
    """Takes in the rows of metrics up to a length, whole ones only."""
    while record.length < end:
        piece = fetch("metrics.jsonl", record.length, min(PIECE, end - record.length))
        lines = piece[: piece.rfind(b"\n") + 1]
        if not lines:
            return
        record.append(lines)


def checked(name: str, data: bytes) -> Manifest:
    """Reads a manifest that was sent; refuses one that is not the checkpoint's, or names what no checkpoint has."""
    match = CHECKPOINT_NAME.fullmatch(name)
    if match is None or hashlib.sha256(data).hexdigest()[:16] != match[2]:
        raise RunError(f"{name!r} is no checkpoint, or its manifest arrived damaged.")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise RunError(f"The manifest of {name} cannot be read: {problem}.") from None
    if manifest.format != FORMAT or manifest.step != int(match[1]):
        raise RunError(f"{name} is of format {manifest.format}, step {manifest.step}; this is format {FORMAT}.")
    allowed(manifest.files, lambda file: file in FILES and file != MANIFEST)
    allowed(manifest.run, lambda file: file in FIRST)
    allowed([segment.name for segment in manifest.segments], lambda file: SEGMENT_NAME.fullmatch(file) is not None)
    return manifest


def allowed(names: Collection[str], fits: Callable[[str], bool]) -> None:
    """Refuses a name that training gives to no file."""
    for name in names:
        if not fits(name):
            raise RunError(f"{name!r} is no file of a run.")
