"""What is remembered raw, made ready to be read: numbers normalised, images shifted by rng."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from td3.errors import RunError
from td3.types import Batch, Layout, Rows, Transitions

WIDEST = 10.0  # standard deviations: what lies further out is read as this
SMALLEST_VARIANCE = 1e-8


class Normalizer:
    """The running mean and variance of every number that was observed while training.

    The same statistics serve memory, actor, critics and targets, as they are when they are used. Nobody but training
    adds to them: an evaluation leaves them as they are.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.count = np.zeros(())
        self.mean, self.squares = np.zeros((2, layout.numbers))  # the sum of squares is around the mean

    def add(self, rows: Transitions) -> None:
        """What was looked at before each action."""
        seen = self.layout.vectors(rows.observation).astype(np.float64)
        if not len(seen):
            return
        count = self.count + len(seen)
        mean = seen.mean(axis=0)
        apart = mean - self.mean
        self.squares += ((seen - mean) ** 2).sum(axis=0) + apart**2 * self.count * len(seen) / count
        self.mean += apart * len(seen) / count
        self.count = count

    def __call__(self, rows: Rows) -> Rows:
        """The same rows with their numbers normalised."""
        variance = self.squares / self.count if self.count > 1 else np.ones_like(self.squares)
        apart = (self.layout.vectors(rows) - self.mean) / np.sqrt(variance + SMALLEST_VARIANCE)
        normal = np.clip(apart, -WIDEST, WIDEST).astype(np.float32)
        return self.layout.joined(self.layout.frames(rows), normal) if self.layout.pictures else normal

    def tensors(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(np.array(getattr(self, name))) for name in ("count", "mean", "squares")}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        for name, now in self.tensors().items():
            found = tensors.get(name)
            if found is None or found.shape != now.shape or found.dtype != now.dtype:
                raise RunError(f"The networks' file does not fit the run's config: normalizer.{name}.")
            setattr(self, name, found.numpy().copy())


def preprocess(batch: Batch, layout: Layout, normalizer: Normalizer | None, shifts: NDArray[np.int64] | None) -> Batch:
    """A batch as the networks read it; `shifts` are those of s and of s'."""
    if normalizer is None and shifts is None:
        return batch
    seen = [batch.observation.numpy(), batch.next_observation.numpy()]
    if normalizer:
        seen = [normalizer(rows) for rows in seen]
    if shifts is not None and layout.pictures:
        seen = [shifted(rows, layout, each) for rows, each in zip(seen, shifts, strict=True)]
    observation, next_observation = map(torch.from_numpy, seen)
    return batch._replace(observation=observation, next_observation=next_observation)


def shifted(rows: Rows, layout: Layout, shifts: NDArray[np.int64]) -> Rows:
    """Each row's images moved by its (down, right) pixels; what moves in repeats the edge."""
    frames, most = layout.frames(rows), int(np.abs(shifts).max())
    moved = np.empty_like(frames)
    start = 0
    for picture in layout.pictures:
        part = slice(start, start + picture.size)
        images = frames[..., part].reshape(len(rows), -1, picture.height, picture.width)
        wide = np.pad(images, ((0, 0), (0, 0), (most, most), (most, most)), mode="edge")
        for row, (down, right) in enumerate(most - shifts):
            cut = wide[row, :, down : down + picture.height, right : right + picture.width]
            moved[row, :, part] = cut.reshape(layout.stack, -1)
        start += picture.size
    return layout.joined(moved, layout.vectors(rows))
