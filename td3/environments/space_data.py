"""Spaces as plain data, for a run's files: written by `space_to_data`, checked and made again by `space_from_data`."""

import math
from typing import Annotated, Any

import msgspec
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.environments.observations import KINDS, LARGEST, SMALLEST, ObservationMap, added_kinds
from td3.errors import ConfigError, SpaceError
from td3.wording import brief

_DTYPES = {np.dtype(code).name: np.dtype(code) for code in "?bhilqBHILQefdg"}
_Length = Annotated[int, msgspec.Meta(ge=0)]
_Count = Annotated[int, msgspec.Meta(ge=1)]


def observation_to_data(observation: ObservationMap) -> dict[str, Any]:
    """Returns the observation space as plain data, with the kinds of its leaves that are not td3's own."""
    added = sorted({leaf.kind for leaf in observation.leaves} & set(added_kinds()))
    data = space_to_data(observation.space)
    return {**data, "kinds": added} if added else data


def check_kinds(spaces: Any) -> None:
    """Refuses a run's spaces if the observation has leaves of a kind that is not known here."""
    observation = spaces.get("observation") if isinstance(spaces, dict) else None
    needed = observation.get("kinds") if isinstance(observation, dict) else None
    for kind in needed if isinstance(needed, list) else []:
        if not isinstance(kind, str) or kind not in KINDS:
            raise ConfigError(
                f"td3.environments.observations.KINDS must have the kind {brief(kind)}, which the run's observations "
                "need: add it, or import the module that adds it, first."
            )


def space_to_data(space: Space[Any]) -> dict[str, Any]:
    """Returns plain data for a run's files; bounds are kept where they are finite."""
    if isinstance(space, spaces.Dict):
        return {"type": "Dict", "spaces": [[key, space_to_data(inner)] for key, inner in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"type": "Tuple", "spaces": [space_to_data(inner) for inner in space.spaces]}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(space.start, space.nvec.shape)
        return {"type": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "shape": list(space.shape)}
    if not isinstance(space, spaces.Box):
        raise SpaceError(f"A {type(space).__name__} cannot be written to a run's files: {space}.")
    bounds = {}
    if np.isfinite(space.low).all() and np.isfinite(space.high).all():
        bounds = {"low": _bound_to_data(space.low), "high": _bound_to_data(space.high)}
    return {"type": "Box", "shape": list(space.shape), "dtype": np.dtype(space.dtype).name, **bounds}


def _bound_to_data(bound: NDArray[Any]) -> Any:
    """One number where all are alike: an image has tens of thousands."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()


def space_from_data(data: Any) -> Space[Any]:
    """Makes the space that data describes: one of these six types, of numbers alone, and no larger than can be read."""
    try:
        description: Any = msgspec.convert(data, _Described)
        if description.size() > LARGEST:
            raise ValueError(f"it has {description.size():,} numbers, and at most {LARGEST:,} can be read")
        return description.make()  # type: ignore[no-any-return]
    except (AssertionError, ArithmeticError, KeyError, RecursionError, TypeError, ValueError) as problem:
        raise SpaceError(f"No space is described: {type(problem).__name__}: {problem}.") from None


class _Box(msgspec.Struct, tag="Box"):
    shape: list[_Length]
    dtype: str
    low: Any = None
    high: Any = None

    def size(self) -> int:
        """Returns how many numbers a value has."""
        return max(SMALLEST, math.prod(self.shape))

    def make(self) -> Any:
        """Makes the space."""
        shape, dtype = tuple(self.shape), _DTYPES[self.dtype]
        low: Any = -np.inf
        high: Any = np.inf
        if self.low is not None:
            low, high = (_numbers(side, "fiub", shape, dtype) for side in (self.low, self.high))
        elif dtype.kind != "f":
            low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return spaces.Box(low, high, shape, dtype.type)


class _Discrete(msgspec.Struct, tag="Discrete"):
    n: _Count
    start: int

    def size(self) -> int:
        """Returns the number of categories."""
        return max(SMALLEST, self.n)

    def make(self) -> Any:
        """Makes the space."""
        return spaces.Discrete(self.n, start=self.start)


class _MultiDiscrete(msgspec.Struct, tag="MultiDiscrete"):
    nvec: Any
    start: Any

    def size(self) -> int:
        """Returns the number of categories of all entries."""
        return int(np.maximum(SMALLEST, _numbers(self.nvec, "i")).sum(dtype=np.float64))

    def make(self) -> Any:
        """Makes the space."""
        return spaces.MultiDiscrete(_numbers(self.nvec, "i"), start=_numbers(self.start, "i"))


class _MultiBinary(msgspec.Struct, tag="MultiBinary"):
    shape: list[_Length]

    def size(self) -> int:
        """Returns how many numbers a value has."""
        return max(SMALLEST, math.prod(self.shape))

    def make(self) -> Any:
        """Makes the space."""
        return spaces.MultiBinary(self.shape)


class _Dict(msgspec.Struct, tag="Dict"):
    spaces: list[tuple[str | int, "_Described"]]  # pairs keep their order

    def size(self) -> int:
        """Returns how many numbers all inner spaces have."""
        return sum(inner.size() for _, inner in self.spaces)

    def make(self) -> Any:
        """Makes the space."""
        return spaces.Dict([(key, inner.make()) for key, inner in self.spaces])  # type: ignore[misc]


class _Tuple(msgspec.Struct, tag="Tuple"):
    spaces: list["_Described"]

    def size(self) -> int:
        """Returns how many numbers all inner spaces have."""
        return sum(inner.size() for inner in self.spaces)

    def make(self) -> Any:
        """Makes the space."""
        return spaces.Tuple([inner.make() for inner in self.spaces])


_Described = _Box | _Discrete | _MultiDiscrete | _MultiBinary | _Dict | _Tuple


def _numbers(value: Any, kinds: str, shape: tuple[int, ...] = (), dtype: Any = None) -> NDArray[Any]:
    """A number or nested lists of them, but no text that looks like one; with a dtype, as that and in this shape."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in kinds:
        raise ValueError(f"numbers are needed; these are {numbers.dtype}")
    if dtype is None:
        return numbers
    with np.errstate(over="ignore"):  # too large for it is infinite
        return np.full(shape, value, dtype)
