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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from td3.metrics import METRICS
from td3.views.web.files import GrowingLines, decoded_lines, read_range, tail

BLOCK = 512  # points
NEAR = 2**24  # bytes of rows that are all looked at; of more, only their blocks
FARTHEST = 2**26  # bytes between the first and the last row of one block that is read row by row
READING = threading.Semaphore(2)  # closer looks at once: each may hold as many bytes as these
NAMES_FROM = 2**16  # bytes at the beginning and the end of a record that are searched for names of metrics

Numbers = NDArray[np.float64]


class Points(NamedTuple):
    """Steps and values in the order they were written; NaN where the run had no number."""

    step: Numbers
    value: Numbers


# A block: its lowest and highest step; the step and the value of its lowest and of its highest point; the step of a
# point without a number, or NaN; the sum and the number of its points; and the bytes where its rows begin and end.
# Plain numbers: there are many blocks.
FIRST, LAST, LOW_STEP, LOW, HIGH_STEP, HIGH, GAP, SUM, COUNT, BEGIN, END = range(WIDTH := 11)


class Shown(NamedTuple):
    """A metric between two steps, as much as a chart can show: the extremes of every stretch, and its mean.

    There is no mean where nothing had to be left out.
    """

    points: Points
    mean: Points | None


class Record:
    """The metrics of one record that somebody has asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # several viewers may ask at once
        self._groups: list[Group] = []

    def within(self, names: Iterable[str], first: float, last: float, most: int) -> dict[str, Shown]:
        """Of each metric at most about `most` points with a step from `first` to `last`."""
        wanted = list(dict.fromkeys(names))
        with self._lock:
            known = {name for group in self._groups for name in group.names}
            if fresh := tuple(name for name in wanted if name not in known):
                self._groups.append(Group(self._path, fresh))
            looks = {name: look for group in self._groups for name, look in group.looks(wanted).items()}
        with READING:
            return {name: looks[name].within(first, last, most) for name in wanted}


class Group:
    """Metrics that were asked for together, and so are read together."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self._lines, self.names = GrowingLines(path), names
        self._columns = [Column(path, name) for name in names]

    def looks(self, wanted: list[str]) -> dict[str, "Look"]:
        """Those of them that are wanted, with all there is by now."""
        columns = [column for column in self._columns if column.name in wanted]
        if columns:
            self._refresh()
        return {column.name: column.look() for column in columns}

    def _refresh(self) -> None:
        for begin, lump in self._lines.new():
            if self._lines.restarted and begin == 0:
                self._start_anew()
            # In pieces of about a block each, so that a closer look at a block reads little more than it.
            for place, piece in pieces(begin, lump):
                for column, points in zip(self._columns, points_of(piece, self.names), strict=True):
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
        """Forgets all points."""
        self._blocks = array("d")
        self._recent: list[Points] = []
        self._count, self._begin = 0, 0  # points that fill no block yet, and where their rows begin

    def add(self, points: Points, begin: int, end: int) -> None:
        """Adds points read from these bytes of the file; enough of them become a block."""
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
        """Returns the column as it is now."""
        return Look(self.path, self.name, np.array(self._blocks).reshape(-1, WIDTH), joined(self._recent))


class Look(NamedTuple):
    """A column as it is at one moment."""

    path: Path
    name: str
    blocks: Numbers
    recent: Points

    def within(self, first: float, last: float, most: int) -> Shown:
        """Returns at most about `most` points with a step from `first` to `last`, and their means."""
        blocks = self.blocks[(self.blocks[:, LAST] >= first) & (self.blocks[:, FIRST] <= last)]
        whole = (blocks[:, FIRST] >= first) & (blocks[:, LAST] <= last)
        if (blocks[:, END] - blocks[:, BEGIN]).sum() <= NEAR:  # near enough to see every row
            whole[:] = False
        # A block that crosses the edge may have its extremes outside: its rows are looked at.
        rows = joined([*self._rows(blocks[~whole]), self.recent])
        inside = (rows.step >= first) & (rows.step <= last)
        rows = in_order(Points(rows.step[inside], rows.value[inside]))
        points = extremes(in_order(joined([extremes_of(blocks[whole]), rows])), most)
        if len(points.step) == len(rows.step):
            return Shown(points, None)
        return Shown(points, means(blocks[whole], rows, most))

    def _rows(self, blocks: Numbers) -> Iterator[Points]:
        for begin, end in stretches(blocks):
            if end - begin <= FARTHEST:  # else a few points lie very far apart: their block has to do
                yield points_of(read_range(self.path, begin, end), (self.name,))[0]


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
    fields: list[Any] = [("step", float), *((place, float | bool | None, math.inf) for place in places)]
    return msgspec.defstruct("Row", fields, rename=places, gc=False)


