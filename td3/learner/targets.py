"""Targets: frozen copies that follow their networks slowly."""

import copy
from typing import TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


def target_of(network: Network) -> Network:
    """Returns a copy of a network that no gradient reaches."""
    return copy.deepcopy(network).requires_grad_(False)


@torch.no_grad()
def polyak(target: nn.Module, network: nn.Module, tau: float) -> None:
    """target ← τ · network + (1 − τ) · target, for every weight in one call."""
    torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), tau)
