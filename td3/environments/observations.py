"""Maps observations to rows, as `Layout` describes them.

Every leaf of an observation space has a kind, and `KINDS` has a class for each: how the leaf is recognised, checked and
converted to what is stored. To add a kind of your own, add a subclass of `Leaf` here and, under the same name, what the
networks make of it to `td3.learner.encoders.ENCODERS`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space
from numpy.typing import NDArray

from td3.config import SMALLEST_IMAGE
from td3.environments.faults import BadValue, as_array
from td3.environments.images import arrangement, is_image
from td3.errors import SpaceError
from td3.types import Layout, Part, Rows

LARGEST = 2**24  # numbers or bytes of one observation: a memory of larger ones fits nowhere
SMALLEST = 2**8  # a leaf counts as so many numbers at least: it is an object of its own
LARGEST_SQUARE = float(np.finfo(np.float32).max) ** 2

Take = Callable[[Any], Any]  # a whole observation → the value of one leaf


class ObservationMap:
    """Maps observations to rows, leaf by leaf, and checks shape, dtype and finiteness.

    `frame_stack` is how many frames every image comes with, stacked in front of its own dimensions, which the space
    has too. `history` is how many values all other leaves come with, in front as well; the space is that of one value.
    """

    def __init__(self, space: Space[Any], frame_stack: int = 1, history: int = 1) -> None:
        self.space = space
        self.leaves: list[Leaf] = list(_leaves(space, "observation", _itself, frame_stack, history))
        self._frames = [leaf for leaf in self.leaves if leaf.part.dtype == "uint8"]
        self._numbers = [leaf for leaf in self.leaves if leaf.part.dtype == "float32"]
        parts = (leaf.part for leaf in self.leaves)
        self.layout = Layout(parts, frame_stack if self._frames else 1, history if self._numbers else 1)
        self.size = self.layout.size
        if self.size == 0:
            raise SpaceError(f"The observation space {space} is empty: there is nothing to observe.")
        if sum(max(SMALLEST, leaf.stack * leaf.part.size) for leaf in self.leaves) > LARGEST:
            raise SpaceError(
                f"The observation has {self.size:,} numbers in {len(self.leaves):,} parts: at most {LARGEST:,} can be "
                f"read, and a part counts as {SMALLEST} at least."
            )

    def flatten(self, observations: Any, count: int) -> Rows:
        """Maps a batch as vector environments return it, with a leading dimension of `count` in every leaf."""
        return self._flatten(observations, count)

    def flatten_one(self, observation: Any) -> Rows:
        """Maps one observation as `Env.step` returns it to a row, (size,)."""
        row: Rows = self._flatten(observation, None)[0]
        return row

    def _flatten(self, observation: Any, count: int | None) -> Rows:
        numbers = [leaf.flatten(observation, count) for leaf in self._numbers]
        if self.layout.history > 1:  # of one time step after the other
            numbers = [np.concatenate(numbers, axis=2).reshape(len(numbers[0]), -1)]
        if not self._frames:
            return numbers[0] if len(numbers) == 1 else np.concatenate(numbers, axis=1)
        frames = np.concatenate([leaf.flatten(observation, count) for leaf in self._frames], axis=2)
        vectors = np.concatenate([np.empty((len(frames), 0), np.float32), *numbers], axis=1)
        return self.layout.joined(frames, vectors)

    def rows(self, observation: Any) -> tuple[Rows, bool]:
        """Maps one observation or a batch of them to rows, (n, size); returns them, and whether it was a batch."""
        leaf = self.leaves[0]
        value = leaf.value(observation)
        if value.ndim == len(leaf.expected) + 1:  # one more dimension in front than an observation has
            return self.flatten(observation, len(value)), True
        return self.flatten_one(observation)[None], False


class Leaf(ABC):
    """One leaf of an observation space: takes its value out of an observation, checks it and converts it.

    A subclass for a kind of its own says which spaces it `accepts`, in what shape a value is stored (`stored_shape`;
    dtype float32 or, for stacks of frames, uint8), and how to `convert` values to that.
    """

    kind: ClassVar[str]
    stored_dtype: ClassVar[str] = "float32"

    def __init__(self, name: str, take: Take, space: Space[Any], frame_stack: int = 1, history: int = 1) -> None:
        self.name, self.take, self.space = name, take, space
        self.shape, self.dtype = space.shape or (), np.dtype(space.dtype)
        self.stack = frame_stack if self.stored_dtype == "uint8" else history
        self.history = 1 if self.stored_dtype == "uint8" else history
        self.expected = self.shape if self.history == 1 else (history, *self.shape)  # of a value in an observation
        self.part = Part(name, self.kind, self.stored_shape(), self.stored_dtype)
        self.size = self.part.size  # of a row or, where frames are stored, of a frame

    @classmethod
    @abstractmethod
    def accepts(cls, name: str, space: Space[Any], frame_stack: int) -> bool:
        """Returns whether this space, found under this name in the observation, is of this kind."""

    def stored_shape(self) -> tuple[int, ...]:
        """Returns the shape in which one value, or one frame of it, is stored."""
        return (int(np.prod(self.shape)),)

    @abstractmethod
    def convert(self, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Converts `count` checked values to (count, size); where frames are stored, to (count, stack, size)."""

    def oddities(self) -> list[str]:
        """Returns what a user may not have meant, one sentence each."""
        return []

    def flatten(self, observation: Any, count: int | None) -> NDArray[Any]:
        """Takes the leaf out of an observation, or of a batch of `count`, checks it and converts it."""
        value = self.value(observation)
        expected = self.expected if count is None else (count, *self.expected)
        if value.shape != expected:
            raise BadValue(f"{self.name} has shape {value.shape}, not {expected}")
        if value.dtype != self.dtype and not self.is_dtype(value.dtype):
            raise BadValue(f"{self.name} has dtype {value.dtype}, not {self.dtype}")
        many = 1 if count is None else count
        if self.history == 1:
            return self.convert(value, many)
        values = value.reshape(many * self.history, *self.shape)
        return self.convert(values, many * self.history).reshape(many, self.history, self.size)

    def value(self, observation: Any) -> NDArray[Any]:
        """Returns the leaf's value in an observation, as an array."""
        value = as_array(self.name, observation, self.take)
        if value.dtype == object:
            raise BadValue(f"{self.name} is no array of numbers ({type(self.take(observation)).__name__})")
        return value

    def is_dtype(self, dtype: np.dtype[Any]) -> bool:
        """Returns whether a value of another dtype than the space's can be taken for one of this."""
        return np.can_cast(dtype, self.dtype, "same_kind")


