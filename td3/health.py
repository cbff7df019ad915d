"""Measures what a diagnosis needs: networks on remembered states, and statistics of the newest rows of the memory.

Nothing is drawn and nothing is written, so a run is the same to the bit with and without it, and a resumed run measures
the same numbers again.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from td3.learner import Learner
from td3.learner.making import one_thread
from td3.learner.preprocessing import preprocess
from td3.metrics import AT_AN_END
from td3.replay import AnyMemory
from td3.types import Batch, Layout

STATES = 500  # remembered ones that the networks are measured on, spread evenly over the memory
IMAGES = 64  # of images: fewer, which cost as much
MOST_ROWS = 100_000  # of a dataset that is measured at once

Indices = NDArray[np.int64]


def measure_health(learner: Learner, count: int) -> dict[str, Any]:
    """Returns a row of `health/` metrics, with statistics of the `count` newest rows of the memory."""
    memory, layout = learner.memory, learner.layout
    newest = newest_rows(memory, min(count, MOST_ROWS))
    found: dict[str, Any] = {"health/rows": len(newest)}
    if len(newest):
        rewards = memory.columns["reward"][newest].astype(np.float64) / learner.config.reward_scale
        found |= {**reward_statistics(rewards), **observation_statistics(numbers_of(memory, newest), layout)}
        if layout.frame:
            found["health/image_change"] = image_change(memory, newest)
    if learner.updates:
        with one_thread(), undisturbed(learner):
            found |= network_health(learner)
    return found


def newest_rows(memory: AnyMemory, count: int) -> Indices:
    """Returns the indices of the last transitions that were written, of `count` rows at most."""
    first = memory.written - min(memory.written, memory.capacity, count)
    indices = np.arange(first, memory.written) % memory.capacity
    return indices[memory.can_sample(indices)]


def numbers_of(memory: AnyMemory, indices: Indices) -> NDArray[np.float32]:
    """Returns the numbers of these observations, (n, numbers), without their images."""
    columns = memory.columns
    numbers: NDArray[np.float32] = (columns["numbers"] if "numbers" in columns else columns["observation"])[indices]
    return numbers


def reward_statistics(rewards: NDArray[np.float64]) -> dict[str, Any]:
    """Returns mean, spread and the most frequent value of rewards as the environment gave them."""
    values, counts = np.unique(rewards, return_counts=True)
    most = int(counts.argmax())
    return {
        "health/reward_mean": shortened(float(rewards.mean())),
        "health/reward_std": shortened(float(rewards.std())),
        "health/reward_size": float(np.abs(rewards).max()),
        "health/reward_ends": [float(rewards.min()), float(rewards.max())],
        "health/reward_range": shortened(np.quantile(rewards, [0.05, 0.95]).tolist()),
        "health/reward_mode": [float(values[most]), int(counts[most])],
    }


def observation_statistics(numbers: NDArray[np.float32], layout: Layout) -> dict[str, Any]:
    """Returns mean, spread and range of every number of the observation; nothing where there are only images."""
    if not numbers.shape[1]:
        return {}
    parts = [[part.name, part.size] for part, _ in layout.number_parts]
    return {
        "health/observation_mean": shortened(numbers.mean(axis=0, dtype=np.float64).tolist()),
        "health/observation_std": shortened(numbers.std(axis=0, dtype=np.float64).tolist()),
        "health/observation_low": shortened(numbers.min(axis=0).tolist()),
        "health/observation_high": shortened(numbers.max(axis=0).tolist()),
        **({"health/observation_parts": parts} if len(parts) > 1 else {}),
    }


def image_change(memory: AnyMemory, indices: Indices) -> float:
    """Returns the share of bytes of a frame that changed at all among some of these rows."""
    frames = memory.columns["frame"][indices[spread(len(indices), IMAGES)]]
    return float((frames.min(axis=0) != frames.max(axis=0)).mean())


@contextmanager
def undisturbed(learner: Learner) -> Iterator[None]:
    """Keeps dropout from drawing and batch norms from counting inside the block, in networks of the user's own."""
    modules = [module for network in learner.networks().values() for module in network.modules() if module.training]
    numpy_state, python_state = np.random.get_state(), random.getstate()  # a step of the user's own may draw from them
    with torch.random.fork_rng(devices=[]):
        for module in modules:
            module.training = False
        try:
            yield
        finally:
            for module in modules:
                module.training = True
            np.random.set_state(numpy_state)
            random.setstate(python_state)


