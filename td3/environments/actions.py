"""Maps actions in [−1, 1] to the environment's own units, and refuses action spaces that TD3 cannot explore."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.errors import SpaceError
from td3.types import Float32s

WIDEST_HALF_RANGE = 1e6  # wider is no bound anybody meant: exploring it would be noise and nothing else


class ActionMap:
    """Maps [−1, 1] to the environment's own units, per dimension.

    Dimensions with low == high are no choice: the agent does not decide them, and the environment always gets them.
    """

    def __init__(self, space: Space[Any]) -> None:
        low, high = _action_bounds(space)
        self.space = space
        self.shape, self.dtype = space.shape or (), space.dtype
        self._low, self._high = low.reshape(-1), high.reshape(-1)
        self._free = self._low < self._high
        self._centre = (self._low + (self._high - self._low) / 2)[self._free]
        self._half = ((self._high - self._low) / 2)[self._free]
        self.size = int(self._free.sum())
        self.constants = int((~self._free).sum())
        if self.size == 0:
            raise SpaceError(f"The action space {space} has low == high everywhere: there is nothing to learn.")

    @property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and the highest actions, in the environment's shape."""
        return self._low.reshape(self.shape), self._high.reshape(self.shape)

    def to_env(self, actions: Float32s) -> NDArray[Any]:
        """Maps (n, size) in [−1, 1] to (n, *shape) in the environment's units and dtype, never out of bounds."""
        whole = self._centre + self._half * np.asarray(actions, np.float64)
        if self.constants:
            free, whole = whole, np.tile(self._low, (len(actions), 1))
            whole[:, self._free] = free
        inside = np.minimum(np.maximum(whole, self._low), self._high).astype(self.dtype)
        return inside.reshape(-1, *self.shape)

    def from_env(self, actions: Any) -> Float32s:
        """Maps (n, *shape) in the environment's units to (n, size) in [−1, 1]; raises ValueError out of bounds."""
        whole = np.asarray(actions, np.float64)
        if whole.shape != (len(whole), *self.shape):
            raise ValueError(f"actions have the shape {whole.shape[1:]}, not {self.shape}")
        whole = whole.reshape(len(whole), -1)
        outside = ~((whole >= self._low) & (whole <= self._high))  # what is no number, too
        if outside.any():
            row, dimension = map(int, np.argwhere(outside)[0])
            low, high = self._low[dimension], self._high[dimension]
            value = whole[row, dimension]
            raise ValueError(f"row {row:,} has {value:g} in dimension {dimension}, not within [{low:g}, {high:g}]")
        return ((whole[:, self._free] - self._centre) / self._half).astype(np.float32)


def all_finite(numbers: NDArray[Any]) -> bool:
    """Returns whether all numbers are finite; the sum of squares nearly always shows it, in a third of the time."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


def no_box(space: Space[Any], advice: str) -> SpaceError:
    """Returns the refusal of an action space that is no Box, with what to do about it."""
    kind = type(space).__name__
    needs = f"TD3 needs actions that are a Box of real numbers; this environment has {space} ({kind})."
    return SpaceError(f"{needs} {advice}".strip())


def wrapping_advice(space: Space[Any]) -> str:
    """Says how an action space that is no Box is wrapped for TD3; '' where there is no usual way."""
    better = "; DQN and its variants suit such actions better"
    if isinstance(space, spaces.Discrete):
        how = f"a Box of {space.n} numbers, of which the largest decides"
    elif isinstance(space, spaces.MultiDiscrete):
        how = f"a Box of {space.nvec.size} numbers, each cut into as many equal parts as there are choices"
    elif isinstance(space, spaces.MultiBinary):
        how = f"a Box of {math.prod(space.shape)} numbers, each on above 0"
    elif isinstance(space, spaces.Dict | spaces.Tuple):
        parts = list(space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces)
        if all(isinstance(part, spaces.Box) for part in parts):
            how, better = "the one Box that gymnasium.spaces.flatten_space makes of it", ""
        else:
            how, better = "one Box that has a number for each choice and for each real number", ""
    else:
        return ""
    return f"Wrap it in gymnasium.wrappers.TransformAction with {how}: docs/environments.md has the lines{better}."


def _action_bounds(space: Space[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not isinstance(space, spaces.Box):
        raise no_box(space, wrapping_advice(space))
    if space.dtype is None or not np.issubdtype(space.dtype, np.floating):
        raise SpaceError(f"TD3 needs real-valued actions; this environment's Box holds {space.dtype}: {space}.")
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    if low.size == 0:
        raise SpaceError(f"The action space {space} is empty: there is nothing to decide.")
    advice = "declare the bounds that step() uses as the Box of the action space."
    for wrong, what in (
        (~(np.isfinite(low) & np.isfinite(high)), "has no finite bounds"),
        (low > high, "has its bounds the wrong way round"),
        (high / 2 - low / 2 > WIDEST_HALF_RANGE, f"is wider than {2 * WIDEST_HALF_RANGE:,.0f}"),
    ):
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise SpaceError(
                f"Action dimension {list(index)} {what}: [{low[index]:g}, {high[index]:g}]. "
                f"TD3 explores the whole range, so {advice}"
            )
    return low, high
