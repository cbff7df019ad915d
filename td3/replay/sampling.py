"""Samples the rows of a batch uniformly; `td3.interfaces.Sampler` says what a sampler of your own may do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from td3.interfaces import Arrays, Indices
from td3.types import Update

if TYPE_CHECKING:
    from td3.replay import AnyMemory


class UniformSampler:
    """Every transition is equally likely, and one may come twice. Stateless."""

    def __init__(self, memory: "AnyMemory") -> None:
        self.memory = memory

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        return self.memory.sample(rng, count)

    def added(self, indices: Indices) -> None: ...
    def updated(self, indices: Indices, update: Update) -> None: ...

    def capture(self) -> Arrays:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...
