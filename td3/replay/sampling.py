"""Samplers choose the rows of a batch: uniformly, or by a rule of your own that may keep state for every row."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from td3.types import Update

if TYPE_CHECKING:
    from td3.replay import AnyMemory

Indices = NDArray[np.int64]  # rows of the memory's ring, from 0 to its capacity
Arrays = dict[str, NDArray[Any]]


class Sampler(Protocol):
    """Chooses rows of one memory. Everything it keeps is saved with each checkpoint, so that a run resumes exactly."""

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        """Returns `count` rows that the memory holds; all randomness comes from `rng`."""

    def added(self, indices: Indices) -> None:
        """Takes note of rows that were just written, in place of the oldest where the ring is full."""

    def updated(self, indices: Indices, update: Update) -> None:
        """Takes note of what an update found out about the rows of its batch, such as their errors."""

    def capture(self) -> Arrays:
        """Returns its state as arrays, by name; nothing if it has none."""

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Becomes what was captured, once the memory is loaded."""


MakeSampler = Callable[["AnyMemory"], Sampler]


class UniformSampler:
    """Every transition is equally likely, and one may come twice. It keeps nothing."""

    def __init__(self, memory: "AnyMemory") -> None:
        self.memory = memory

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        return self.memory.sample(rng, count)

    def added(self, indices: Indices) -> None: ...
    def updated(self, indices: Indices, update: Update) -> None: ...

    def capture(self) -> Arrays:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...
