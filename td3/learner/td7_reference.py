"""TD7 a second time, independently: NumPy in float64, gradients by hand. It shares no line with td7.py.

A network with an AvgL1Norm is a list of layers too: the first is the linear map whose output is normalised.
"""

from typing import Any, NamedTuple

import numpy as np

from td3.learner.reference import Array, Layers, NumpyAdam, actor_layers, backward, copied, critic_layers, forward


class Settings(NamedTuple):
    """The numbers of an update."""

    policy_delay: int
    target_noise: float
    noise_clip: float
    actor_lr: float
    critic_lr: float
    embedding_lr: float
    target_every: int
    priority_alpha: float
    priority_floor: float


class NumpyTD7Reference:
    """TD7 with all its additions: what an engine is compared with."""

    def __init__(self, actor: Layers, critics: list[Layers], f: Layers, g: Layers, settings: Settings) -> None:
        self.settings = settings
        self.actor, self.critics = copied(actor), [copied(critic) for critic in critics]
        self.f, self.g = copied(f), copied(g)  # those that learn
        self.adams = [
            NumpyAdam(network, rate)
            for network, rate in (
                (self.actor, settings.actor_lr),
                (self.critics[0], settings.critic_lr),
                (self.critics[1], settings.critic_lr),
                (self.f, settings.embedding_lr),
                (self.g, settings.embedding_lr),
            )
        ]
        self.actor_target, self.critic_targets = copied(actor), [copied(critic) for critic in critics]
        self.fixed, self.fixed_target = (copied(f), copied(g)), (copied(f), copied(g))
        self.clip, self.seen = (0.0, 0.0), (np.inf, -np.inf)
        self.count = 0

    def update(
        self, s: Array, a: Array, r: Array, s2: Array, terminated: Array, discount: Array, noise: Array
    ) -> Array:
        """Performs one update on (B, …) arrays, `noise` standard normal; returns the rows' new priorities."""
        self.count += 1
        self._embed(s, a, s2)
        q1, q2, y = self._criticise(s, a, r, s2, terminated, discount, noise)
        if self.count % self.settings.policy_delay == 0:
            self._ascend(s)
        if self.count % self.settings.target_every == 0:
            self.actor_target = copied(self.actor)
            self.critic_targets = [copied(critic) for critic in self.critics]
            self.fixed_target = self.fixed
            self.fixed = copied(self.f), copied(self.g)
            self.clip = self.seen
        largest = [max(abs(q1[i] - y[i]), abs(q2[i] - y[i]), self.settings.priority_floor) for i in range(len(y))]
        return np.array(largest) ** self.settings.priority_alpha

    def _embed(self, s: Array, a: Array, s2: Array) -> None:
        """Moves g(f(s), a) towards f(s'), which counts as a constant."""
        wanted = normed(forward(self.f, s2, elu=True)[-1])
        f_trace = forward(self.f, s, elu=True)
        z = normed(f_trace[-1])
        g_trace = forward(self.g, np.hstack([z, a]), elu=True)
        grad = 2.0 * (g_trace[-1] - wanted) / wanted.size
        g_gradients, input_grad = backward(self.g, g_trace, grad, elu=True)
        f_gradients, _ = backward(self.f, f_trace, norm_grad(f_trace[-1], input_grad[:, : z.shape[1]]), elu=True)
        self.adams[3].step(f_gradients)
        self.adams[4].step(g_gradients)

    def _criticise(
        self, s: Array, a: Array, r: Array, s2: Array, terminated: Array, discount: Array, noise: Array
    ) -> tuple[Array, Array, Array]:
        """Moves both critics towards the targets; returns their values before that, and the targets."""
        settings, (f, g) = self.settings, self.fixed_target
        z2 = normed(forward(f, s2, elu=True)[-1])
        next_action = np.tanh(norm_forward(self.actor_target, s2, z2)[-1])
        clipped = np.clip(settings.target_noise * noise, -settings.noise_clip, settings.noise_clip)
        next_action = np.clip(next_action + clipped, -1.0, 1.0)
        shared = np.hstack([forward(g, np.hstack([z2, next_action]), elu=True)[-1], z2])
        s2_a2 = np.hstack([s2, next_action])
        next_q = [norm_forward(target, s2_a2, shared, elu=True)[-1][:, 0] for target in self.critic_targets]
        y = np.empty(len(r))
        for i in range(len(r)):
            value = min(max(min(next_q[0][i], next_q[1][i]), self.clip[0]), self.clip[1])
            y[i] = r[i] + (0.0 if terminated[i] else discount[i] * value)
        self.seen = min(self.seen[0], y.min()), max(self.seen[1], y.max())

        f, g = self.fixed
        z = normed(forward(f, s, elu=True)[-1])
        shared = np.hstack([forward(g, np.hstack([z, a]), elu=True)[-1], z])
        values = []
        for critic, adam in zip(self.critics, self.adams[1:3], strict=True):
            trace = norm_forward(critic, np.hstack([s, a]), shared, elu=True)
            values.append(trace[-1][:, 0])
            error, floor = trace[-1] - y[:, None], settings.priority_floor
            slope = np.where(np.abs(error) < floor, error, floor * np.sign(error))
            adam.step(norm_backward(critic, trace, slope / len(r), elu=True)[0])
        return values[0], values[1], y

    def _ascend(self, s: Array) -> None:
        """Moves the actor up the mean of both critics, through the action and its embedding."""
        f, g = self.fixed
        z = normed(forward(f, s, elu=True)[-1])
        trace = norm_forward(self.actor, s, z)
        action = np.tanh(trace[-1])
        g_trace = forward(g, np.hstack([z, action]), elu=True)
        shared = np.hstack([g_trace[-1], z])
        width, action_grad = z.shape[1], np.zeros_like(action)
        for critic in self.critics:
            critic_trace = norm_forward(critic, np.hstack([s, action]), shared, elu=True)
            down = np.full((len(s), 1), -0.5 / len(s))
            _, own_grad, shared_grad = norm_backward(critic, critic_trace, down, elu=True)
            _, pair_grad = backward(g, g_trace, shared_grad[:, :width], elu=True)
            action_grad += own_grad[:, s.shape[1] :] + pair_grad[:, width:]
        self.adams[0].step(norm_backward(self.actor, trace, action_grad * (1.0 - action**2))[0])


