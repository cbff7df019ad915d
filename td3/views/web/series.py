"""A metric of any length in few points: every stretch keeps its lowest and its highest, so that no spike is lost.

A record may have millions of rows, and there may be hundreds of records. Of each metric that somebody looks at, blocks
of 512 points are kept as a few numbers each, with the place in the file where they begin; a closer look reads just
those rows again. What is appended is read once.
"""

import functools
import itertools
import math
import operator
import threading
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from td3.views.web.files import GrowingLines, decoded_lines, read_range, tail

BLOCK = 512  # points
NAMES_FROM = 2**16  # bytes at the beginning and at the end of a record, whose rows tell which metrics there are

Numbers = NDArray[np.float64]


class Points(NamedTuple):
    """Steps and values in the order they were written; NaN where the run had no number."""

    step: Numbers
    value: Numbers


# A block: its lowest and highest step; the step and the value of its lowest and of its highest point; the step of a
# point without a number, or NaN; and the bytes where its rows begin and end. Plain numbers: there are many blocks.
FIRST, LAST, LOW_STEP, LOW, HIGH_STEP, HIGH, GAP, BEGIN, END = range(9)


class Record:
    """Some metrics of one record, which are looked at together and so read together."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self._lines, self._names = GrowingLines(path), names
        self._lock = threading.Lock()  # several viewers may ask at once
        self._columns = [Column(path, name) for name in names]

    def within(self, first: float, last: float, most: int) -> dict[str, Points]:
        """Of each metric at most about `most` points with a step from `first` to `last`."""
        with self._lock:
            self._refresh()
            looks = [column.look() for column in self._columns]
        return {look.name: look.within(first, last, most) for look in looks}

    def _refresh(self) -> None:
        for begin, lump in self._lines.new():
            if self._lines.restarted and begin == 0:
                self._start_anew()
            # In pieces of about a block each, so that a closer look at a block reads little more than it.
            for place, piece in pieces(begin, lump):
                for column, points in zip(self._columns, points_of(piece, self._names), strict=True):
                    column.add(points, place, place + len(piece))
        if self._lines.restarted and self._lines.place == 0:
            self._start_anew()

    def _start_anew(self) -> None:
        for column in self._columns:
            column.start_anew()


class Column:
    """One metric: whole blocks, and the points that fill no block yet."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.start_anew()

    def start_anew(self) -> None:
        self._blocks = array("d")
        self._recent: list[Points] = []
        self._count, self._begin = 0, 0  # points that fill no block yet, and where their rows begin

    def add(self, points: Points, begin: int, end: int) -> None:
        if not len(points.step):
            return
        if not self._count:
            self._begin = begin
        self._recent.append(points)
        self._count += len(points.step)
        if self._count >= BLOCK:
            self._blocks.extend(block_of(joined(self._recent), self._begin, end))
            self._recent, self._count = [], 0

    def look(self) -> "Look":
        return Look(self.path, self.name, np.array(self._blocks).reshape(-1, 9), joined(self._recent))


class Look(NamedTuple):
    """A column as it is at one moment."""

    path: Path
    name: str
    blocks: Numbers
    recent: Points

    def within(self, first: float, last: float, most: int) -> Points:
        blocks = self.blocks[(self.blocks[:, LAST] >= first) & (self.blocks[:, FIRST] <= last)]
        if len(blocks) * 2 > most:
            found = extremes_of_blocks(blocks, most)
        else:  # near enough to see every row
            lumps = [read_range(self.path, begin, end) for begin, end in stretches(blocks)]
            found = joined([points_of(lump, (self.name,))[0] for lump in lumps])
        found = joined([found, self.recent])
        inside = (found.step >= first) & (found.step <= last)
        return extremes(Points(found.step[inside], found.value[inside]), most)


def pieces(begin: int, lump: bytes) -> Sequence[tuple[int, bytes]]:
    """The lump cut at line ends about every 512 of its lines."""
    length = BLOCK * max(1, lump.find(b"\n") + 1)
    if len(lump) <= length:
        return [(begin, lump)]
    cuts, place = [], 0
    while place < len(lump):
        end = lump.find(b"\n", place + length) + 1 or len(lump)
        cuts.append((begin + place, lump[place:end]))
        place = end
    return cuts


