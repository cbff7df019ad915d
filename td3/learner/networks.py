"""The networks: an actor, and twin critics computed side by side in one call."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from td3.learner.encoders import Encoder
from td3.learner.preprocessing import Normalizer
from td3.types import Float32s, Rows


class Actor(nn.Module):
    """Maps features to an action in [−1, 1]."""

    def __init__(self, features: int, action_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = perceptron(uninitialised_linear, features, hidden, action_size)

    def forward(self, features: Tensor) -> Tensor:
        """Maps (B, features) to (B, action_size)."""
        return torch.tanh(self.layers(features))


class Critics(nn.Module):
    """Two critics with one architecture and separate weights: each maps (features, action) to one number.

    The encoder that makes the features belongs to the critics; the actor uses its features without training it.
    """

    def __init__(self, encoder: Encoder, action_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.layers = perceptron(TwinLinear, encoder.size + action_size, hidden, 1)

    def forward(self, features: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both critics' values, each of shape (B,)."""
        both = torch.cat([features, action], dim=-1).expand(2, -1, -1)  # (2, B, features + action)
        q1, q2 = self.layers(both).squeeze(-1).unbind(0)  # (2, B, 1) → 2 × (B,)
        return q1, q2

    def first(self, features: Tensor, action: Tensor) -> Tensor:
        """Returns the first critic's values alone, (B,)."""
        x = torch.cat([features, action], dim=-1)
        for layer in self.layers:
            x = layer.first(x) if isinstance(layer, TwinLinear) else layer(x)
        return x.squeeze(-1)


@torch.no_grad()
def act(actor: nn.Module, encoder: Encoder, normalizer: Normalizer | None, observations: Rows) -> Float32s:
    """Returns the actor's actions: NumPy in, NumPy out."""
    device = next(actor.parameters()).device
    observations = normalizer(observations) if normalizer else observations
    actions: Float32s = actor(encoder(torch.from_numpy(observations).to(device))).cpu().numpy()
    return actions


class TwinLinear(nn.Module):
    """Two linear layers side by side: two small matrix products in one call cost less than two calls."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(2, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (2, B, inputs) to (2, B, outputs)."""
        return torch.baddbmm(self.bias, x, self.weight)

    def first(self, x: Tensor) -> Tensor:
        """Maps (B, inputs) to (B, outputs) with the first of both layers."""
        return torch.addmm(self.bias[0], x, self.weight[0])


def uninitialised_linear(inputs: int, outputs: int) -> nn.Module:
    """Makes a linear layer without PyTorch's initial weights, which would be drawn from the global rng."""
    layer: nn.Module = skip_init(nn.Linear, inputs, outputs)
    return layer


def perceptron(
    linear: Callable[[int, int], nn.Module],
    inputs: int,
    hidden: Iterable[int],
    outputs: int,
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """Makes linear layers of these sizes, with an activation, a ReLU, between each two."""
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [linear(inputs, units), activation()]
        inputs = units
    return nn.Sequential(*layers, linear(inputs, outputs))


Network = TypeVar("Network", bound=nn.Module)


def initialise(network: Network, generator: torch.Generator) -> Network:
    """Gives linear and convolutional layers PyTorch's usual weights, uniform in ±1/√inputs, from `generator`."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | TwinLinear):
            inputs = layer.weight.shape[1] if isinstance(layer, TwinLinear) else layer.weight[0].numel()
            bound = 1 / math.sqrt(inputs)
            with torch.no_grad():
                layer.weight.uniform_(-bound, bound, generator=generator)
                if layer.bias is not None:
                    layer.bias.uniform_(-bound, bound, generator=generator)
    return network


@contextmanager
def own_stream(seed: int) -> Iterator[None]:
    """Seeds PyTorch's global rng inside the block, for custom layers that draw from it, and restores it afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