class VectorLeaf(Leaf):
    """Numbers in any shape: stored as float32, one after the other."""

    kind = "vector"

    @classmethod
    def accepts(cls, name: str, space: Space[Any], frame_stack: int) -> bool:  # noqa: ARG003
        """Returns whether the space is a Box or MultiBinary of real numbers."""
        if not isinstance(space, spaces.Box | spaces.MultiBinary):
            return False
        return space.dtype is not None and np.dtype(space.dtype).kind in "fiub"

    def convert(self, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Converts values to float32, (count, size); refuses what is not finite."""
        shape = (count, self.size)
        if float(np.vdot(values, values)) < LARGEST_SQUARE:  # nearly always; not if a number is not finite or too large
            return values.astype(np.float32).reshape(shape)
        with np.errstate(over="ignore"):  # too large for float32 is refused below
            flat = values.astype(np.float32).reshape(shape)
        if not np.isfinite(flat).all():
            row, index = (int(i) for i in np.argwhere(~np.isfinite(flat))[0])
            raise BadValue(f"{self.name} holds {flat[row, index]} at index {index}")
        return flat

    def oddities(self) -> list[str]:
        """Returns a note if the numbers look like an image that is not uint8."""
        if len(self.shape) != 3 or self.size < 3 * SMALLEST_IMAGE**2:
            return []
        size = self.size
        return [f"{self.name} {self.shape} {self.dtype} is read as {size} numbers in a row: an image is uint8."]


class CategoryLeaf(Leaf):
    """One of n categories: stored as n float32 numbers, 1 for the category and 0 for the others."""

    kind = "category"

    @classmethod
    def accepts(cls, name: str, space: Space[Any], frame_stack: int) -> bool:  # noqa: ARG003
        """Returns whether the space is Discrete."""
        return isinstance(space, spaces.Discrete)

    def stored_shape(self) -> tuple[int, ...]:
        """Returns the number of categories."""
        space: Any = self.space
        self.start = int(space.start)
        return (int(space.n),)

    def convert(self, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Converts values to one-hot rows, (count, categories); refuses what is outside of the space."""
        values = values.reshape(-1)
        index, categories = values.astype(np.int64) - self.start, self.size
        outside = (index < 0) | (index >= categories)
        if outside.any():
            last = self.start + categories - 1
            raise BadValue(f"{self.name} is {values[outside][0]}, not from {self.start} to {last}")
        rows = np.zeros((count, categories), np.float32)
        rows[np.arange(count), index] = 1
        return rows


class ImageLeaf(Leaf):
    """An image, or a stack of frames of one: stored as bytes, channel by channel.

    What the environment itself has stacked counts as channels.
    """

    kind, stored_dtype = "image", "uint8"

    @classmethod
    def accepts(cls, name: str, space: Space[Any], frame_stack: int) -> bool:  # noqa: ARG003
        """Returns whether the space is an image, or a stack of them."""
        return is_image(space, frame_stack)

    def stored_shape(self) -> tuple[int, ...]:
        """Returns (channels, height, width) of one stored frame."""
        self._inner = self.shape[1:] if self.stack > 1 else self.shape
        self._order, (frames, height, width, channels) = arrangement(self._inner)
        return frames * channels, height, width

    def convert(self, values: NDArray[Any], count: int) -> NDArray[Any]:
        """Converts frames to (count, stack, size), channels first."""
        inner = values.reshape(count, self.stack, *self._inner)
        axes = (0, 1, *(2 + axis for axis in self._order))
        return inner.transpose(axes).reshape(count, self.stack, self.size)

    def is_dtype(self, dtype: np.dtype[Any]) -> bool:  # noqa: ARG002
        """Returns False: an image is uint8 and nothing else."""
        return False

    def oddities(self) -> list[str]:
        """Returns a note if the environment seems to stack frames itself."""
        if len(self.shape) != 4 or self.stack > 1:
            return []
        return [
            f"{self.name} {self.shape} seems to be {self.shape[0]} frames that the environment stacks itself: with "
            f"single frames and frame_stack {self.shape[0]}, each would be remembered once."
        ]


# By kind; of several that accept a space, the last counts.
KINDS: dict[str, type[Leaf]] = {"vector": VectorLeaf, "category": CategoryLeaf, "image": ImageLeaf}
OWN = frozenset(KINDS)


def added_kinds() -> dict[str, type[Leaf]]:
    """Returns the kinds that are not td3's own."""
    return {kind: leaf for kind, leaf in KINDS.items() if kind not in OWN}


def kind_of(name: str, space: Space[Any], frame_stack: int) -> type[Leaf] | None:
    """Returns the kind that accepts this space as a leaf, or None."""
    return next((kind for kind in reversed(KINDS.values()) if kind.accepts(name, space, frame_stack)), None)


def _leaves(space: Space[Any], name: str, take: Take, frame_stack: int, history: int) -> Iterator[Leaf]:
    """Yields the leaves of a space, in its own order; a MultiDiscrete is one Discrete per entry."""
    if kind := kind_of(name, space, frame_stack):
        yield kind(name, take, space, frame_stack, history)
    elif isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            if not isinstance(key, str | int):
                raise SpaceError(f"{name} has the key {key!r}; TD3 reads Dicts whose keys are text or whole numbers.")
            yield from _leaves(inner, f"{name}[{key!r}]", _then(take, itemgetter(key)), frame_stack, history)
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _leaves(inner, f"{name}[{index}]", _then(take, itemgetter(index)), frame_stack, history)
    elif isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(space.start, space.nvec.shape)
        for where in np.ndindex(space.nvec.shape):
            entry = spaces.Discrete(int(space.nvec[where]), start=int(starts[where]))
            pick = _then(_then(take, np.asarray), itemgetter((..., *where)))
            yield from _leaves(entry, f"{name}{list(where)}", pick, frame_stack, history)
    else:
        raise SpaceError(
            f"{name} is a {type(space).__name__}, which TD3 cannot read: {space}. "
            "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of those are allowed."
        )


def _then(first: Take, second: Take) -> Take:
    return partial(_both, first, second)  # not a lambda: maps are sent to other processes


def _both(first: Take, second: Take, whole: Any) -> Any:
    return second(first(whole))


def _itself(whole: Any) -> Any:
    return whole
