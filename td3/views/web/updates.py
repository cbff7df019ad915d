"""The recorded updates of a run: which there are, what they tell over time, and each one as it was written."""

import threading
from pathlib import Path
from typing import Any

import msgspec

from td3.views.web.files import GrowingLines, decoded, read_range

MOST_POINTS = 2_000
MOST_UPDATES = 5_000  # of which is told: the newest


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
    """One `updates.jsonl`, of which each line's few small numbers and its place are known."""

    def __init__(self, path: Path) -> None:
        self._lines = GrowingLines(path)
        self._lock = threading.Lock()
        self._start_anew()

    def _start_anew(self) -> None:
        self._found: list[_Recorded] = []
        self._places: dict[int, tuple[int, int]] = {}  # by the update's number

    def refresh(self) -> list[_Recorded]:
        with self._lock:
            return self._refresh()

    def _refresh(self) -> list[_Recorded]:
        for begin, lump in self._lines.new():
            if self._lines.restarted and begin == 0:
                self._start_anew()
            for line in lump.splitlines(keepends=True):
                if (one := decoded(line, _Recorded)) is not None and one.update not in self._places:
                    self._found.append(one)
                    self._places[one.update] = (begin, begin + len(line))
                begin += len(line)
            for one in self._found[:-MOST_UPDATES]:
                del self._places[one.update]
            del self._found[:-MOST_UPDATES]
        if self._lines.restarted and self._lines.place == 0:
            self._start_anew()
        return list(self._found)

    def one(self, update: int | None) -> bytes | None:
        """The line of this update, or of the newest; None where there is none, or it is no JSON any more."""
        with self._lock:
            found = self._refresh()
            number = found[-1].update if update is None and found else update
            place = None if number is None else self._places.get(number)
        if place is None:
            return None
        line = read_range(self._lines.path, *place)
        return line if decoded(line, msgspec.Raw) is not None else None

    def overview(self) -> dict[str, Any]:
        found = self.refresh()
        shown = found[:: max(1, -(-len(found) // MOST_POINTS))]
        histogram = None
        if line := self.one(None):
            newest = decoded(line, dict[str, Any]) or {}
            batch = newest.get("batch")
            counts = batch.get("histogram") if isinstance(batch, dict) else None
            histogram = {"step": found[-1].step, "counts": counts} if counts else None
        return {
            "updates": [{"update": one.update, "step": one.step, "delayed": one.delayed} for one in found],
            "series": {
                "step": [one.step for one in shown],
                **{
                    name: [getattr(one.batch, name) for one in shown]
                    for name in ("twin_gap", "q1_smaller", "saturated")
                },
                "memory_rows": [one.memory.rows for one in shown],
                "mean_age": [one.memory.mean_age for one in shown],
                "oldest_age": [one.memory.oldest_age for one in shown],
                "capacity": found[-1].memory.capacity if found else None,
            },
            "histogram": histogram,
        }
