"""The ring of vectors: one array per field, written at a moving head; when full, the oldest goes first."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from td3.replay.links import Links, look_ahead
from td3.types import Batch, Layout, Transitions


class Memory:
    """Up to `capacity` transitions, float32 throughout, `terminated` one byte.

    Pages of the arrays are taken from the system only when they are first written, so a short run with
    a large capacity stays small.
    """

    def __init__(self, capacity: int, layout: Layout, action_size: int, n_step: int = 1, gamma: float = 0.99) -> None:
        self.capacity, self.n_step, self.gamma = capacity, n_step, gamma
        self.columns: dict[str, NDArray[Any]] = {
            "observation": np.empty((capacity, layout.size), np.float32),
            "action": np.empty((capacity, action_size), np.float32),
            "reward": np.empty(capacity, np.float32),
            "next_observation": np.empty((capacity, layout.size), np.float32),
            "terminated": np.empty(capacity, np.bool_),
        }
        self.links: Links | None = None
        if n_step > 1:  # who looks further than one step must know where the way goes on
            self.columns["env"] = np.empty(capacity, np.int32)
            self.columns["first"] = np.empty(capacity, np.bool_)
            self.links = Links(capacity)
        self.written = 0  # rows ever written: row number n lies at n modulo the capacity

    def __len__(self) -> int:
        """Rows written and not yet overwritten."""
        return min(self.written, self.capacity)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values()) + (self.links.nbytes if self.links else 0)

    def add(self, rows: Transitions) -> None:
        self.load({name: getattr(rows, name) for name in self.columns})

    def load(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """The same, by the names of the columns; `rows` below tells them so."""
        first, rows = newest(rows, self.written, self.capacity)
        write(self.columns, rows, first, self.capacity)
        if self.links:
            self.links.add(first, rows["env"], rows["first"])
        self.written = first + len(rows["reward"])

    def break_links(self) -> None:
        """Rows between the last one and the next are missing: no look ahead crosses that gap."""
        if self.links:
            self.links.break_off()

    @property
    def oldest(self) -> int:
        """The number of the oldest row still held."""
        return self.written - len(self)

    def rows(self, first: int, end: int) -> dict[str, NDArray[Any]]:
        """Copies of the rows numbered from `first` to before `end`, in the order they were written."""
        indices = np.arange(first, end) % self.capacity
        return {name: column[indices] for name, column in self.columns.items()}

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Places of transitions, uniformly and with replacement."""
        return rng.integers(len(self), size=count)

    def batch(self, indices: NDArray[np.int64]) -> Batch:
        """Copies of these transitions, each with what n steps led to."""
        columns = self.columns
        ahead = look_ahead(indices, self.links, columns["reward"], self.n_step, self.gamma)
        found = (
            columns["observation"].take(indices, axis=0),
            columns["action"].take(indices, axis=0),
            ahead.reward,
            columns["next_observation"].take(ahead.last, axis=0),
            columns["terminated"].take(ahead.last).astype(np.float32),
            ahead.discount,
        )
        return Batch(*map(torch.from_numpy, found))


def newest(rows: Mapping[str, NDArray[Any]], first: int, capacity: int) -> tuple[int, Mapping[str, NDArray[Any]]]:
    """Rows numbered from `first` on, without those that would be overwritten by the last of them."""
    surplus = max(0, len(rows["reward"]) - capacity)
    return first + surplus, {name: column[surplus:] for name, column in rows.items()} if surplus else rows


def write(columns: Mapping[str, NDArray[Any]], rows: Mapping[str, NDArray[Any]], first: int, capacity: int) -> None:
    """Rows into a ring, from row number `first` on."""
    head, count = first % capacity, len(rows["reward"])
    fits = head + count <= capacity  # a slice is the faster way to write, when nothing wraps
    indices = slice(head, head + count) if fits else (head + np.arange(count)) % capacity
    for name, column in columns.items():
        assert rows[name].shape == (count, *column.shape[1:]), (name, rows[name].shape, column.shape)
        column[indices] = rows[name]
