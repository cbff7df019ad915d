"""The ring of transitions: one array per field; when it is full, the oldest rows are overwritten."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from td3.replay.links import Links, NStep, look_ahead
from td3.types import Batch, Layout, Transitions


class Memory:
    """Stores up to `capacity` transitions as float32, `terminated` as one byte.

    The system gives memory to the arrays only where they are written, so a short run with a large capacity stays small.
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
        if n_step > 1:  # n-step returns need to know which row is the next
            self.columns["env"] = np.empty(capacity, np.int32)
            self.columns["first"] = np.empty(capacity, np.bool_)
            self.links = Links(capacity)
        self.written = 0  # rows ever written: row number n lies at n modulo the capacity

    @staticmethod
    def smallest_capacity(layout: Layout, num_envs: int) -> int:  # noqa: ARG004
        """Returns 1: every row can be sampled."""
        return 1

    def __len__(self) -> int:
        """Returns the number of rows written and not yet overwritten."""
        return min(self.written, self.capacity)

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return sum(column.nbytes for column in self.columns.values()) + (self.links.nbytes if self.links else 0)

    def add(self, rows: Transitions) -> None:
        """Adds transitions."""
        self.load({name: getattr(rows, name) for name in self.columns})

    def load(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Adds rows by the names of the columns, as `rows` returns them."""
        first, rows = drop_overwritten(rows, self.written, self.capacity)
        write(self.columns, rows, first, self.capacity)
        if self.links:
            self.links.add(first, rows["env"], rows["first"])
        self.written = first + len(rows["reward"])

    def break_links(self) -> None:
        """Links what is added next to nothing before it: rows in between are missing."""
        if self.links:
            self.links.break_links()

    @property
    def oldest(self) -> int:
        """The number of the oldest row still stored."""
        return self.written - len(self)

    def rows(self, first: int, end: int) -> dict[str, NDArray[Any]]:
        """Returns copies of the rows numbered from `first` to before `end`, in the order they were written."""
        indices = np.arange(first, end) % self.capacity
        return {name: column[indices] for name, column in self.columns.items()}

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Samples indices of transitions, uniformly and with replacement."""
        return rng.integers(len(self), size=count)

    def can_sample(self, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of these indices hold a transition."""
        return indices < len(self)

    def batch(self, indices: NDArray[np.int64]) -> Batch:
        """Returns copies of these transitions, each with what n steps led to."""
        columns = self.columns
        if self.links:
            ahead = look_ahead(indices, self.links, columns["reward"], self.n_step, self.gamma)
        else:  # one step, which leads to the s' of the same row
            ahead = NStep(columns["reward"].take(indices), indices, np.full(len(indices), self.gamma, np.float32))
        arrays = (
            columns["observation"].take(indices, axis=0),
            columns["action"].take(indices, axis=0),
            ahead.reward,
            columns["next_observation"].take(ahead.last, axis=0),
            columns["terminated"].take(ahead.last).astype(np.float32),
            ahead.discount,
        )
        return Batch(*map(torch.from_numpy, arrays))


def drop_overwritten(
    rows: Mapping[str, NDArray[Any]], first: int, capacity: int
) -> tuple[int, Mapping[str, NDArray[Any]]]:
    """Drops those of the rows numbered from `first` on that the last of them would overwrite."""
    surplus = max(0, len(rows["reward"]) - capacity)
    return first + surplus, {name: column[surplus:] for name, column in rows.items()} if surplus else rows


def write(columns: Mapping[str, NDArray[Any]], rows: Mapping[str, NDArray[Any]], first: int, capacity: int) -> None:
    """Writes rows into a ring, from row number `first` on."""
    head, count = first % capacity, len(rows["reward"])
    fits = head + count <= capacity  # a slice is the faster way to write, when nothing wraps
    indices = slice(head, head + count) if fits else (head + np.arange(count)) % capacity
    for name, column in columns.items():
        assert rows[name].shape == (count, *column.shape[1:]), (name, rows[name].shape, column.shape)
        column[indices] = rows[name]
