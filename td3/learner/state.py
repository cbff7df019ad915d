"""The learner as named tensors, the way checkpoints hold it: networks, and the optimisers' state."""

from collections.abc import Mapping

from torch import Tensor, nn

from td3.errors import RunError
from td3.learner.encoders import Encoder
from td3.learner.networks import Actor
from td3.learner.preprocessing import Normalizer
from td3.learner.td3 import Learner

FORMER_NAME = "eyes.", "parts."  # of an encoder's parts, in checkpoints of a development version
LONGEST_REASON = 500  # characters: PyTorch lists every tensor


def network_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor.layers.0.weight' → tensor; the two critics lie side by side in one tensor."""
    tensors = {
        f"{name}.{key}": on_cpu(tensor)
        for name, network in learner.networks().items()
        for key, tensor in network.state_dict().items()
    }
    statistics = learner.normalizer.tensors() if learner.normalizer else {}
    return {**tensors, **{f"normalizer.{name}": tensor for name, tensor in statistics.items()}}


def bytes_of(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def load_networks(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    for name, network in learner.networks().items():
        load(network, tensors, name)
    if learner.normalizer:
        learner.normalizer.load(part_of(tensors, "normalizer"))


def load_policy(actor: Actor, encoder: Encoder, normalizer: Normalizer | None, tensors: Mapping[str, Tensor]) -> None:
    """What is needed to act, and no more."""
    load(actor, tensors, "actor")
    load(encoder, tensors, "critics.encoder")
    if normalizer:
        normalizer.load(part_of(tensors, "normalizer"))


def optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor_optimizer.0.exp_avg' → tensor, by the index of the parameter; nothing before the first step."""
    return {
        f"{name}.{index}.{key}": on_cpu(value)
        for name, optimizer in learner.optimizers().items()
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
    }


def load_optimizers(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    for name, optimizer in learner.optimizers().items():
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in part_of(tensors, name).items():
            index, _, what = key.partition(".")
            state.setdefault(int(index), {})[what] = value
        parameters = optimizer.param_groups[0]["params"]
        if state and not fits(state, parameters):
            raise RunError(f"The optimizers' file does not fit the run's networks: {name}.")
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def fits(state: Mapping[int, Mapping[str, Tensor]], parameters: list[Tensor]) -> bool:
    return set(state) == set(range(len(parameters))) and all(
        set(state[index]) == {"step", "exp_avg", "exp_avg_sq"}
        and state[index]["step"].shape == ()
        and state[index]["exp_avg"].shape == state[index]["exp_avg_sq"].shape == parameter.shape
        for index, parameter in enumerate(parameters)
    )


def load(network: nn.Module, tensors: Mapping[str, Tensor], name: str) -> None:
    try:
        network.load_state_dict(part_of(tensors, name))
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise RunError(f"The networks' file does not fit the run's config: {reason[:LONGEST_REASON]}") from None


def part_of(tensors: Mapping[str, Tensor], network: str) -> dict[str, Tensor]:
    prefix = network + "."
    return {
        name.removeprefix(prefix).replace(*FORMER_NAME): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def on_cpu(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()
