"""Embeddings of states and actions that are learned by prediction (SALE), and networks that take them.

f maps a state to z^s, and g maps z^s and an action to z^sa, which is trained to be the z^s of the next state. Actor and
critics take s, z^s and z^sa side by side. AvgL1Norm keeps every input of theirs at the same scale.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from td3.learner.networks import Actor, Critics, TwinLinear, perceptron, uninitialised_linear

SMALLEST = 1e-8  # mean size that a vector is divided by


def avg_l1_norm(x: Tensor) -> Tensor:
    """Divides each vector by the mean size of its numbers: x / mean |x_j|."""
    return x / x.abs().mean(-1, keepdim=True).clamp(min=SMALLEST)


class Embedding(nn.Module):
    """Holds f and g. As an encoder it returns the features (s, z^s), which actor and critics take."""

    def __init__(self, observation_size: int, action_size: int, size: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.sizes, self.size = (observation_size, size), observation_size + size  # of s and z^s, and of both
        self.f = perceptron(uninitialised_linear, observation_size, hidden, size, nn.ELU)
        self.g = perceptron(uninitialised_linear, size + action_size, hidden, size, nn.ELU)

    def forward(self, observation: Tensor) -> Tensor:
        """Maps (B, observation_size) to (s, z^s), (B, observation_size + z)."""
        return torch.cat([observation, self.state(observation)], dim=-1)

    def state(self, observation: Tensor) -> Tensor:
        """Returns z^s = AvgL1Norm(f(s)), (B, z)."""
        return avg_l1_norm(self.f(observation))

    def pair(self, state: Tensor, action: Tensor) -> Tensor:
        """Returns z^sa = g(z^s, a), (B, z), which is not normalised."""
        z_sa: Tensor = self.g(torch.cat([state, action], dim=-1))
        return z_sa


class EmbeddedActor(Actor):
    """Maps (s, z^s) to an action: ReLU layers on AvgL1Norm(W s) and z^s."""

    def __init__(self, sizes: tuple[int, int], action_size: int, hidden: Sequence[int]) -> None:
        nn.Module.__init__(self)
        self.sizes = observations, z = sizes
        width = hidden[0] if hidden else z
        self.linear = uninitialised_linear(observations, width)
        self.layers = perceptron(uninitialised_linear, width + z, hidden, action_size)

    def forward(self, features: Tensor) -> Tensor:
        """Maps (B, observation_size + z) to (B, action_size)."""
        observation, state = features.split(self.sizes, dim=-1)
        x = torch.cat([avg_l1_norm(self.linear(observation)), state], dim=-1)
        return torch.tanh(self.layers(x))


class EmbeddedCritics(Critics):
    """Two critics: each has ELU layers on its own AvgL1Norm(W (s, a)), and on z^sa and z^s, which both share.

    The encoder is a frozen copy of the embedding. Its g is used here too, so the actor's gradient passes through it.
    """

    encoder: Any  # an `Embedding`, put in once it is made

    def __init__(self, sizes: tuple[int, int], action_size: int, hidden: Sequence[int]) -> None:
        nn.Module.__init__(self)
        self.sizes = observations, z = sizes
        width = hidden[0] if hidden else z
        self.linear = TwinLinear(observations + action_size, width)
        self.layers = perceptron(TwinLinear, width + 2 * z, hidden, 1, nn.ELU)

    def forward(self, features: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both critics' values, each of shape (B,)."""
        s_a, shared = self._inputs(features, action)
        own = avg_l1_norm(self.linear(s_a.expand(2, -1, -1)))  # (2, B, width)
        q1, q2 = self.layers(torch.cat([own, shared.expand(2, -1, -1)], dim=-1)).squeeze(-1).unbind(0)
        return q1, q2

    def first(self, features: Tensor, action: Tensor) -> Tensor:
        """Returns the first critic's values alone, (B,)."""
        s_a, shared = self._inputs(features, action)
        x = torch.cat([avg_l1_norm(self.linear.first(s_a)), shared], dim=-1)
        for layer in self.layers:
            x = layer.first(x) if isinstance(layer, TwinLinear) else layer(x)
        return x.squeeze(-1)

    def _inputs(self, features: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Returns (s, a), and (z^sa, z^s)."""
        observation, state = features.split(self.sizes, dim=-1)
        s_a = torch.cat([observation, action], dim=-1)
        return s_a, torch.cat([self.encoder.pair(state, action), state], dim=-1)
