"""The learner's networks as named tensors, the way they are kept on disk."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from td3.errors import RunError
from td3.learner.networks import Actor
from td3.learner.td3 import Learner

NETWORKS = ("actor", "actor_target", "critics", "critic_targets")


def tensors_of(learner: Learner) -> dict[str, Tensor]:
    """'actor.layers.0.weight' → tensor; the two critics lie side by side in one tensor."""
    return {
        f"{network}.{name}": tensor.detach().cpu().contiguous()
        for network in NETWORKS
        for name, tensor in getattr(learner, network).state_dict().items()
    }


def put_tensors(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    for network in NETWORKS:
        getattr(learner, network).load_state_dict(part_of(tensors, network))


def put_actor(actor: Actor, path: Path) -> None:
    try:
        actor.load_state_dict(part_of(read_tensors(path), "actor"))
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise RunError(f"{path} does not fit the run's config.json: {reason}") from problem


def part_of(tensors: Mapping[str, Tensor], network: str) -> dict[str, Tensor]:
    prefix = network + "."
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except OSError as problem:
        raise RunError(f"{path} cannot be read: {problem.strerror or problem}.") from problem
    except (SafetensorError, ValueError) as problem:
        raise RunError(f"{path} is damaged: {problem}.") from problem