def stretches(blocks: Numbers) -> list[tuple[int, int]]:
    """Where the blocks' rows lie, neighbours as one."""
    found: list[tuple[int, int]] = []
    for begin, end in blocks[:, [BEGIN, END]].astype(int).tolist():
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


@functools.lru_cache(maxsize=256)
def row_of(names: tuple[str, ...]) -> Any:
    """A row of which only the step and these are looked at; infinity, which JSON cannot say, where it has none."""
    places = {f"value{place}": name for place, name in enumerate(names)}
    fields: list[Any] = [("step", float), *((place, float | None, math.inf) for place in places)]
    return msgspec.defstruct("Row", fields, rename=places, gc=False)


def points_of(lump: bytes, names: tuple[str, ...]) -> list[Points]:
    rows = decoded_lines(lump, row_of(names))
    step = column_of(rows, "step")
    found = [Points(step, column_of(rows, f"value{place}")) for place in range(len(names))]
    return [one if (has := one.value != math.inf).all() else Points(step[has], one.value[has]) for one in found]


def column_of(rows: list[Any], field: str) -> Numbers:
    return np.array(list(map(operator.attrgetter(field), rows)), np.float64)  # None becomes NaN


def joined(parts: Sequence[Points]) -> Points:
    if not parts:
        return Points(np.empty(0), np.empty(0))
    return Points(np.concatenate([one.step for one in parts]), np.concatenate([one.value for one in parts]))


def block_of(points: Points, begin: int, end: int) -> list[float]:
    step, value = points
    limits = [step.min(), step.max()]
    missing = np.isnan(value)
    gap = math.nan
    if missing.any():
        gap = step[missing.argmax()]
        step, value = step[~missing], value[~missing]
    low = high = [math.nan, math.nan]
    if len(value):
        low, high = ([step[place], value[place]] for place in (value.argmin(), value.argmax()))
    return [*limits, *low, *high, gap, begin, end]


def extremes_of_blocks(blocks: Numbers, most: int) -> Points:
    steps = np.concatenate([blocks[:, LOW_STEP], blocks[:, HIGH_STEP], blocks[:, GAP]])
    values = np.concatenate([blocks[:, LOW], blocks[:, HIGH], np.full(len(blocks), np.nan)])
    known = ~np.isnan(steps)
    steps, values = steps[known], values[known]
    order = np.argsort(steps, kind="stable")
    return extremes(Points(steps[order], values[order]), most)


def extremes(points: Points, most: int) -> Points:
    """The lowest and the highest of every stretch, in their order, and one gap where there is any."""
    step, value = points
    if len(step) <= most:
        return points
    edges = np.linspace(0, len(step), max(1, most // 3) + 1).astype(int)
    kept: set[int] = set()
    low, high = np.where(np.isnan(value), np.inf, value), np.where(np.isnan(value), -np.inf, value)
    for begin, end in itertools.pairwise(edges):
        if begin == end:
            continue
        kept.add(begin + int(np.argmin(low[begin:end])))
        kept.add(begin + int(np.argmax(high[begin:end])))
        missing = np.flatnonzero(np.isnan(value[begin:end]))
        if len(missing):
            kept.add(begin + int(missing[0]))
    kept |= {0, len(step) - 1}
    chosen = np.array(sorted(kept))
    return Points(step[chosen], value[chosen])


def names_in(path: Path) -> list[str]:
    """The metrics a record has, in the order of their names; lists are none."""
    found: set[str] = set()
    try:
        beginning = read_range(path, 0, NAMES_FROM)
    except FileNotFoundError:
        return []
    for lump in (beginning[: beginning.rfind(b"\n") + 1], tail(path, NAMES_FROM)):
        for row in decoded_lines(lump, dict[str, Any]):
            found |= {name for name, value in row.items() if value is None or isinstance(value, int | float)}
    return sorted(found - {"step"})
