"""Addresses of tensors and arrays for the native library, and how to notice that somebody wrote to or moved them."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from td3.learner.native import library
from td3.learner.native.supported import tensors_of


def addresses_of(network: Any, target: Any = None, optimizer: Adam | None = None) -> list[library.Tensor]:
    """Where each weight and bias is, and what belongs to it; zero where there is nothing yet."""
    values = tensors_of(network)
    targets = tensors_of(target) if target else [None] * len(values)
    found = []
    for value, follower in zip(values, targets, strict=True):
        state = optimizer.state.get(value, {}) if optimizer else {}
        remembered = (state.get(name) for name in ("exp_avg", "exp_avg_sq", "step"))
        found.append(library.Tensor(*(0 if one is None else one.data_ptr() for one in (value, *remembered, follower))))
    return found


def versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each was written to; tensors of `torch.inference_mode` do not count it."""
    try:
        return [tensor._version for tensor in tensors]
    except RuntimeError:
        return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def pointers(tensors: Sequence[Tensor]) -> list[int]:
    """Returns the address of each tensor's data."""
    return [tensor.data_ptr() for tensor in tensors]


def same_group(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether the settings are the same, and the list of parameters the very same: tensors are not to be compared."""
    return before["params"] is now["params"] and before == now


def begin(optimizer: Adam) -> None:
    """Gives Adam the state it has before its first step, as PyTorch itself would."""
    for parameter in optimizer.param_groups[0]["params"]:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }


def address(array: Any) -> int:
    """Returns the address of an array's data."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # a third of the time, where it may be written to
    except (TypeError, ValueError):
        found: int = array.__array_interface__["data"][0]
        return found
