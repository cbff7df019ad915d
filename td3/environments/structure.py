"""The arrays of an observation, wherever Dicts and Tuples nest them; and an observation made of its arrays."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.environments.observations import Leaf, ObservationMap, kind_of

Path = tuple[str | int, ...]  # the keys and indices that lead to an array


class ObservedArray(NamedTuple):
    """One array of an observation; a MultiDiscrete is one, though it has a leaf for each of its entries."""

    path: Path
    leaves: tuple[Leaf, ...]
    shape: tuple[int, ...]
    dtype: str
    low: NDArray[Any] | None  # where all bounds are finite
    high: NDArray[Any] | None


def arrays_in(observation: ObservationMap) -> list[ObservedArray]:
    """Lists the arrays, in the order of the leaves."""
    leaves = iter(observation.leaves)
    return list(_arrays(observation.space, (), "observation", observation.layout.stack, leaves))


def _arrays(
    space: Space[Any], path: Path, name: str, frame_stack: int, leaves: Iterator[Leaf]
) -> Iterator[ObservedArray]:
    """Walks a space as its map does."""
    nested = kind_of(name, space, frame_stack) is None  # not a leaf by itself
    if nested and isinstance(space, spaces.Dict | spaces.Tuple):
        for key, inner in _inside(space):
            yield from _arrays(inner, (*path, key), f"{name}[{key!r}]", frame_stack, leaves)
        return
    count = space.nvec.size if nested and isinstance(space, spaces.MultiDiscrete) else 1
    own = tuple(next(leaves) for _ in range(count))
    low = high = None
    if isinstance(space, spaces.Box) and np.isfinite(space.low).all() and np.isfinite(space.high).all():
        low, high = space.low, space.high
    yield ObservedArray(path, own, tuple(space.shape or ()), np.dtype(space.dtype).name, low, high)


def assemble(observation: ObservationMap, arrays: Mapping[Path, Any]) -> Any:
    """Puts arrays together as the space nests them: the inverse of `arrays_in`, for one observation or a batch."""

    def at(space: Space[Any], path: Path) -> Any:
        """Returns what is at this path."""
        if path in arrays:
            return arrays[path]
        assert isinstance(space, spaces.Dict | spaces.Tuple)
        parts = {key: at(inner, (*path, key)) for key, inner in _inside(space)}
        return parts if isinstance(space, spaces.Dict) else tuple(parts.values())

    return at(observation.space, ())


def _inside(space: Any) -> list[tuple[Any, Space[Any]]]:
    return list(space.spaces.items()) if isinstance(space, spaces.Dict) else list(enumerate(space.spaces))
