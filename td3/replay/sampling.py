"""Samples the rows of a batch uniformly; `td3.interfaces.Sampler` says what a sampler of your own may do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from td3.config import name_of
from td3.errors import ConfigError
from td3.interfaces import Arrays, Indices, Sampler
from td3.types import Update
from td3.wording import brief

if TYPE_CHECKING:
    from td3.replay import AnyMemory


class UniformSampler:
    """Samples every transition with the same probability, with replacement. Stateless."""

    def __init__(self, memory: "AnyMemory") -> None:
        self.memory = memory

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        """Returns indices of transitions."""
        return self.memory.sample(rng, count)

    def added(self, indices: Indices) -> None:
        """Is called after rows are written."""

    def updated(self, indices: Indices, update: Update) -> None:
        """Is called after an update of these rows."""

    def capture(self) -> Arrays:
        """Returns its state as arrays, by name: it has none."""
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restores the state that `capture` returned."""


def check_indices(indices: Any, sampler: Sampler, memory: "AnyMemory", count: int) -> None:
    """Refuses what a sampler of the user's own returned, unless it is the indices of `count` transitions."""
    name = name_of(type(sampler))
    if not isinstance(indices, np.ndarray) or indices.dtype != np.int64 or indices.shape != (count,):
        got = f"{indices.dtype} of {indices.shape}" if isinstance(indices, np.ndarray) else brief(indices)
        raise ConfigError(f"sampler {name!r} must return an int64 array of ({count},); got {got}.")
    inside = (indices >= 0) & (indices < memory.capacity)
    held = inside & memory.can_sample(np.where(inside, indices, 0))
    if not held.all():
        wrong = int(indices[~held][0])
        raise ConfigError(f"sampler {name!r} must return indices of transitions in the memory; got {wrong:,}.")
