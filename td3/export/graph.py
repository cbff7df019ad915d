"""A policy as a list of operations with their arrays: what every format is written from."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """One array that a policy takes: a Box, or the category or categories of a Discrete or MultiDiscrete."""

    name: str  # an identifier in every language
    path: tuple[str | int, ...]  # the keys and indices that lead to it in an observation
    kind: str  # "vector", "category" or "image"
    shape: Shape  # of one time step, as the environment returns it
    stack: int  # time steps that the policy looks at, the oldest first
    dtype: str  # as the environment returns it
    low: Array | None = None  # where all bounds are finite
    high: Array | None = None
    categories: tuple[tuple[int, int], ...] = ()  # (first, count) of each entry
    planes: Shape = ()  # of an image: (frames, channels, height, width)
    strides: Shape = ()  # of those four, in entries of one time step

    @property
    def size(self) -> int:
        """Returns how many entries one time step has."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Returns how many numbers one time step gives to the networks."""
        return sum(count for _, count in self.categories) if self.categories else self.size

    @property
    def stacked_shape(self) -> Shape:
        """Returns the shape with all time steps, as `agent.act` takes it."""
        return (self.stack, *self.shape) if self.stack > 1 else self.shape


@dataclass(frozen=True)
class Op:
    """One operation of a graph: it makes one value of earlier ones."""

    takes: tuple[int, ...]  # the numbers of the values: operation n of a graph makes value n
    shape: Shape  # of the value for one observation


@dataclass(frozen=True)
class ReadNumbers(Op):
    """Joins inputs to (history, numbers of a time step); a category becomes a one-hot vector."""

    inputs: tuple[Input, ...]


@dataclass(frozen=True)
class ReadImage(Op):
    """Makes (stack · channels, height, width) of an image's bytes: byte / 255 − 0.5."""

    input: Input


@dataclass(frozen=True)
class Normalise(Op):
    """Computes (x − mean) · scale for each number of a time step, clipped to ± `clip`."""

    mean: Doubles
    scale: Doubles
    clip: float


@dataclass(frozen=True)
class Join(Op):
    """Joins values one after the other, each flattened."""


@dataclass(frozen=True)
class Linear(Op):
    """Computes weight · x + bias, with a weight of (outputs, inputs)."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


@dataclass(frozen=True)
class Convolution(Op):
    """Convolves with a weight of (outputs, inputs, height, width); the border is padded with zeros."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    stride: int
    padding: int


@dataclass(frozen=True)
class LayerNorm(Op):
    """Normalises a vector by its own mean and variance, then computes x · weight + bias."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    epsilon: float


@dataclass(frozen=True)
class Relu(Op):
    """Computes max(x, 0)."""


@dataclass(frozen=True)
class Tanh(Op):
    """Computes tanh(x)."""


@dataclass(frozen=True)
class Unscale(Op):
    """Maps [−1, 1] to the environment's units: centre + half · x[source], kept within low and high.

    A dimension with low == high has a half of 0: the agent does not decide it.
    """

    source: NDArray[np.int64]
    centre: Doubles
    half: Doubles
    low: Doubles
    high: Doubles
    dtype: str  # "float32" or "float64", of what is returned


@dataclass(frozen=True)
class Graph:
    """A whole policy: its inputs, its operations in order, and what to know of it; the last one makes the action."""

    name: str  # an identifier, from the name of the file
    inputs: tuple[Input, ...]
    ops: tuple[Op, ...]
    about: Mapping[str, Any]  # plain data: where it comes from, names, shapes and bounds

    @property
    def used_inputs(self) -> tuple[Input, ...]:
        """Returns the inputs that hold anything; a Box of shape (0,) does not."""
        return tuple(one for one in self.inputs if one.size)

    @property
    def action(self) -> Unscale:
        """Returns the last operation, which makes the action."""
        last = self.ops[-1]
        assert isinstance(last, Unscale)
        return last

    @property
    def numbers(self) -> int:
        """Counts the numbers that a file has to hold."""
        return sum(array.size for op in self.ops for array in arrays_of(op))


def arrays_of(op: Op) -> Iterator[Array]:
    """Yields the arrays of an operation."""
    yield from (value for value in vars(op).values() if isinstance(value, np.ndarray))
