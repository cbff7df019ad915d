"""What is recorded of an update: its rows, losses, gradients, and how far each network moved."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from td3.learner import Learner
from td3.metrics import AT_AN_END
from td3.recording.measures import distances, histogram, lengths
from td3.recording.observations import NUMBERS, numbers_of, record_images
from td3.types import Batch, Bools, Sample, Update

SHOWN = 6  # rows of the batch that are recorded in full
HISTOGRAMS = 32  # dimensions of the action that have one
SETTINGS = (
    "gamma", "tau", "policy_delay", "target_noise", "noise_clip", "actor_lr", "critic_lr", "batch_size", "hidden",
    "buffer_size", "n_step", "reward_scale", "normalize_observations", "actor_hidden", "critic_hidden",
)  # fmt: skip
NETWORKS = {"actor": 1, "actor_target": 1, "critics": 2, "critic_targets": 2}  # how many lie side by side in each
ENCODERS = {"critics": "encoder", "critic_targets": "encoder_target"}  # where they have anything to learn


class Before(NamedTuple):
    """Copies of what will be gone after the update, and where its successor is found."""

    shown: list[int]  # indices in the batch that are recorded in full
    networks: dict[str, list[nn.Parameter]]  # themselves, which the update moves
    parameters: dict[str, list[Tensor]]  # as they are before it
    moments: dict[str, list[Tensor | None]]  # Adam's mean of each gradient; None before its first step
    features: Tensor  # of every s of the batch, which actor and critics take
    own_action: Tensor  # the actor's action there
    target_action: Tensor  # its target's action in the s' that are shown

    @classmethod
    @torch.no_grad()
    def of(cls, learner: Learner, batch: Batch) -> "Before":
        """Copies what is there now."""
        shown = rows_to_show(batch.terminated.cpu().numpy() > 0)
        networks = networks_of(learner)
        features = learner.critics.encoder.forward(batch.observation)  # `forward`: nothing is compiled for it
        next_features = learner.critic_targets.encoder.forward(batch.next_observation[shown])
        return cls(
            shown,
            networks,
            {name: [parameter.clone() for parameter in network] for name, network in networks.items()},
            {
                name: [None if mean is None else mean.clone() for mean in gradient_means(optimizer, networks[name])]
                for name, optimizer in optimizers_of(learner, networks).items()
            },
            features,
            learner.actor.forward(features),
            learner.actor_target.forward(next_features),
        )


def rows_to_show(terminated: Bools) -> list[int]:
    """Returns the first few indices of a batch; one of them is of a terminated row, if there is any."""
    shown = list(range(min(SHOWN, len(terminated))))
    if terminated.any() and not terminated[shown].any():
        shown[-1] = int(terminated.argmax())
    return shown


@torch.no_grad()
def record_update(learner: Learner, sample: Sample, batch: Batch, before: Before, update: Update) -> dict[str, Any]:
    """Returns an update as plain data."""
    layout = learner.layout
    return {
        "settings": {name: getattr(learner.config, name) for name in SETTINGS},
        "observation_size": layout.numbers,
        "action_size": batch.action.shape[1],
        **_encoded(learner, batch, before),
        "memory": _memory(learner, sample),
        "rows": _rows(learner, sample, batch, before, update),
        "critic_loss": plain(update.critic_loss),
        "actor_loss": None if update.actor_loss is None else plain(update.actor_loss),
        "gradient": _gradient(learner, before, update),
        "moved": _moved(before, update),
        "apart": _apart(before),
        "batch": _batch(batch, before, update),
    }


def _memory(learner: Learner, sample: Sample) -> dict[str, Any]:
    memory = learner.memory
    ages = (memory.written - 1 - sample.indices) % memory.capacity  # the newest row's is 0
    return {
        "rows": len(memory),
        "capacity": memory.capacity,
        "mean_age": float(ages.mean()),
        "oldest_age": min(memory.written, memory.capacity) - 1,
    }


def _encoded(learner: Learner, batch: Batch, before: Before) -> dict[str, Any]:
    """Records joined observations, images, and how many features an encoder of your own makes of numbers.

    Nothing of plain vectors.
    """
    layout, memory = learner.layout, learner.memory
    joined = {"observations": layout.history, "transition_bytes": memory.nbytes // memory.capacity}
    history = {"history": joined} if layout.history > 1 else {}
    if layout.frame_parts:
        return {**history, "images": _images(learner, batch, before)}
    features = before.features.shape[1]
    return {**history, "features": features} if features != layout.numbers else history


def _images(learner: Learner, batch: Batch, before: Before) -> dict[str, Any]:
    memory, encoder = learner.memory, learner.critics.encoder
    images = record_images(learner.layout, (batch.observation[before.shown], batch.next_observation[before.shown]))
    frames = images.pop("frames")
    return {
        **images,
        "random_shift": learner.config.random_shift,
        "features": encoder.size,
        "parameters": sum(parameter.numel() for parameter in encoder.parameters()),
        "transition_bytes": memory.nbytes // memory.capacity,
        "frames": frames,
    }


def _rows(learner: Learner, sample: Sample, batch: Batch, before: Before, update: Update) -> dict[str, Any]:
    config, layout, shown = learner.config, learner.layout, before.shown
    observation, action, reward, next_observation, terminated, discount = (column[shown] for column in batch)
    noise = sample.noise[shown] * config.target_noise
    own_action, own_q1 = before.own_action[shown], None
    if update.delayed:  # the critics have not moved since step 12: these are the values that the actor climbed
        own_q1 = plain(learner.critics.first(before.features[shown], own_action))
    return {
        "row": sample.indices[shown].tolist(),
        "observation": plain(numbers_of(layout, observation)),
        "action": plain(action),
        "reward": plain(reward),
        "next_observation": plain(numbers_of(layout, next_observation)),
        "terminated": (terminated > 0).tolist(),
        "discount": plain(discount),
        "target_action": plain(before.target_action),
        "drawn_noise": plain(noise),
        "noise": plain(noise.clamp(-config.noise_clip, config.noise_clip)),
        "next_action": plain(update.next_action[shown]),
        "next_q1": plain(update.next_q1[shown]),
        "next_q2": plain(update.next_q2[shown]),
        "next_q": plain(update.next_q[shown]),
        "target": plain(update.target[shown]),
        "q1": plain(update.q1[shown]),
        "q2": plain(update.q2[shown]),
        "own_action": plain(own_action) if update.delayed else None,
        "own_q1": own_q1,
    }


def _gradient(learner: Learner, before: Before, update: Update) -> dict[str, float | None]:
    """Computes gradients from Adam's means of them, m ← β·m + (1 − β)·g: those that were used, by whatever engine."""
    gradients: dict[str, list[float]] = {}
    for name, optimizer in optimizers_of(learner, before.networks).items():
        beta: float = optimizer.param_groups[0].get("betas", (0.0,))[0]
        pairs = zip(before.moments[name], gradient_means(optimizer, before.networks[name]), strict=True)
        differences = (
            now if then is None else torch.sub(now, then, alpha=beta) for then, now in pairs if now is not None
        )
        gradients[name] = [length / (1 - beta) for length in lengths(differences, NETWORKS.get(name, 1))]
    critic1, critic2 = gradients["critics"]
    return {
        "critic1": critic1,
        "critic2": critic2,
        "actor": gradients["actor"][0] if update.delayed else None,
        **{name: gradients[name][0] for name in ENCODERS.values() if name in gradients},
    }


