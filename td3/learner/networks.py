"""The networks: an actor that decides, and twin critics that judge, computed side by side in one call."""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from td3.types import Float32s


class Encoder(nn.Module):
    """From what was observed to what the layers read. Vectors are read as they are; images will not be."""

    def __init__(self, observation_size: int) -> None:
        super().__init__()
        self.size = observation_size

    def forward(self, observation: Tensor) -> Tensor:
        return observation


class Actor(nn.Module):
    """Observation → action in [−1, 1]."""

    def __init__(self, encoder: Encoder, action_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.layers = perceptron(undrawn_linear, encoder.size, hidden, action_size)

    def forward(self, observation: Tensor) -> Tensor:
        return torch.tanh(self.layers(self.encoder(observation)))

    @torch.no_grad()
    def play(self, observations: Float32s) -> Float32s:
        """The same from array to array."""
        device = next(self.parameters()).device
        actions: Float32s = self(torch.from_numpy(observations).to(device)).cpu().numpy()
        return actions


class Critics(nn.Module):
    """Two critics with one architecture and weights of their own: (observation, action) → one number each."""

    def __init__(self, encoder: Encoder, action_size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.layers = perceptron(TwinLinear, encoder.size + action_size, hidden, 1)

    def forward(self, observation: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Both critics' values, each of shape (B,)."""
        both = self._joined(observation, action).expand(2, -1, -1)  # (2, B, observation + action)
        q1, q2 = self.layers(both).squeeze(-1).unbind(0)  # (2, B, 1) → 2 × (B,)
        return q1, q2

    def first(self, observation: Tensor, action: Tensor) -> Tensor:
        """The first critic's values alone, (B,)."""
        x = self._joined(observation, action)
        for layer in self.layers:
            x = layer.first(x) if isinstance(layer, TwinLinear) else layer(x)
        return x.squeeze(-1)

    def _joined(self, observation: Tensor, action: Tensor) -> Tensor:
        return torch.cat([self.encoder(observation), action], dim=-1)


class TwinLinear(nn.Module):
    """Two linear layers side by side: two small matrix products in one call cost less than two calls."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(2, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:  # (2, B, inputs) → (2, B, outputs)
        return torch.baddbmm(self.bias, x, self.weight)

    def first(self, x: Tensor) -> Tensor:  # (B, inputs) → (B, outputs)
        return torch.addmm(self.bias[0], x, self.weight[0])


def undrawn_linear(inputs: int, outputs: int) -> nn.Module:
    """A linear layer without PyTorch's own first weights, which would be drawn from the global stream."""
    layer: nn.Module = skip_init(nn.Linear, inputs, outputs)
    return layer


def perceptron(
    linear: Callable[[int, int], nn.Module], inputs: int, hidden: Iterable[int], outputs: int
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for units in hidden:
        layers += [linear(inputs, units), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers, linear(inputs, outputs))


def draw_weights(network: nn.Module, generator: torch.Generator) -> None:
    """PyTorch's usual start, uniform in ±1/√inputs for weights and biases, from a stream of our own."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear | TwinLinear):
            inputs = layer.weight.shape[-1] if isinstance(layer, nn.Linear) else layer.weight.shape[1]
            bound = 1 / math.sqrt(inputs)
            with torch.no_grad():
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)
