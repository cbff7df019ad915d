"""Measures of networks and actions: Euclidean lengths, distances, histograms."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from td3.types import Float32s

BINS = 20  # bars from −1 to 1


def distances(these: Sequence[Tensor], those: Sequence[Tensor], count: int) -> list[float]:
    """Measures how far apart two networks are in all their numbers; for `count` pairs of them that lie side by side."""
    return lengths((this - that for this, that in zip(these, those, strict=True)), count)


def lengths(tensors: Iterable[Tensor], count: int) -> list[float]:
    """Measures the Euclidean length of all these numbers, for each of `count` networks that lie side by side.

    Networks that do not, such as critics of your own, are measured together, and all get that length.
    """
    tensors = list(tensors)
    together = any(tensor.dim() == 0 or len(tensor) != count for tensor in tensors)
    parts = [
        torch.linalg.vector_norm(tensor.reshape(1 if together else count, -1), dim=1, dtype=torch.float64)
        for tensor in tensors
    ]
    each: list[float] = torch.linalg.vector_norm(torch.stack(parts), dim=0).tolist() if parts else [0.0]
    return each if len(each) == count else each * count


def histogram(actions: Float32s) -> list[list[int]]:
    """Counts, in each dimension, the actions in each of `BINS` equal parts from −1 to 1; NaN is in none."""
    dimensions = actions.shape[1]
    position = np.clip((actions + 1) * (BINS / 2), 0, BINS - 1)
    bar = np.nan_to_num(position).astype(np.int64) + BINS * np.arange(dimensions)
    counts = np.bincount(bar.ravel(), np.isfinite(position).ravel(), BINS * dimensions)
    bars: list[list[int]] = counts.astype(np.int64).reshape(dimensions, BINS).tolist()
    return bars