def _moved(before: Before, update: Update) -> dict[str, float | None]:
    moved: dict[str, Any] = {}
    for name, network in before.networks.items():
        count = NETWORKS.get(name, 1)
        moves = update.delayed or name in ("critics", "encoder")
        moved[name] = distances(before.parameters[name], network, count) if moves else [None] * count
    return {
        "critic1": moved["critics"][0],
        "critic2": moved["critics"][1],
        "actor": moved["actor"][0],
        "actor_target": moved["actor_target"][0],
        "critic1_target": moved["critic_targets"][0],
        "critic2_target": moved["critic_targets"][1],
        **{name: moved[name][0] for name in ENCODERS.values() if name in moved},
    }


def _apart(before: Before) -> dict[str, float]:
    networks = before.networks
    (actor,) = distances(networks["actor"], networks["actor_target"], 1)
    critic1, critic2 = distances(networks["critics"], networks["critic_targets"], 2)
    apart = {"actor": actor, "critic1": critic1, "critic2": critic2}
    if "encoder" in networks:
        (apart["encoder"],) = distances(networks["encoder"], networks["encoder_target"], 1)
    return apart


def _batch(batch: Batch, before: Before, update: Update) -> dict[str, Any]:
    own_action = before.own_action.cpu().numpy()
    means = ("q1", "q2", "target", "next_q1", "next_q2")
    return {
        "twin_gap": float((update.q1 - update.q2).abs().mean(dtype=torch.float64)),
        "q1_smaller": float((update.next_q1 < update.next_q2).double().mean()),
        "terminated": int((batch.terminated > 0).sum()),
        "saturated": float((np.abs(own_action) > AT_AN_END).mean()),
        "histogram": histogram(own_action[:, :HISTOGRAMS]),
        **{name: float(getattr(update, name).mean(dtype=torch.float64)) for name in means},
    }


def networks_of(learner: Learner) -> dict[str, list[nn.Parameter]]:
    """Returns the parameters of the networks by name; the encoder's apart from its critics', if it has any."""
    networks: dict[str, list[nn.Parameter]] = {}
    for name in NETWORKS:
        parameters = dict(getattr(learner, name).named_parameters())
        networks[name] = [tensor for key, tensor in parameters.items() if not key.startswith("encoder.")]
        encoder = [tensor for key, tensor in parameters.items() if key.startswith("encoder.")]
        if encoder:
            networks[ENCODERS.get(name, f"{name}_encoder")] = encoder
    return networks


def optimizers_of(learner: Learner, networks: dict[str, list[nn.Parameter]]) -> dict[str, Optimizer]:
    """Returns the optimisers by the network that each of them moves."""
    optimizers: dict[str, Optimizer] = {"actor": learner.actor_optimizer, "critics": learner.critics_optimizer}
    return {**optimizers, "encoder": learner.critics_optimizer} if "encoder" in networks else optimizers


def gradient_means(optimizer: Optimizer, parameters: Sequence[Tensor]) -> list[Tensor | None]:
    """Returns Adam's running mean of each parameter's gradient; None before the first step."""
    # Asked with `get`: looking up what is not there would put it there.
    return [optimizer.state.get(parameter, {}).get("exp_avg") for parameter in parameters]


def plain(numbers: Tensor) -> Any:
    """Returns Python's numbers, in as few digits as a float32 is worth; the first of each row of a longer vector."""
    return shortened((numbers[..., :NUMBERS] if numbers.dim() == 2 else numbers).tolist())


def shortened(numbers: Any) -> Any:
    """Rounds nested lists of numbers to seven digits."""
    return [shortened(number) for number in numbers] if isinstance(numbers, list) else float(f"{numbers:.7g}")
