"""Joins the last observations of numbers into one: for environments with delays and hidden velocities."""

from collections import deque
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from td3.environments.faults import BadValue, as_array
from td3.environments.observations import kind_of
from td3.errors import ConfigError

Path = tuple[Any, ...]  # the keys and indices that lead to a part of an observation


class Joined(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Stacks every part of the observation that is not an image over the last time steps; leaves images as they are.

    Stacks stand in front, the oldest value first. An episode's first value stands for those there were not yet.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], history: int, frame_stack: int = 1) -> None:
        super().__init__(env)
        self.history, self._frame_stack = history, frame_stack
        self._held: dict[Path, deque[NDArray[Any]]] = {}
        self._numbers: dict[Path, tuple[str, Space[Any]]] = {}  # name and space of each part that is stacked
        self.single_space = env.observation_space  # of one time step
        self.observation_space = self._space(env.observation_space, "observation", ())
        if not self._numbers:
            raise ConfigError(
                f"history must be 1 here: the observation {env.observation_space} has only images, which frame_stack "
                f"stacks; got {history}."
            )

    def reset(self, **how: Any) -> Any:
        """Resets, and returns the first observation as if it had been there all along."""
        observation, info = self.env.reset(**how)
        self._held.clear()
        return self._joined(observation), info

    def step(self, action: Any) -> Any:
        """Steps, and returns the observation joined with those before it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._joined(observation), reward, terminated, truncated, info

    def _space(self, space: Space[Any], name: str, path: Path) -> Space[Any]:
        kind = kind_of(name, space, self._frame_stack)
        if kind is None and isinstance(space, spaces.Dict):
            return spaces.Dict(
                [(key, self._space(inner, f"{name}[{key!r}]", (*path, key))) for key, inner in space.spaces.items()]
            )
        if kind is None and isinstance(space, spaces.Tuple):
            return spaces.Tuple(
                [self._space(inner, f"{name}[{index}]", (*path, index)) for index, inner in enumerate(space.spaces)]
            )
        if kind.stored_dtype == "uint8" if kind else not isinstance(space, spaces.MultiDiscrete):
            return space  # an image, or what is refused elsewhere
        self._numbers[path] = name, space
        return batch_space(space, self.history)

    def _joined(self, value: Any, path: Path = ()) -> Any:
        """Returns the same observation with its numbers stacked, wherever they are nested."""
        if path in self._numbers:
            return self._stacked(path, value)
        if isinstance(value, dict):
            return {key: self._joined(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, tuple):
            return tuple(self._joined(inner, (*path, index)) for index, inner in enumerate(value))
        return value

    def _stacked(self, path: Path, value: Any) -> NDArray[Any]:
        name, space = self._numbers[path]
        now = as_array(name, value).copy()  # an environment may write the next one into the same array
        if now.shape != space.shape:
            raise BadValue(f"{name} has shape {now.shape}, not {space.shape}")
        values = self._held.setdefault(path, deque([now] * self.history, maxlen=self.history))
        values.append(now)
        return np.stack(values)
