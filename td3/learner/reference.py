"""A second, independent implementation of the update: NumPy in float64, gradients and Adam by hand.

It shares no line with td3.py and uses no autograd, so that an error must be made twice to go unnoticed.
`td3 selftest` and the tests compare every engine with it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Layers = list[tuple[Array, Array]]  # (inputs, outputs) and (outputs,), layer by layer

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual numbers


class NumpyReference:
    """TD3 in float64 with gradients worked out by hand: what an engine is compared with."""

    def __init__(
        self,
        actor: Layers,
        critics: list[Layers],
        *,
        tau: float,
        policy_delay: int,
        target_noise: float,
        noise_clip: float,
        actor_lr: float,
        critic_lr: float,
    ) -> None:
        self.actor, self.actor_target = copied(actor), copied(actor)
        self.critics = [copied(critic) for critic in critics]
        self.critic_targets = [copied(critic) for critic in critics]
        self.tau, self.policy_delay = tau, policy_delay
        self.target_noise, self.noise_clip = target_noise, noise_clip
        self.actor_adam = NumpyAdam(self.actor, actor_lr)
        self.critic_adams = [NumpyAdam(critic, critic_lr) for critic in self.critics]
        self.count = 0

    def update(self, s: Array, a: Array, r: Array, s2: Array, terminated: Array, discount: Array, noise: Array) -> None:
        """Performs one update on (B, …) arrays; `noise` is standard normal, (B, action_size)."""
        self.count += 1
        rows = len(r)
        next_action = np.tanh(forward(self.actor_target, s2)[-1])
        noise = np.clip(self.target_noise * noise, -self.noise_clip, self.noise_clip)
        next_action = np.clip(next_action + noise, -1.0, 1.0)
        next_inputs = np.hstack([s2, next_action])
        next_q = [forward(target, next_inputs)[-1][:, 0] for target in self.critic_targets]
        y = np.array(
            [r[i] + (0.0 if terminated[i] else discount[i] * min(next_q[0][i], next_q[1][i])) for i in range(rows)]
        )

        inputs = np.hstack([s, a])
        for critic, adam in zip(self.critics, self.critic_adams, strict=True):
            trace = forward(critic, inputs)
            grad = 2.0 * (trace[-1] - y[:, None]) / rows  # of the mean of squares
            gradients, _ = backward(critic, trace, grad)
            adam.step(gradients)

        if self.count % self.policy_delay:
            return
        trace = forward(self.actor, s)
        action = np.tanh(trace[-1])
        critic_trace = forward(self.critics[0], np.hstack([s, action]))
        _, input_grad = backward(self.critics[0], critic_trace, np.full((rows, 1), -1.0 / rows))
        output_grad = input_grad[:, s.shape[1] :] * (1.0 - action**2)  # through the action, then the tanh
        gradients, _ = backward(self.actor, trace, output_grad)
        self.actor_adam.step(gradients)
        polyak(self.actor_target, self.actor, self.tau)
        for target, critic in zip(self.critic_targets, self.critics, strict=True):
            polyak(target, critic, self.tau)


class NumpyAdam:
    """Performs Adam's steps on layers, in place."""

    def __init__(self, layers: Layers, lr: float) -> None:
        self.layers, self.lr, self.t = layers, lr, 0
        self.m = [(np.zeros_like(w), np.zeros_like(b)) for w, b in layers]
        self.v = [(np.zeros_like(w), np.zeros_like(b)) for w, b in layers]

    def step(self, gradients: Layers) -> None:
        """Moves the layers one step against these gradients."""
        self.t += 1
        for weights, grads, means, squares in zip(self.layers, gradients, self.m, self.v, strict=True):
            for x, g, m, v in zip(weights, grads, means, squares, strict=True):
                m[...] = BETA1 * m + (1 - BETA1) * g
                v[...] = BETA2 * v + (1 - BETA2) * g * g
                unbiased = m / (1 - BETA1**self.t), v / (1 - BETA2**self.t)
                x -= self.lr * unbiased[0] / (np.sqrt(unbiased[1]) + EPSILON)


def forward(layers: Layers, x: Array, elu: bool = False) -> list[Array]:
    """Returns the input, every hidden activation, a ReLU or an ELU, and the last layer's output, without one."""
    trace = [x]
    for index, (w, b) in enumerate(layers):
        x = x @ w + b
        if index < len(layers) - 1:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)) if elu else 0.0)
        trace.append(x)
    return trace


def backward(layers: Layers, trace: list[Array], grad: Array, elu: bool = False) -> tuple[Layers, Array]:
    """Returns the loss's gradient at every weight and bias and at the input, given that at the output."""
    gradients: Layers = []
    for index in reversed(range(len(layers))):
        w, _ = layers[index]
        gradients.insert(0, (trace[index].T @ grad, grad.sum(axis=0)))
        grad = grad @ w.T
        if index > 0:
            grad = grad * np.where(trace[index] > 0, 1.0, trace[index] + 1.0 if elu else 0.0)
    return gradients, grad


def polyak(target: Layers, network: Layers, tau: float) -> None:
    """Moves the target towards the network by the share `tau`, in place."""
    for (tw, tb), (w, b) in zip(target, network, strict=True):
        tw[...] = tau * w + (1 - tau) * tw
        tb[...] = tau * b + (1 - tau) * tb


def copied(layers: Layers) -> Layers:
    """Returns a copy of the layers in float64."""
    return [(w.astype(np.float64).copy(), b.astype(np.float64).copy()) for w, b in layers]


def actor_layers(network: Any) -> Layers:
    """Returns the layers of an actor of td3.py, as this file stores them."""
    return [(_array(one.weight).T.copy(), _array(one.bias)) for one in network.layers if hasattr(one, "weight")]


def critic_layers(network: Any, which: int) -> Layers:
    """Returns the layers of one of the twin critics of td3.py."""
    found = [one for one in network.layers if hasattr(one, "weight")]
    return [(_array(one.weight[which]), _array(one.bias[which])[0]) for one in found]


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().cpu().numpy(), np.float64).copy()
