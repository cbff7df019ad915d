"""A run on another machine: trained in a temporary folder, from which its new files are read and sent home.

A checkpoint that was not sent yet is held by hard links, so that it can be read while the run removes it as an old one.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple, NoReturn

import msgspec

from td3.errors import RunError
from td3.storage import disk
from td3.storage.names import CHECKPOINT_NAME, FILM, FIRST, GROWING, MANIFEST, is_place

LARGEST_MANIFEST = 16 * 2**20
LONGEST_PARENT = 24  # characters: Linux takes 107 for a socket, of which Ray needs 70
REMOVE = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"


class News(NamedTuple):
    """What a run has that may be new to its home."""

    sizes: dict[str, int]  # of the files beside its checkpoints, by their places
    film: int  # changes when there is another film
    checkpoints: dict[str, bytes]  # the manifest of each that was not sent yet, by its name


class Scratch:
    """A temporary folder with a run in it, and with the user's own code that it needs."""

    def __init__(self, parent: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="td3-run-", dir=parent))
        self.run, self.code, self._held = (self.path / name for name in ("run", "code", "held"))
        for folder in (self.code, self._held / "checkpoints", self._held / "memory"):
            folder.mkdir(parents=True)
        self._sent: set[str] = set()

    def write_code(self, sources: Mapping[str, bytes]) -> None:
        """Writes modules of the user's, by their places below the folder of code."""
        for place, data in sources.items():
            path = self.code / place
            if PurePosixPath(place).is_absolute() or ".." in PurePosixPath(place).parts:
                raise RunError(f"{place!r} is no place of a module.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def put(self, place: str, data: bytes) -> None:
        """Appends a piece to a file of the run, which continues from what it is sent."""
        path = self.run / known(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
        if place.startswith("checkpoints/"):
            self._sent.add(path.parent.name)
            (self.run / "memory").mkdir(exist_ok=True)

    def begin_again(self) -> None:
        """Makes the folders of a run that was begun, and has no checkpoint yet."""
        for name in ("checkpoints", "memory"):
            (self.run / name).mkdir(parents=True, exist_ok=True)

    def news(self, sent: Collection[str] = ()) -> News:
        """Looks what is new; `sent` are the checkpoints that are home since the last time."""
        self._sent.update(sent)
        # Sizes first: no row of metrics in them is later than a checkpoint that is not listed below.
        sizes = {name: size for name in (*FIRST, *GROWING, FILM) if (size := size_of(self.run / name)) is not None}
        film = (self.run / FILM).stat().st_mtime_ns if FILM in sizes else 0
        for name in self._held_names():
            if name in self._sent:
                shutil.rmtree(self._held / "checkpoints" / name)
        with contextlib.suppress(FileNotFoundError):
            for path in (self.run / "checkpoints").iterdir():
                if CHECKPOINT_NAME.fullmatch(path.name) and path.name not in self._sent:
                    self._hold(path.name)
        held = {
            name: disk.read(self._held / "checkpoints" / name / MANIFEST, LARGEST_MANIFEST)
            for name in self._held_names()
        }
        needed = {segment for manifest in held.values() for segment in segments_in(manifest)}
        for path in (self._held / "memory").iterdir():
            if path.name not in needed:
                path.unlink()
        return News(sizes, film, held)

    def _held_names(self) -> list[str]:
        return [path.name for path in (self._held / "checkpoints").iterdir() if CHECKPOINT_NAME.fullmatch(path.name)]

    def _hold(self, name: str) -> None:
        """Links a checkpoint and its rows; one that is removed meanwhile is let go: there is a newer one."""
        place = self._held / "checkpoints" / name
        if place.exists():
            return
        beside = place.with_name(f"new-{name}")
        shutil.rmtree(beside, ignore_errors=True)
        try:
            shutil.copytree(self.run / "checkpoints" / name, beside, copy_function=os.link)
            for segment in segments_in(disk.read(beside / MANIFEST, LARGEST_MANIFEST)):
                with contextlib.suppress(FileExistsError):
                    os.link(self.run / "memory" / segment, self._held / "memory" / segment)
            beside.rename(place)
        except (OSError, RunError, shutil.Error):
            shutil.rmtree(beside, ignore_errors=True)

    def read(self, place: str, start: int, size: int) -> bytes:
        """Reads a piece of a file of the run."""
        root = self._held if "/" in known(place) else self.run
        with disk.regular_file(root / place) as (file, _):
            return os.pread(file, size, start)

    def remove(self) -> None:
        """Removes it all."""
        shutil.rmtree(self.path, ignore_errors=True)


class _Segment(msgspec.Struct):
    name: str


class _Manifest(msgspec.Struct):
    segments: list[_Segment]


def segments_in(manifest: bytes) -> list[str]:
    """Returns the names of the files with the rows of a checkpoint."""
    return [segment.name for segment in msgspec.json.decode(manifest, type=_Manifest).segments]


def known(place: str) -> str:
    """Returns a place of a run folder; refuses any other."""
    if not is_place(place):
        raise RunError(f"{place!r} is no file of a run.")
    return place


def size_of(path: Path) -> int | None:
    """Returns the size of a file, if it is there."""
    try:
        return disk.size_of(path)
    except RunError:
        return None


def private_folder(prefix: str) -> Path:
    """Makes a temporary folder that no other user can open, with a path short enough for the sockets in it."""
    usual = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix=prefix, dir=usual if len(usual) <= LONGEST_PARENT else "/tmp"))


def remove_folder(path: str) -> None:
    """Removes a temporary folder with all that is in it."""
    shutil.rmtree(path, ignore_errors=True)


def end_and_remove(path: str) -> NoReturn:
    """Ends this process, with all its threads, and removes a folder that they may be writing to."""
    os.execv(sys.executable, [sys.executable, "-I", "-c", REMOVE, path])
