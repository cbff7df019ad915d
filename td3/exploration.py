"""Exploration noise: what is added to the actor's actions while it collects."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.types import Bools, Float32s


class GaussianNoise:
    """Independent normal numbers with standard deviation `scale`. Stateless."""

    def __init__(self, num_envs: int, action_size: int) -> None:
        self.shape = (num_envs, action_size)

    def sample(self, rng: np.random.Generator, scale: float, first: Bools) -> Float32s:  # noqa: ARG002
        """Returns (num_envs, action_size) numbers; `first` says where an episode begins."""
        noise: Float32s = scale * rng.standard_normal(self.shape, dtype=np.float32)
        return noise

    def capture(self) -> dict[str, NDArray[Any]]:
        """Returns its state as arrays, by name: it has none."""
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restores the state that `capture` returned."""
