"""Samples rows by their last errors: LAP, loss-adjusted prioritised replay (Fujimoto et al. 2020, arXiv 2007.06049).

A row has the priority max(|δ1|, |δ2|, floor)^α, with the errors δ that both critics had when it was last sampled; a new
row has the largest so far. Rows are drawn in proportion to it, with replacement and without importance weights: the
critics' loss has another shape instead, see `Learner.distance`.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from td3.errors import RunError
from td3.interfaces import Arrays, Indices
from td3.types import Update

if TYPE_CHECKING:
    from td3.replay import AnyMemory

SHIFT = 5
BLOCK = 1 << SHIFT  # numbers that are added up to one of the next level
TOP = 1_024  # numbers of the last level at most: it is searched as a whole
LARGEST = np.float32(1e30)  # priority: an error that overflowed must not stop every other row from being drawn
MOST_STALE = 1_000  # calls whose rows wait for their sums


class PrioritizedSampler:
    """Samples rows in proportion to their priorities. A batch costs the same, however large the memory is."""

    def __init__(self, memory: "AnyMemory", alpha: float = 0.4, floor: float = 1.0) -> None:
        self.memory, self.alpha, self.floor = memory, alpha, floor
        self.sums = BlockSums(memory.capacity)
        self.priority = self.sums.numbers  # (capacity,) float32; 0 where no transition can be sampled
        self.largest = np.float32(floor**alpha)  # what a new row gets
        self._stale: list[Indices] = []  # rows that changed since their sums were made

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        """Returns indices of transitions, each drawn with the probability priority / sum of all priorities."""
        self._add_up()
        indices = self.sums.find(rng.random(count))
        while not (valid := self.memory.can_sample(indices)).all():  # a stack that is partly overwritten by now
            if not valid.any() and not len(self.memory):
                raise RunError("The memory holds no transition that can be sampled.")
            indices[~valid] = self.sums.find(rng.random(count - np.count_nonzero(valid)))
        return indices

    def added(self, indices: Indices) -> None:
        """Gives new rows the largest priority, so that each is soon sampled; time steps that end no transition, 0."""
        self.priority[indices] = self.largest * self.memory.can_sample(indices)
        self._changed(indices)

    def updated(self, indices: Indices, update: Update) -> None:
        """Gives the rows of a batch the priorities of their errors; of a row that occurs twice, the last one holds."""
        errors = torch.maximum((update.q1 - update.target).abs(), (update.q2 - update.target).abs())
        priority = errors.clamp(min=self.floor).pow(self.alpha).float().cpu().numpy()
        priority = np.fmin(priority, LARGEST)
        self.priority[indices] = priority
        self.largest = max(self.largest, priority.max())
        self._changed(indices)

    def measure_largest(self) -> None:
        """Sets what new rows get to the largest priority in the memory, which may have fallen."""
        self.largest = self.priority[: self._stored].max()

    def capture(self) -> Arrays:
        """Returns the priorities; their sums follow from them."""
        return {"priority": self.priority[: self._stored], "largest": np.asarray(self.largest)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restores the state that `capture` returned, sums to the bit: they are always added in the same order."""
        priority, largest = arrays["priority"], arrays["largest"]
        for name, array, shape in (("priority", priority, (self._stored,)), ("largest", largest, ())):
            if array.dtype != np.float32 or array.shape != shape or not ((array >= 0) & (array <= LARGEST)).all():
                raise ValueError(f"{name} of the sampler is no float32 of {shape} between 0 and {LARGEST:g}")
        self.priority[: self._stored], self.largest = priority, np.float32(largest)
        self._stale = []
        self.sums.add_up_all()

    @property
    def _stored(self) -> int:
        return min(self.memory.written, self.memory.capacity)

    def _changed(self, indices: Indices) -> None:
        self._stale.append(indices)
        if len(self._stale) >= MOST_STALE:
            self._add_up()

    def _add_up(self) -> None:
        if self._stale:
            self.sums.add_up(np.concatenate(self._stale))
            self._stale = []


class BlockSums:
    """Float32 numbers, the sums of each block of them, the sums of those, and so on, to find a number by a share.

    A sum is never corrected by a difference: it is added up again from its block in float64, always in the same order.
    So it cannot drift, and depends on the numbers alone.
    """

    def __init__(self, count: int) -> None:
        self.levels: list[NDArray[Any]] = [zeros(count, np.float32)]
        while len(self.levels[-1]) > TOP:
            self.levels.append(zeros(len(self.levels[-1]) // BLOCK, np.float64))
        self.numbers: NDArray[np.float32] = self.levels[0][:count]

    def add_up(self, indices: Indices) -> None:
        """Adds up the blocks of these numbers again, and the blocks of those sums."""
        for level, sums in pairwise(self.levels):
            indices = indices >> SHIFT
            sums[indices] = running_sums(level.reshape(-1, BLOCK).take(indices, axis=0))[:, -1]

    def add_up_all(self) -> None:
        """Adds up every block."""
        for level, sums in pairwise(self.levels):
            blocks = level.reshape(-1, BLOCK)
            sums[: len(blocks)] = running_sums(blocks)[:, -1]

    def find(self, shares: NDArray[np.float64]) -> Indices:
        """Returns, for each share in [0, 1), the index where the running sum of all numbers passes it."""
        *levels, top = self.levels
        sums = running_sums(top)
        left = shares * sums[-1]
        index: Indices = np.minimum(sums.searchsorted(left, side="right"), len(top) - 1)
        left -= sums.take(index) - top.take(index)  # what is left of it inside this block
        first = np.arange(0, BLOCK * len(shares), BLOCK)
        for level in reversed(levels):
            block = level.reshape(-1, BLOCK).take(index, axis=0)
            sums = running_sums(block)
            passed = sums > left[:, None]
            passed[:, -1] = True  # whatever the last bit of a sum is
            inside = passed.argmax(axis=1)
            place = first + inside
            left -= sums.take(place) - block.take(place)
            index = (index << SHIFT) + inside
        return index


def running_sums(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the running sums along the last axis in float64: by PyTorch, in a tenth of NumPy's time."""
    sums: NDArray[np.float64] = torch.from_numpy(numbers).cumsum(-1, dtype=torch.float64).numpy()
    return sums


def zeros(count: int, dtype: Any) -> NDArray[Any]:
    """Returns zeros for at least `count` numbers, in whole blocks; they take no RAM until they are written."""
    return np.zeros(-(-count // BLOCK) * BLOCK, dtype)
