"""Performs a graph in NumPy, in float64: what a file's actions should be, by code that no writer shares."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from td3.export.graph import (
    Convolution,
    Doubles,
    Graph,
    Input,
    Join,
    LayerNorm,
    Linear,
    Normalise,
    Op,
    ReadImage,
    ReadNumbers,
    Relu,
    Tanh,
    Unscale,
)

Arrays = Mapping[str, NDArray[Any]]  # by the names of the inputs, each (n, *stacked_shape)


def perform(graph: Graph, arrays: Arrays) -> NDArray[Any]:
    """Returns the actions for n observations, (n, *shape)."""
    values: list[NDArray[Any]] = []
    for op in graph.ops:
        values.append(_perform(op, arrays, [values[number] for number in op.takes]))
    return values[-1]


def _perform(op: Op, arrays: Arrays, taken: list[Doubles]) -> NDArray[Any]:
    match op:
        case ReadNumbers():
            steps = [_numbers(one, arrays[one.name]) for one in op.inputs]
            return np.concatenate(steps, axis=2)
        case ReadImage():
            return _planes(op.input, arrays[op.input.name]) / 255 - 0.5
        case Normalise():
            return np.clip((taken[0] - op.mean) * op.scale, -op.clip, op.clip)
        case Join():
            return np.concatenate([value.reshape(len(value), -1) for value in taken], axis=1)
        case Linear():
            return taken[0].reshape(len(taken[0]), -1) @ op.weight.T.astype(np.float64) + op.bias
        case Convolution():
            return _convolved(op, taken[0])
        case LayerNorm():
            mean, variance = taken[0].mean(axis=1, keepdims=True), taken[0].var(axis=1, keepdims=True)
            normal: Doubles = (taken[0] - mean) / np.sqrt(variance + op.epsilon)
            return normal * op.weight + op.bias
        case Relu():
            return np.maximum(taken[0], 0)
        case Tanh():
            return np.tanh(taken[0])
        case Unscale():
            actions = op.centre + op.half * taken[0][:, op.source]
            return np.clip(actions, op.low, op.high).astype(op.dtype).reshape(-1, *op.shape)
    raise TypeError(type(op).__name__)


def _numbers(one: Input, values: NDArray[Any]) -> Doubles:
    """Returns (n, time steps, numbers); categories are one-hot."""
    steps = values.reshape(len(values), one.stack, -1)
    if not one.categories:
        return steps.astype(np.float64)
    hot = [
        steps[:, :, entry, None] == np.arange(first, first + count)
        for entry, (first, count) in enumerate(one.categories)
    ]
    return np.concatenate(hot, axis=2).astype(np.float64)


def _planes(one: Input, values: NDArray[Any]) -> Doubles:
    """Returns (n, stack · channels, height, width)."""
    height, width = one.planes[2:]
    flat = values.reshape(len(values), one.stack, -1)
    index: Any = 0
    for own, (count, stride) in enumerate(zip(one.planes, one.strides, strict=True)):
        index = index + np.arange(count).reshape([-1 if axis == own else 1 for axis in range(4)]) * stride
    return flat[:, :, index].reshape(len(values), -1, height, width).astype(np.float64)


def _convolved(op: Convolution, images: Doubles) -> Doubles:
    """Returns (n, outputs, height, width)."""
    edge, (high, wide) = op.padding, op.weight.shape[2:]
    padded = np.pad(images, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    windows = sliding_window_view(padded, (high, wide), axis=(2, 3))[:, :, :: op.stride, :: op.stride]
    summed: Doubles = np.einsum("ncyxij,ocij->noyx", windows, op.weight.astype(np.float64), optimize=True)
    return summed + op.bias[:, None, None]
