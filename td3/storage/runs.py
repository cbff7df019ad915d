"""Finds the runs below a folder, and reads the plain data that each was begun with."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from td3.errors import RunError
from td3.storage import disk

DEEPEST = 6  # folders below the one that is searched
MOST_RUNS, MOST_FOLDERS = 10_000, 20_000
LARGEST_JSON = 2**20  # bytes


def find(root: Path) -> Iterator[Path]:
    """Every run's folder at or below `root`, whole or not; links are not followed, and a run holds no other run."""
    waiting, found, looked = [(root, 0)], 0, 0
    while waiting and found < MOST_RUNS and looked < MOST_FOLDERS:
        folder, depth = waiting.pop()
        looked += 1
        try:
            with os.scandir(folder) as entries:
                kinds = {one.name: one.is_dir(follow_symlinks=False) for one in entries}
        except OSError:
            continue
        below = sorted(name for name, is_folder in kinds.items() if is_folder)
        if "checkpoints" in below or {"config.json", "metrics.jsonl"} <= kinds.keys():
            found += 1
            yield folder
        elif depth < DEEPEST:
            waiting += [(folder / name, depth + 1) for name in reversed(below) if not name.startswith(".")]


def read_object(path: Path) -> dict[str, Any]:
    """A small JSON object."""
    try:
        return msgspec.json.decode(disk.read(path, LARGEST_JSON), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise RunError(f"{path.name} is no JSON object.") from None


def in_order(name: str) -> list[tuple[int, str]]:
    """Returns what sorts seed-2 before seed-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def is_written(path: Path) -> bool:
    """Whether a process of this machine writes a run now, as its lock says; the lock itself is not touched."""
    try:
        holder = read_object(path / "lock")
        return holder["host"] == socket.gethostname() and alive(int(holder["pid"]))
    except (RunError, KeyError, TypeError, ValueError):
        return False


def alive(pid: int) -> bool:
    """Returns whether a process with this id runs on this machine."""
    if pid <= 0:  # would be a whole group of processes
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