@torch.no_grad()
def network_health(learner: Learner) -> dict[str, Any]:
    """Returns how the networks act and predict on remembered states."""
    batch = remembered(learner)
    with layers_watched(learner.critics, learner.actor) as active:
        features = learner.critics.encoder.forward(batch.observation)  # `forward`: nothing is compiled for it
        actions = learner.actor.forward(features)
        q1, q2 = learner.critics.forward(features, batch.action)
    target = learner.target(batch, torch.zeros_like(batch.action)).target
    ends = [(actions < -AT_AN_END).float().mean(0), (actions > AT_AN_END).float().mean(0)]
    low, high = torch.quantile(actions, torch.tensor([0.05, 0.95], device=actions.device), dim=0)
    silent = {name: 1 - float(units.float().mean()) for name, units in active.items()}
    spread_of_target = float(target.var(correction=0))
    found = {
        "health/residual_variance": float((target - (q1 + q2) / 2).var(correction=0)) / max(spread_of_target, 1e-30),
        "health/target_std": spread_of_target**0.5,
        "health/q_size": float(q1.abs().mean()),
        "health/one_end": float(torch.stack(ends).max()),
        "health/low_end": ends[0].tolist(),
        "health/high_end": ends[1].tolist(),
        "health/action_low": low.tolist(),
        "health/action_high": high.tolist(),
        "health/actor_gradient": actor_gradient(learner),
    }
    if silent:
        found["health/dead_units"] = max(silent.values())
        found["health/dead_layers"] = silent
    # In six digits: a sum of floats depends on where in memory they lie, which a resumed run may not repeat.
    return {name: shortened(value) for name, value in found.items() if value is not None}


def remembered(learner: Learner) -> Batch:
    """Returns transitions spread evenly over the memory, as the networks take them."""
    memory = learner.memory
    stored = min(memory.written, memory.capacity)
    indices = spread(stored, IMAGES if learner.layout.frame else STATES)
    batch = memory.batch(indices[memory.can_sample(indices)])
    if learner.normalizer:
        batch = preprocess(batch, learner.layout, learner.normalizer, None)
    return Batch(*(column.to(learner.config.device) for column in batch))


def spread(count: int, most: int) -> Indices:
    """Returns at most `most` of the indices below `count`, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


@contextmanager
def layers_watched(critics: nn.Module, actor: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Notes which units of each hidden layer are active in any of the rows that pass inside the block."""
    active: dict[str, Tensor] = {}

    def watch(name: str, layer: nn.Module) -> Any:
        def look(_: nn.Module, __: Any, output: Tensor) -> None:
            twins = output.dim() == 3
            for twin, units in enumerate(output if twins else [output], start=1):
                key = name.replace("critics", f"critic {twin}") if twins else name
                active[key] = (units.flatten(2).amax(2) if units.dim() == 4 else units).amax(0) > 0

        return layer.register_forward_hook(look)

    handles = []
    for network, module in (("actor", actor), ("critics", critics)):
        rectified = [layer for layer in module.modules() if isinstance(layer, nn.ReLU)]
        handles += [watch(f"{network}, layer {place}", layer) for place, layer in enumerate(rectified, start=1)]
    try:
        yield active
    finally:
        for handle in handles:
            handle.remove()


def actor_gradient(learner: Learner) -> float | None:
    """Returns the length of Adam's running mean of the actor's gradient; None where there is no such thing."""
    optimizer = learner.optimizers().get("actor_optimizer")
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]] if optimizer else []
    states = [optimizer.state.get(parameter, {}) for parameter in parameters] if optimizer else []
    means = [state["exp_avg"] for state in states if "exp_avg" in state]
    if not means:
        return None
    return float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(mean.double()) for mean in means])))


def shortened(value: Any) -> Any:
    """Returns numbers, alone, in a list or by name, in six digits: a record keeps many."""
    if isinstance(value, dict):
        return {name: shortened(number) for name, number in value.items()}
    if isinstance(value, list):
        return [shortened(number) for number in value]
    return float(f"{value:.6g}")