def points_of(lump: bytes, names: tuple[str, ...]) -> list[Points]:
    """Returns the points of each metric in these lines."""
    rows = decoded_lines(lump, row_of(names))
    step = column_of(rows, "step")
    found = [Points(step, column_of(rows, f"value{place}")) for place in range(len(names))]
    return [one if (has := one.value != math.inf).all() else Points(step[has], one.value[has]) for one in found]


def column_of(rows: list[Any], field: str) -> Numbers:
    """Returns one field of all rows, float64 (n,)."""
    return np.array(list(map(operator.attrgetter(field), rows)), np.float64)  # None becomes NaN


def joined(parts: Sequence[Points]) -> Points:
    """Joins points one after the other."""
    if not parts:
        return Points(np.empty(0), np.empty(0))
    return Points(np.concatenate([one.step for one in parts]), np.concatenate([one.value for one in parts]))


def block_of(points: Points, begin: int, end: int) -> list[float]:
    """Summarises points as one block."""
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
    return [*limits, *low, *high, gap, value.sum(), len(value), begin, end]


def extremes_of(blocks: Numbers) -> Points:
    """Returns the lowest and highest points of blocks, and their gaps."""
    steps = np.concatenate([blocks[:, LOW_STEP], blocks[:, HIGH_STEP], blocks[:, GAP]])
    values = np.concatenate([blocks[:, LOW], blocks[:, HIGH], np.full(len(blocks), np.nan)])
    known = ~np.isnan(steps)
    return Points(steps[known], values[known])


def means(blocks: Numbers, rows: Points, most: int) -> Points:
    """The mean of every stretch: of blocks and of single rows alike, each as heavy as its points are many."""
    known = ~np.isnan(rows.value)
    step = np.concatenate([(blocks[:, FIRST] + blocks[:, LAST]) / 2, rows.step[known]])
    total = np.concatenate([blocks[:, SUM], rows.value[known]])
    count = np.concatenate([blocks[:, COUNT], np.ones(int(known.sum()))])
    order = np.argsort(step, kind="stable")[: len(step)]
    order = order[count[order] > 0]
    if not len(order):
        return Points(np.empty(0), np.empty(0))
    heaviness = np.cumsum(count[order])
    stretch = np.minimum((heaviness - count[order]) * (most // 2) // heaviness[-1], most // 2 - 1)
    begins = np.flatnonzero(np.diff(stretch, prepend=-1))
    weights = np.add.reduceat(count[order], begins)
    middle = np.add.reduceat(count[order] * step[order], begins) / weights
    return Points(middle, np.add.reduceat(total[order], begins) / weights)


def in_order(points: Points) -> Points:
    """Sorts points by step."""
    order = np.argsort(points.step, kind="stable")
    return Points(points.step[order], points.value[order])


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
    """The metrics a record may have: those of every run, and what else stands at its beginning or its end."""
    found = set(METRICS)
    try:
        beginning = read_range(path, 0, NAMES_FROM)
    except FileNotFoundError:
        return []
    for lump in (beginning[: beginning.rfind(b"\n") + 1], tail(path, NAMES_FROM)):
        for row in decoded_lines(lump, dict[str, Any]):
            found |= {name for name, value in row.items() if value is None or isinstance(value, int | float)}
    return sorted(name for name in found - {"step"} if name.isprintable() and not {'"', "\\"} & set(name))