def normed(x: Array) -> Array:
    """Divides each row by the mean size of its numbers."""
    divided: Array = x / np.maximum(np.abs(x).mean(axis=1, keepdims=True), 1e-8)
    return divided


def norm_grad(x: Array, grad: Array) -> Array:
    """Returns the gradient at the input of `normed`, given that at its output."""
    mean = np.abs(x).mean(axis=1, keepdims=True)
    result: Array = grad / mean - np.sign(x) * (grad * x).sum(axis=1, keepdims=True) / (x.shape[1] * mean**2)
    return result


def norm_forward(layers: Layers, own: Array, shared: Array, elu: bool = False) -> list[Array]:
    """Returns the input and output of the first layer, then the trace of the others on its norm and `shared`."""
    linear = own @ layers[0][0] + layers[0][1]
    return [own, linear, *forward(layers[1:], np.hstack([normed(linear), shared]), elu)]


def norm_backward(layers: Layers, trace: list[Array], grad: Array, elu: bool = False) -> tuple[Layers, Array, Array]:
    """Returns the gradients at all weights, at the first layer's input, and at what is shared."""
    own, linear, *others = trace
    gradients, input_grad = backward(layers[1:], others, grad, elu)
    width = linear.shape[1]
    linear_grad = norm_grad(linear, input_grad[:, :width])
    first = own.T @ linear_grad, linear_grad.sum(axis=0)
    return [first, *gradients], linear_grad @ layers[0][0].T, input_grad[:, width:]


def embedded_actor(network: Any) -> Layers:
    """Returns the layers of an actor of td7.py, as this file stores them."""
    return [linear_of(network.linear), *actor_layers(network)]


def embedded_critic(network: Any, which: int) -> Layers:
    """Returns the layers of one of the twin critics of td7.py."""
    weight, bias = (tensor[which].detach().double().numpy() for tensor in (network.linear.weight, network.linear.bias))
    return [(weight, bias[0]), *critic_layers(network, which)]


def encoder_layers(network: Any) -> Layers:
    """Returns the layers of f or of g."""
    return [linear_of(layer) for layer in network if hasattr(layer, "weight")]


def linear_of(layer: Any) -> tuple[Array, Array]:
    """Returns weight and bias of a linear layer."""
    weight, bias = (tensor.detach().double().numpy() for tensor in (layer.weight, layer.bias))
    return weight.T.copy(), bias.copy()
