"""Recognises images among spaces, and where their height, width and channels are."""

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import Space

from td3.config import SMALLEST_IMAGE


def is_image(space: Space[Any], frame_stack: int = 1) -> bool:
    """Returns whether a space is an image: bytes from 0 to 255, (H, W), (H, W, C) or (C, H, W), or frames of those.

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
    """Returns the order of an image's axes that puts height and width last, and (frames, height, width, channels).

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
