"""What a run asks of the parts that may be your own: noise, a sampler, a collector. See docs/extending.md."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from td3.config import Config, name_of
from td3.environments import ActionMap, ObservationMap
from td3.errors import ConfigError
from td3.types import Bools, Float32s, Policy, Transitions, Update
from td3.wording import brief

Indices = NDArray[np.int64]  # rows of the memory: 0 ≤ index < capacity
Arrays = dict[str, NDArray[Any]]


class Noise(Protocol):
    """Noise for `num_envs` environments. Everything it keeps is saved with each checkpoint."""

    def sample(self, rng: np.random.Generator, scale: float, first: Bools) -> Float32s:
        """Returns (num_envs, action_size) floats; `scale` is `exploration_noise`, `first` where an episode begins."""

    def capture(self) -> Arrays:
        """Returns its state as arrays, by name; nothing if it has none."""

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restores the state that `capture` returned."""


MakeNoise = Callable[[int, int], Noise]  # (num_envs, action_size)


class Sampler(Protocol):
    """Chooses rows of one memory. Everything it keeps is saved with each checkpoint, so that a run resumes exactly."""

    def sample(self, rng: np.random.Generator, count: int) -> Indices:
        """Returns `count` indices that `memory.can_sample` allows; all randomness comes from `rng`."""

    def added(self, indices: Indices) -> None:
        """Is called after rows are written, in place of the oldest where the memory is full."""

    def updated(self, indices: Indices, update: Update) -> None:
        """Is called after an update, which has the errors of the rows of its batch."""

    def capture(self) -> Arrays:
        """Returns its state as arrays, by name; nothing if it has none."""

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restores the state that `capture` returned, once the memory is loaded."""


MakeSampler = Callable[[Any], Sampler]  # (memory)


class EndedEpisode(NamedTuple):
    """An episode that ended while training."""

    env: int  # the index of its environment
    episode_return: float
    length: int
    terminated: bool | None = None  # or truncated; None where a collector does not say


class Collected(NamedTuple):
    """What one action in each environment brought: transitions, the episodes that ended, and what failed."""

    transitions: Transitions
    episodes: Sequence[tuple[Any, ...]]  # those that ended, each an `EndedEpisode` or (env, return, length)
    failures: Sequence[tuple[int, str]] = ()  # of environments that were made anew: number in the run, and a sentence


class AnyCollector(Protocol):
    """What training asks of a collector, in this process or elsewhere."""

    observation_map: ObservationMap
    action_map: ActionMap
    num_envs: int
    steps: int  # transitions collected so far

    def start(self) -> None:
        """Begins the first episodes."""

    def configure(self, config: Config) -> None:
        """Applies changed settings from the next action on."""

    def collect(self, policy: Policy) -> Collected:
        """Steps every environment once."""

    def begin_anew(self) -> None:
        """Begins every episode again: what came before is lost."""

    @property
    def most_bytes(self) -> int:
        """An upper bound for the bytes of `capture`'s arrays."""

    def capture(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns plain data and arrays: enough to continue as if never stopped."""

    def restore(self, data: dict[str, Any], arrays: dict[str, Any], seeds: list[int]) -> list[str]:
        """Restores what `capture` returned; names the episodes that could not be, and begin from `seeds` instead."""

    def local_envs(self) -> list[Any]:
        """Returns the Gymnasium environments that live in this process."""

    def close(self) -> None:
        """Closes the environments."""


MakeCollector = Callable[[Config, MakeNoise], AnyCollector]


def captured(part: Noise | Sampler) -> Arrays:
    """Returns copies of a part's state as a checkpoint can hold it; a single number becomes an array of shape ()."""
    state: Any = part.capture()
    arrays = {name: np.array(value, order="C") for name, value in state.items()} if isinstance(state, Mapping) else None
    if arrays is None or not all(isinstance(name, str) and arrays[name].dtype.kind in "fiub" for name in arrays):
        raise ConfigError(f"{name_of(type(part))} must capture arrays of numbers by name; got {brief(state)}.")
    return arrays
