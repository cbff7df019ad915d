"""Observations to try an exported policy on: remembered ones as arrays, or sampled ones where none are left."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.export.graph import Graph, Input, Normalise
from td3.replay import AnyMemory
from td3.types import Layout, Rows

Arrays = dict[str, NDArray[Any]]  # by the names of the inputs, each (n, *stacked_shape)

WIDEST = 1e4  # a bound further out is no value that an environment returns


def remembered_rows(memory: AnyMemory | None, count: int, rng: np.random.Generator) -> Rows | None:
    """Returns at most so many different observations of a memory; None where it has none."""
    if memory is None:
        return None
    stored = np.arange(min(memory.written, memory.capacity))
    indices = stored[memory.can_sample(stored)]
    if not len(indices):
        return None
    chosen = rng.choice(indices, min(count, len(indices)), replace=False)
    rows: Rows = memory.batch(np.sort(chosen)).observation.numpy()
    return rows


def arrays_of_rows(rows: Rows, layout: Layout, inputs: tuple[Input, ...]) -> Arrays:
    """Returns stored observations as the environment returned them, input by input."""
    count = len(rows)
    frames = layout.frames(rows) if layout.frame else np.empty((count, 1, 0), np.uint8)
    numbers = layout.vectors(rows).reshape(count, layout.history, layout.step_numbers)
    arrays, byte, number = {}, 0, 0
    for one in inputs:
        if one.kind == "image":
            arrays[one.name] = _images(one, frames[:, :, byte : byte + one.size])
            byte += one.size
        else:
            own = numbers[:, :, number : number + one.width]
            values = _categories(one, own) if one.categories else own.astype(one.dtype)
            arrays[one.name] = values.reshape(count, *one.stacked_shape)
            number += one.width
    return arrays


def _images(one: Input, frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Puts stored planes, (n, stack, size), back where the environment has them."""
    index: Any = 0
    for own, (count, stride) in enumerate(zip(one.planes, one.strides, strict=True)):
        index = index + np.arange(count).reshape([-1 if axis == own else 1 for axis in range(4)]) * stride
    images = np.empty_like(frames)
    images[:, :, index.reshape(-1)] = frames
    return images.reshape(len(frames), *one.stacked_shape)


def _categories(one: Input, hot: NDArray[np.float32]) -> NDArray[Any]:
    """Returns the category of each one-hot vector, (n, time steps, entries)."""
    ends = np.cumsum([count for _, count in one.categories])
    entries = [
        first + hot[:, :, end - count : end].argmax(axis=2)
        for end, (first, count) in zip(ends, one.categories, strict=True)
    ]
    return np.stack(entries, axis=2).astype(np.int64)


def sampled_arrays(graph: Graph, count: int, rng: np.random.Generator) -> Arrays:
    """Samples observations: by the statistics of training if there are any, within narrow bounds, or normal."""
    normalise = next((op for op in graph.ops if isinstance(op, Normalise)), None)
    arrays, number = {}, 0
    for one in graph.inputs:
        shape = (count, *one.stacked_shape)
        own = slice(number, number + one.width)
        number += 0 if one.kind == "image" else one.width
        if one.kind == "image":
            arrays[one.name] = rng.integers(0, 256, shape, np.uint8)
        elif one.categories:
            entries = [rng.integers(first, first + n, (count, one.stack)) for first, n in one.categories]
            arrays[one.name] = np.stack(entries, axis=2).reshape(shape)
        else:
            arrays[one.name] = _vectors(one, normalise, own, count, rng).reshape(shape).astype(one.dtype)
    return arrays


def _vectors(
    one: Input, normalise: Normalise | None, own: slice, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Samples (count, time steps, numbers)."""
    shape = (count, one.stack, one.size)
    if one.low is None or one.high is None or not one.size:
        low, high = np.full(one.size, -np.inf), np.full(one.size, np.inf)
    else:
        low, high = (bound.reshape(-1).astype(np.float64) for bound in (one.low, one.high))
    drawn = rng.standard_normal(shape)
    if normalise is not None:
        drawn = normalise.mean[own] + drawn / normalise.scale[own]
    elif one.size and max(-low.min(), high.max()) <= WIDEST:
        drawn = rng.uniform(low, high, shape)
    return np.clip(np.round(drawn) if one.dtype[0] in "iub" else drawn, low, high)
