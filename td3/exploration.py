"""Exploration noise: what is added to the actor's actions while it collects."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.types import Bools, Float32s


class GaussianNoise:
    """Independent normal numbers with standard deviation `scale`. It keeps nothing."""

    def __init__(self, num_envs: int, action_size: int) -> None:
        self.shape = (num_envs, action_size)

    def sample(self, rng: np.random.Generator, scale: float, first: Bools) -> Float32s:  # noqa: ARG002 - no memory
        noise: Float32s = scale * rng.standard_normal(self.shape, dtype=np.float32)
        return noise

    def capture(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...
