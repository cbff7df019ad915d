"""How the parts of an observation are recorded: numbers as numbers, images as small frames."""

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from td3.types import Bytes, Layout, Part

IMAGES, FRAMES, SIDE = 2, 4, 32  # of images: the first ones, the newest frames of each, and pixels of the longer side
LONGEST_NAME = 100  # letters
NUMBERS = 24  # of a vector: the first ones


def numbers_of(layout: Layout, observation: Tensor) -> Tensor:
    """Returns the first numbers of all float32 parts, whatever their kind, as they are stored.

    Where several observations are joined, those of the newest that fit, the oldest of them first; of one at least.
    """
    numbers, each = torch.from_numpy(layout.vectors(observation.cpu().numpy())), layout.step_numbers
    shown = min(layout.history, max(1, NUMBERS // max(1, each)))
    return numbers[:, layout.numbers - shown * each :][:, :NUMBERS]


def record_images(layout: Layout, observations: tuple[Tensor, Tensor]) -> dict[str, Any]:
    """Records the shapes of the first images once, and the frames of these rows of s and s', in one piece.

    So the frames that s and s' have in common are written once: whoever compresses finds them.
    """
    shown = [(part, span) for part, span in layout.frame_parts if part.kind in RECORDED_AS_IMAGES][:IMAGES]
    stacks = [layout.frames(rows.cpu().numpy()) for rows in observations]
    small = [[RECORDED_AS_IMAGES[part.kind](part, frames[..., span]) for part, span in shown] for frames in stacks]
    pieces = [frames[row].tobytes() for row in range(len(stacks[0])) for images in small for frames in images]
    return {
        "pictures": [
            {
                "name": part.name[:LONGEST_NAME],
                **dict(zip(("channels", "height", "width"), part.shape, strict=True)),
                "shown": frames.shape[1:],
            }
            for (part, _), frames in zip(shown, small[0], strict=True)
        ],
        "others": len(layout.frame_parts) - len(shown),
        "stack": layout.stack,
        "frames": base64.b64encode(zlib.compress(b"".join(pieces))).decode(),
    }


def small_frames(part: Part, frames: Bytes) -> Bytes:
    """Returns the newest frames of one image, (n, stack, size), as (n, frames, height, width, 1 or 3), made smaller.

    An image of another number of channels is recorded channel by channel: what they hold, only its environment knows.
    """
    channels, height, width = part.shape
    colours = 3 if channels == 3 else 1
    planes = frames[:, -FRAMES:].reshape(len(frames), -1, colours, height, width)[:, -FRAMES:]
    return np.stack([np.moveaxis(averaged(row), 1, -1) for row in planes])


def averaged(planes: Bytes) -> Bytes:
    """Shrinks (…, height, width) to no more than `SIDE` each way: each pixel the mean of a square, cut at the edges."""
    height, width = planes.shape[-2:]
    square = -(-max(height, width) // SIDE)
    if square == 1:
        return planes
    down, right = (np.arange(0, length, square) for length in (height, width))
    sums = np.add.reduceat(np.add.reduceat(planes, down, axis=-2, dtype=np.uint32), right, axis=-1)
    counts = np.outer(np.diff(down, append=height), np.diff(right, append=width))
    means: Bytes = np.rint(sums / counts).astype(np.uint8)
    return means


# The kinds of parts, (channels, height, width) of bytes, that are recorded as images, and what makes them small.
RECORDED_AS_IMAGES: dict[str, Callable[[Part, Bytes], Bytes]] = {"image": small_frames}
