"""Spaces made plain: any observation becomes one row of numbers or bytes, any action one vector in [−1, 1]."""

import math
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.config import SMALLEST_IMAGE
from td3.environments.faults import BadValue, as_array
from td3.errors import SpaceError
from td3.types import Bytes, Float32s, Layout, Picture, Rows
from td3.wording import counted

WIDEST_HALF_RANGE = 1e6  # wider is no bound anybody meant: exploring it would be noise and nothing else


LARGEST = 2**24  # numbers or bytes of one observation: a memory of larger ones fits nowhere
SMALLEST = 2**8  # as many numbers does a part count at least: it is an object of its own
_DTYPES = {np.dtype(code).name: np.dtype(code) for code in "?bhilqBHILQefdg"}
_Length = Annotated[int, msgspec.Meta(ge=0)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
LARGEST_SQUARE = float(np.finfo(np.float32).max) ** 2


def all_finite(numbers: NDArray[Any]) -> bool:
    """Whether every one is a number; the sum of squares nearly always tells, in a third of the time."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())


class ActionMap:
    """Between [−1, 1] and the environment's own units, per dimension.

    Dimensions with low == high are no choice: the agent never sees them, the environment always gets them.
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
        return self._low.reshape(self.shape), self._high.reshape(self.shape)

    def to_env(self, actions: Float32s) -> NDArray[Any]:
        """(n, size) in [−1, 1] → (n, *shape) in the environment's units and dtype, never out of bounds."""
        whole = self._centre + self._half * np.asarray(actions, np.float64)
        if self.constants:
            free, whole = whole, np.tile(self._low, (len(actions), 1))
            whole[:, self._free] = free
        inside = np.minimum(np.maximum(whole, self._low), self._high).astype(self.dtype)
        return inside.reshape(-1, *self.shape)


def _action_bounds(space: Space[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if not isinstance(space, spaces.Box):
        raise SpaceError(
            f"TD3 needs actions that are a Box of real numbers; this environment has {space} ({type(space).__name__})."
        )
    if space.dtype is None or not np.issubdtype(space.dtype, np.floating):
        raise SpaceError(f"TD3 needs real-valued actions; this environment's Box holds {space.dtype}: {space}.")
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    if low.size == 0:
        raise SpaceError(f"The action space {space} is empty: there is nothing to decide.")
    advice = "wrap it in gymnasium.wrappers.RescaleAction or declare real bounds."
    for wrong, what in (
        (~(np.isfinite(low) & np.isfinite(high)), "has no finite bounds"),
        (low > high, "has its bounds the wrong way round"),
        (high / 2 - low / 2 > WIDEST_HALF_RANGE, f"is wider than {2 * WIDEST_HALF_RANGE:,.0f}"),
    ):
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise SpaceError(
                f"Action dimension {list(where)} {what}: [{low[where]:g}, {high[where]:g}]. "
                f"TD3 explores the whole range, so {advice}"
            )
    return low, high


class ObservationMap:
    """Any observation → one row as its `layout` says, its parts one after the other; checks shape, type and finiteness.

    `frame_stack` is how many frames every image comes with, stacked in front of its own dimensions.
    """

    def __init__(self, space: Space[Any], frame_stack: int = 1) -> None:
        self.space = space
        self.parts: list[Part] = list(_parts(space, "observation", lambda whole: whole, frame_stack))
        self._images = [part for part in self.parts if part.picture]
        self._vectors = [part for part in self.parts if not part.picture]
        self.layout = Layout(
            sum(part.size for part in self._vectors),
            tuple(part.picture for part in self._images if part.picture),
            frame_stack if self._images else 1,
        )
        self.size = self.layout.size
        if self.size == 0:
            raise SpaceError(f"The observation space {space} is empty: there is nothing to see.")
        if sum(max(SMALLEST, part.size) for part in self.parts) > LARGEST:
            raise SpaceError(
                f"The observation has {self.size:,} numbers in {len(self.parts):,} parts: at most {LARGEST:,} can be "
                f"read, and a part counts as {SMALLEST} at least."
            )

    def flatten(self, observations: Any, rows: int) -> Rows:
        """A batch as vector environments hand it over: a leading dimension of `rows` in every part."""
        return self._flattened(observations, rows)

    def flatten_one(self, observation: Any) -> Rows:
        """One observation as `Env.step` returns it → (size,)."""
        row: Rows = self._flattened(observation, None)[0]
        return row

    def _flattened(self, observation: Any, rows: int | None) -> Rows:
        pieces = [part.flatten(observation, rows) for part in self._vectors]
        if not self._images:
            return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        frames = np.concatenate([part.frames(observation, rows) for part in self._images], axis=2)
        vectors = np.concatenate([np.empty((len(frames), 0), np.float32), *pieces], axis=1)
        return self.layout.joined(frames, vectors)

    def rows(self, observation: Any) -> tuple[Rows, bool]:
        """One observation or a batch of them → (n, size), and whether it was a batch."""
        part = self.parts[0]
        first = part.found(observation)
        if first.ndim == len(part.shape) + 1:  # one more dimension in front than the space says
            return self.flatten(observation, len(first)), True
        return self.flatten_one(observation)[None], False


class Part:
    """One leaf of an observation space: where it is found, and how it becomes a stretch of the row."""

    def __init__(
        self,
        name: str,
        take: Callable[[Any], Any],
        space: Space[Any],
        categories: int | None = None,
        start: int = 0,
        frame_stack: int = 1,
    ) -> None:
        self.name, self.take, self.space = name, take, space
        self.shape = space.shape or ()
        self.dtype = np.dtype(space.dtype)
        self.categories, self.start = categories, start  # of a Discrete; None for arrays
        self.size = categories if categories is not None else int(np.prod(self.shape))
        self.stack = frame_stack
        self.picture: Picture | None = None
        if is_image(space, frame_stack):
            # What the environment itself has stacked counts as channels.
            self._inner = self.shape[1:] if frame_stack > 1 else self.shape
            self._order, (frames, height, width, channels) = arrangement(self._inner)
            self.picture = Picture(name, frames * channels, height, width)

    def frames(self, observation: Any, rows: int | None) -> Bytes:
        """(n, stack, bytes of one frame), channel by channel."""
        value = self._checked(observation, rows)
        assert self.picture is not None
        inner = value.reshape(1 if rows is None else rows, self.stack, *self._inner)
        return inner.transpose(0, 1, *(2 + axis for axis in self._order)).reshape(*inner.shape[:2], self.picture.size)

    def _checked(self, observation: Any, rows: int | None) -> NDArray[Any]:
        value = self.found(observation)
        expected = self.shape if rows is None else (rows, *self.shape)
        if value.shape != expected:
            raise BadValue(f"{self.name} has shape {value.shape}, not {expected}")
        if value.dtype != self.dtype and (self.picture or not np.can_cast(value.dtype, self.dtype, "same_kind")):
            raise BadValue(f"{self.name} has dtype {value.dtype}, not {self.dtype}")
        return value

    def flatten(self, observation: Any, rows: int | None) -> Float32s:
        """(n, size); `rows` is None for a single observation."""
        value = self._checked(observation, rows)
        if self.categories is not None:
            return self._one_hot(value.reshape(-1))
        shape = (1 if rows is None else rows, self.size)
        if float(np.vdot(value, value)) < LARGEST_SQUARE:  # nearly always; not where a number is none or too large
            return value.astype(np.float32).reshape(shape)
        with np.errstate(over="ignore"):  # too large for float32 is told below
            flat = value.astype(np.float32).reshape(shape)
        if not np.isfinite(flat).all():
            row, index = (int(i) for i in np.argwhere(~np.isfinite(flat))[0])
            raise BadValue(f"{self.name} holds {flat[row, index]} at index {index}")
        return flat

    def found(self, observation: Any) -> NDArray[Any]:
        value = as_array(self.name, observation, self.take)
        if value.dtype == object:
            raise BadValue(f"{self.name} is no array of numbers ({type(self.take(observation)).__name__})")
        return value

    def _one_hot(self, value: NDArray[Any]) -> Float32s:
        assert self.categories is not None
        index = value.astype(np.int64) - self.start
        outside = (index < 0) | (index >= self.categories)
        if outside.any():
            last = self.start + self.categories - 1
            raise BadValue(f"{self.name} is {value[outside][0]}, not from {self.start} to {last}")
        rows = np.zeros((len(index), self.categories), np.float32)
        rows[np.arange(len(index)), index] = 1
        return rows


def is_image(space: Space[Any], frame_stack: int = 1) -> bool:
    """Bytes from 0 to 255 with a height and a width: (H, W), (H, W, C) or (C, H, W), or frames of those in front.

    With a `frame_stack`, whether it was one before so many were stacked.
    """
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    if (space.low > 0).any() or (space.high < 255).any():  # marks or categories: no brightness
        return False
    shape = space.shape
    if frame_stack > 1:
        if not shape or shape[0] != frame_stack:
            return False
        shape = shape[1:]
    return len(shape) in (2, 3, 4) and min(arrangement(shape)[1][1:3]) >= SMALLEST_IMAGE


def arrangement(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, int, int, int]]:
    """The order of an image's axes that puts height and width last, and (frames, height, width, channels).

    The channels are the first or the last of three axes, whichever is shorter; the last, where they are alike.
    """
    if len(shape) == 2:
        return (0, 1), (1, *shape, 1)
    if len(shape) == 3:
        if shape[0] < shape[2]:
            return (0, 1, 2), (1, *shape[1:], shape[0])
        return (2, 0, 1), (1, *shape)
    order, (_, height, width, channels) = arrangement(shape[1:])
    return (0, *(1 + axis for axis in order)), (shape[0], height, width, channels)


def _parts(space: Space[Any], name: str, take: Callable[[Any], Any], frame_stack: int) -> Iterator[Part]:
    """The leaves of a space, in its own order; a MultiDiscrete is one Discrete per entry."""
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            if not isinstance(key, str | int):
                raise SpaceError(f"{name} has the key {key!r}; TD3 reads Dicts whose keys are text or whole numbers.")
            yield from _parts(inner, f"{name}[{key!r}]", _then(take, itemgetter(key)), frame_stack)
    elif isinstance(space, spaces.Tuple):
        for place, inner in enumerate(space.spaces):
            yield from _parts(inner, f"{name}[{place}]", _then(take, itemgetter(place)), frame_stack)
    elif isinstance(space, spaces.Discrete):
        yield Part(name, take, space, int(space.n), int(space.start))
    elif isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape)
        for where in np.ndindex(space.nvec.shape):
            entry = spaces.Discrete(int(space.nvec[where]), start=int(starts[where]))
            pick = _then(_then(take, np.asarray), itemgetter((..., *where)))
            yield Part(f"{name}{list(where)}", pick, entry, int(entry.n), int(entry.start))
    elif isinstance(space, spaces.Box | spaces.MultiBinary) and _is_numeric(space):
        stack = frame_stack if is_image(space, frame_stack) else 1
        yield Part(name, take, space, frame_stack=stack)
    else:
        raise SpaceError(
            f"{name} is a {type(space).__name__}, which TD3 cannot read: {space}. "
            "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of those are allowed."
        )


def _is_numeric(space: Space[Any]) -> bool:
    return space.dtype is not None and np.dtype(space.dtype).kind in "fiub"


def _then(first: Callable[[Any], Any], second: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda whole: second(first(whole))


def describe_bounds(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """'[-2, 2]' where all dimensions agree, else one pair per dimension."""
    pairs = [f"[{a:g}, {b:g}]" for a, b in zip(low.reshape(-1), high.reshape(-1), strict=True)]
    if len(set(pairs)) == 1:
        return pairs[0]
    return " ".join(pairs[:8]) + (f" … {len(pairs)} in all" if len(pairs) > 8 else "")


def describe_layout(layout: Layout) -> str:
    """What an agent sees, in a few words: '17 observations', '3 frames of 84×84×3 and 5 numbers'."""
    if not layout.pictures:
        return counted(layout.numbers, "observation")
    sizes = [f"{one.height}×{one.width}×{one.channels}" for one in layout.pictures]
    frames = f"{layout.stack} frames" if layout.stack > 1 else "an image"
    told = [f"{frames} of {' and '.join(sizes)}", counted(layout.numbers, "number") if layout.numbers else ""]
    return " and ".join(filter(None, told))


def oddities(observation: ObservationMap, action: ActionMap) -> list[str]:
    """What a user may not have meant, one sentence each."""
    notes: list[str] = []
    for part in observation.parts:
        if part.picture is None and len(part.shape) == 3 and part.size >= 3 * SMALLEST_IMAGE**2:
            notes += [
                f"{part.name} {part.shape} {part.dtype} is read as {part.size} numbers in a row: an image is uint8."
            ]
        if part.picture and len(part.shape) == 4 and observation.layout.stack == 1:
            notes += [
                f"{part.name} {part.shape} seems to be {part.shape[0]} frames that the environment stacks itself: with "
                f"single frames and frame_stack {part.shape[0]}, each would be remembered once."
            ]
    if observation.layout.numbers > 10_000:
        notes.append(f"The observation is {observation.layout.numbers:,} numbers long: the memory will be large.")
    if action.constants:
        notes.append(f"{action.constants} action dimensions have low == high: they are constants, not choices.")
    if (np.diff(np.stack(action.bounds), axis=0) < 1e-3).any() and not action.constants:
        notes.append("Some action range is narrower than 0.001: are the bounds in the unit you meant?")
    return notes


def space_to_data(space: Space[Any]) -> dict[str, Any]:
    """Plain data for a run's `spaces.json`; bounds are kept where they matter, for actions."""
    kind = type(space).__name__
    if isinstance(space, spaces.Dict):
        return {"type": kind, "spaces": [[key, space_to_data(inner)] for key, inner in space.spaces.items()]}
    if isinstance(space, spaces.Tuple):
        return {"type": kind, "spaces": [space_to_data(inner) for inner in space.spaces]}
    if isinstance(space, spaces.Discrete):
        return {"type": kind, "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(space.start, space.nvec.shape)
        return {"type": kind, "nvec": space.nvec.tolist(), "start": start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"type": kind, "shape": list(space.shape)}
    assert isinstance(space, spaces.Box)
    bounds = {}
    if np.isfinite(space.low).all() and np.isfinite(space.high).all():
        bounds = {"low": _bound_to_data(space.low), "high": _bound_to_data(space.high)}
    return {"type": kind, "shape": list(space.shape), "dtype": np.dtype(space.dtype).name, **bounds}


def _bound_to_data(bound: NDArray[Any]) -> Any:
    """One number where all are alike: an image has tens of thousands."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()


def space_from_data(data: Any) -> Space[Any]:
    """Makes the space that data describes: one of these six kinds, of numbers alone, and no larger than can be read."""
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
        return max(SMALLEST, math.prod(self.shape))

    def make(self) -> Any:
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
        return max(SMALLEST, self.n)

    def make(self) -> Any:
        return spaces.Discrete(self.n, start=self.start)


class _MultiDiscrete(msgspec.Struct, tag="MultiDiscrete"):
    nvec: Any
    start: Any

    def size(self) -> int:
        return int(np.maximum(SMALLEST, _numbers(self.nvec, "i")).sum(dtype=np.float64))

    def make(self) -> Any:
        return spaces.MultiDiscrete(_numbers(self.nvec, "i"), start=_numbers(self.start, "i"))


class _MultiBinary(msgspec.Struct, tag="MultiBinary"):
    shape: list[_Length]

    def size(self) -> int:
        return max(SMALLEST, math.prod(self.shape))

    def make(self) -> Any:
        return spaces.MultiBinary(self.shape)


class _Dict(msgspec.Struct, tag="Dict"):
    spaces: list[tuple[str | int, "_Described"]]  # pairs keep their order

    def size(self) -> int:
        return sum(inner.size() for _, inner in self.spaces)

    def make(self) -> Any:
        return spaces.Dict([(key, inner.make()) for key, inner in self.spaces])  # type: ignore[misc]


class _Tuple(msgspec.Struct, tag="Tuple"):
    spaces: list["_Described"]

    def size(self) -> int:
        return sum(inner.size() for inner in self.spaces)

    def make(self) -> Any:
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
