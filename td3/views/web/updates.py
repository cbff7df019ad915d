"""The recorded updates of a run: which there are, their numbers over time, and each as it was written."""

import threading
from pathlib import Path
from typing import Any

import msgspec

from td3.views.web.files import GrowingLines, decoded, read_range

MOST_POINTS = 2_000
MOST_UPDATES = 5_000  # that are listed: the newest


class _Batch(msgspec.Struct):
    twin_gap: float | None = None
    q1_smaller: float | None = None
    saturated: float | None = None


class _Memory(msgspec.Struct):
    rows: int | None = None
    capacity: int | None = None
    mean_age: float | None = None
    oldest_age: float | None = None


class _Recorded(msgspec.Struct):
    update: int
    step: int
    delayed: bool = False
    batch: _Batch = msgspec.field(default_factory=_Batch)
    memory: _Memory = msgspec.field(default_factory=_Memory)


class Updates:
    """One `updates.jsonl`; keeps a few small numbers of each line, and where it is in the file."""

    def __init__(self, path: Path) -> None:
        self._lines = GrowingLines(path)
        self._lock = threading.Lock()
        self._start_anew()

    def _start_anew(self) -> None:
        self._updates: list[_Recorded] = []
        self._ranges: dict[int, tuple[int, int]] = {}  # bytes in the file, by the update's number

    def refresh(self) -> list[_Recorded]:
        """Reads what was appended since the last time, and returns all updates."""
        with self._lock:
            return self._refresh()

    def _refresh(self) -> list[_Recorded]:
        for begin, lump in self._lines.new():
            if self._lines.restarted and begin == 0:
                self._start_anew()
            for line in lump.splitlines(keepends=True):
                if (update := decoded(line, _Recorded)) is not None and update.update not in self._ranges:
                    self._updates.append(update)
                    self._ranges[update.update] = (begin, begin + len(line))
                begin += len(line)
            for update in self._updates[:-MOST_UPDATES]:
                del self._ranges[update.update]
            del self._updates[:-MOST_UPDATES]
        if self._lines.restarted and self._lines.place == 0:
            self._start_anew()
        return list(self._updates)

    def one(self, update: int | None) -> bytes | None:
        """Returns the line of this update, or of the newest; None where there is none, or it is no JSON any more."""
        with self._lock:
            updates = self._refresh()
            number = updates[-1].update if update is None and updates else update
            begin_end = None if number is None else self._ranges.get(number)
        if begin_end is None:
            return None
        line = read_range(self._lines.path, *begin_end)
        return line if decoded(line, msgspec.Raw) is not None else None

    def overview(self) -> dict[str, Any]:
        """Returns all updates, their numbers over time, and the newest histogram."""
        updates = self.refresh()
        shown = updates[:: max(1, -(-len(updates) // MOST_POINTS))]
        histogram = None
        if line := self.one(None):
            newest = decoded(line, dict[str, Any]) or {}
            batch = newest.get("batch")
            counts = batch.get("histogram") if isinstance(batch, dict) else None
            histogram = {"step": updates[-1].step, "counts": counts} if counts else None
        return {
            "updates": [{"update": each.update, "step": each.step, "delayed": each.delayed} for each in updates],
            "series": {
                "step": [each.step for each in shown],
                **{
                    name: [getattr(each.batch, name) for each in shown]
                    for name in ("twin_gap", "q1_smaller", "saturated")
                },
                "memory_rows": [each.memory.rows for each in shown],
                "mean_age": [each.memory.mean_age for each in shown],
                "oldest_age": [each.memory.oldest_age for each in shown],
                "capacity": updates[-1].memory.capacity if updates else None,
            },
            "histogram": histogram,
        }
