"""The critics' loss where transitions are sampled by their errors."""

import torch
from torch import Tensor

from td3.config import Config


def lap_loss(q: Tensor, target: Tensor, config: Config) -> Tensor:
    """Returns the mean of ½u² where |u| is below `priority_floor`, of floor · |u| elsewhere; u is the error q − target.

    Rows with large errors are sampled more often, and their gradient grows no further with the error: the expected
    gradient is that of uniform sampling with another loss. At the floor the value jumps and the gradient does not.
    """
    error, floor = (q - target).abs(), config.priority_floor
    return torch.where(error < floor, 0.5 * error.pow(2), floor * error).mean()
