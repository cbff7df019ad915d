"""The ring: one array per field, written at a moving head; when full, the oldest goes first."""

import numpy as np
import torch
from numpy.typing import NDArray

from td3.types import Batch, Transitions


class Memory:
    """Up to `capacity` transitions, float32 throughout, `terminated` one byte.

    Pages of the arrays are taken from the system only when they are first written, so a short run with
    a large capacity stays small.
    """

    def __init__(self, capacity: int, observation_size: int, action_size: int) -> None:
        self.capacity = capacity
        self.columns = Transitions(
            observation=np.empty((capacity, observation_size), np.float32),
            action=np.empty((capacity, action_size), np.float32),
            reward=np.empty(capacity, np.float32),
            next_observation=np.empty((capacity, observation_size), np.float32),
            terminated=np.empty(capacity, np.bool_),
        )
        self.written = 0  # rows ever written: row number n lies at n modulo the capacity

    def __len__(self) -> int:
        """Rows written and not yet overwritten."""
        return min(self.written, self.capacity)

    def add(self, rows: Transitions) -> None:
        count = len(rows.reward)
        head = self.written % self.capacity
        fits = head + count <= self.capacity  # a slice is the faster way to write, when nothing wraps
        places = slice(head, head + count) if fits else (head + np.arange(count)) % self.capacity
        for column, values in zip(self.columns, rows, strict=True):
            assert values.shape == (count, *column.shape[1:]), (values.shape, column.shape)
            column[places] = values
        self.written += count

    @property
    def oldest(self) -> int:
        """The number of the oldest row still held."""
        return self.written - len(self)

    def rows(self, first: int, end: int) -> Transitions:
        """Copies of the rows numbered from `first` to before `end`, in the order they were written."""
        places = np.arange(first, end) % self.capacity
        return Transitions._make(column[places] for column in self.columns)

    def gather(self, rows: NDArray[np.int64]) -> Batch:
        """Copies of these rows; whoever draws the row numbers owns the randomness."""
        columns = (column.take(rows, axis=0).astype(np.float32, copy=False) for column in self.columns)
        return Batch(*map(torch.from_numpy, columns))


def bytes_per_transition(observation_size: int, action_size: int) -> int:
    """What one remembered row costs; for HalfCheetah 165, about half of what float64 or a second copy needs."""
    one = Memory(1, observation_size, action_size)
    return sum(column.nbytes for column in one.columns)
