"""Prepares stored observations for the networks: normalises numbers, shifts images at random."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from td3.errors import RunError
from td3.types import Batch, Bytes, Layout, Part, Rows, Transitions

CLIP = 10.0  # standard deviations: what lies further out is clipped to this
SMALLEST_VARIANCE = 1e-8

Shifts = NDArray[np.int64]  # (n, 2) pixels down and right


class Preprocessing(NamedTuple):
    """What is done with a part of each batch, if the config asks for it."""

    normalised: bool = False  # by `normalize_observations`
    shift: Callable[[Part, Bytes, Shifts, Bytes], None] | None = None  # by `random_shift`, (n, stack, size) to the same


def preprocessing_of(part: Part) -> Preprocessing:
    """Looks up what is done with a part; those of a kind that is not listed are left as they are stored."""
    return PREPROCESSING.get(part.kind, Preprocessing())


def is_normalised(layout: Layout) -> bool:
    """Returns whether there is anything to normalise."""
    return any(part.size and preprocessing_of(part).normalised for part, _ in layout.number_parts)


def is_shifted(layout: Layout) -> bool:
    """Returns whether there is anything to shift."""
    return any(preprocessing_of(part).shift for part, _ in layout.frame_parts)


class Normalizer:
    """Normalises observations by the running mean and variance of all that were observed while training.

    The memory stores raw observations: the current statistics are applied when sampling and acting. Only training adds
    to them, an evaluation does not. They are of single observations: where several are joined (`history`), each adds to
    them once, when it is the newest, and all of them are normalised alike.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        spans = [span for part, span in layout.number_parts if preprocessing_of(part).normalised]
        size = sum(span.stop - span.start for span in spans)
        self._columns: Any = (
            slice(None) if size == layout.step_numbers else np.r_[(slice(0, 0), *spans)]
        )  # nearly always all of them
        self.count = np.zeros(())
        self.mean, self.squares = np.zeros((2, size))  # the sum of squares is around the mean

    def add(self, rows: Transitions) -> None:
        """Adds the observations before each action to the statistics."""
        numbers = self.layout.newest(rows.observation)[:, self._columns].astype(np.float64)
        if not len(numbers):
            return
        count = self.count + len(numbers)
        mean = numbers.mean(axis=0)
        delta = mean - self.mean
        self.squares += ((numbers - mean) ** 2).sum(axis=0) + delta**2 * self.count * len(numbers) / count
        self.mean += delta * len(numbers) / count
        self.count = count

    def __call__(self, rows: Rows) -> Rows:
        """Returns the same rows with their numbers normalised."""
        variance = self.squares / self.count if self.count > 1 else np.ones_like(self.squares)
        numbers = self.layout.vectors(rows).reshape(len(rows) * self.layout.history, self.layout.step_numbers)
        scaled = (numbers[:, self._columns] - self.mean) / np.sqrt(variance + SMALLEST_VARIANCE)
        normal = np.clip(scaled, -CLIP, CLIP).astype(np.float32)
        if len(self.mean) < self.layout.step_numbers:  # some are left as they are
            some, normal = normal, numbers.copy()
            normal[:, self._columns] = some
        normal = normal.reshape(len(rows), self.layout.numbers)
        return self.layout.joined(self.layout.frames(rows), normal) if self.layout.frame else normal

    def tensors(self) -> dict[str, Tensor]:
        """Returns the statistics by name, for a checkpoint."""
        return {name: torch.from_numpy(np.array(getattr(self, name))) for name in ("count", "mean", "squares")}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores the statistics that `tensors` returned."""
        for name, now in self.tensors().items():
            tensor = tensors.get(name)
            if tensor is None or tensor.shape != now.shape or tensor.dtype != now.dtype:
                raise RunError(f"The networks' file does not fit the run's config: normalizer.{name}.")
            setattr(self, name, tensor.numpy().copy())


def preprocess(batch: Batch, layout: Layout, normalizer: Normalizer | None, shifts: NDArray[np.int64] | None) -> Batch:
    """Returns a batch as the networks take it; `shifts` are those of s and of s'."""
    if normalizer is None and shifts is None:
        return batch
    both = [batch.observation.numpy(), batch.next_observation.numpy()]
    if normalizer:
        both = [normalizer(rows) for rows in both]
    if shifts is not None:
        both = [shifted(rows, layout, each) for rows, each in zip(both, shifts, strict=True)]
    observation, next_observation = map(torch.from_numpy, both)
    return batch._replace(observation=observation, next_observation=next_observation)


def shifted(rows: Rows, layout: Layout, shifts: Shifts) -> Rows:
    """Shifts each row's images by its (down, right) pixels."""
    frames = layout.frames(rows)
    moved = np.empty_like(frames)
    for part, span in layout.frame_parts:
        if shift := preprocessing_of(part).shift:
            shift(part, frames[..., span], shifts, moved[..., span])
        else:
            moved[..., span] = frames[..., span]
    return layout.joined(moved, layout.vectors(rows))


def shift_images(part: Part, frames: Bytes, shifts: Shifts, moved: Bytes) -> None:
    """Shifts all frames of an image into `moved`; edges are padded by replication."""
    _, height, width = part.shape
    most = int(np.abs(shifts).max())
    images = frames.reshape(len(frames), -1, height, width)
    padded = np.pad(images, ((0, 0), (0, 0), (most, most), (most, most)), mode="edge")
    for row, (down, right) in enumerate(most - shifts):
        cut = padded[row, :, down : down + height, right : right + width]
        moved[row] = cut.reshape(moved.shape[1:])


# By the kind of a part.
PREPROCESSING = {
    "vector": Preprocessing(normalised=True),
    "category": Preprocessing(normalised=True),
    "image": Preprocessing(shift=shift_images),
}
