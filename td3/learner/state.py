"""The learner as named tensors, the way it is kept on disk: networks, and what Adam remembers of them."""

from collections.abc import Mapping

from torch import Tensor, nn

from td3.errors import RunError
from td3.learner.encoders import Encoder
from td3.learner.networks import Actor
from td3.learner.reading import Normalizer
from td3.learner.td3 import Learner

NETWORKS = ("actor", "actor_target", "critics", "critic_targets")
LONGEST_REASON = 500  # characters: PyTorch lists every tensor
OPTIMIZERS = ("actor_optimizer", "critics_optimizer")


def network_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor.layers.0.weight' → tensor; the two critics lie side by side in one tensor."""
    tensors = {
        f"{network}.{name}": kept(tensor)
        for network in NETWORKS
        for name, tensor in getattr(learner, network).state_dict().items()
    }
    read_with = learner.normalizer.tensors() if learner.normalizer else {}
    return {**tensors, **{f"normalizer.{name}": tensor for name, tensor in read_with.items()}}


def bytes_of(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def put_networks(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    for network in NETWORKS:
        put(getattr(learner, network), tensors, network)
    if learner.normalizer:
        learner.normalizer.put(part_of(tensors, "normalizer"))


def put_policy(actor: Actor, encoder: Encoder, normalizer: Normalizer | None, tensors: Mapping[str, Tensor]) -> None:
    """What is needed to act, and no more."""
    put(actor, tensors, "actor")
    put(encoder, tensors, "critics.encoder")
    if normalizer:
        normalizer.put(part_of(tensors, "normalizer"))


def optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor_optimizer.0.exp_avg' → tensor, by the place of the parameter; nothing before the first step."""
    return {
        f"{name}.{place}.{key}": kept(value)
        for name in OPTIMIZERS
        for place, remembered in getattr(learner, name).state_dict()["state"].items()
        for key, value in remembered.items()
    }


def put_optimizers(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    for name in OPTIMIZERS:
        optimizer = getattr(learner, name)
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in part_of(tensors, name).items():
            place, _, what = key.partition(".")
            state.setdefault(int(place), {})[what] = value
        parameters = optimizer.param_groups[0]["params"]
        if state and not fits(state, parameters):
            raise RunError(f"The optimizers' file does not fit the run's networks: {name}.")
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def fits(state: Mapping[int, Mapping[str, Tensor]], parameters: list[Tensor]) -> bool:
    return set(state) == set(range(len(parameters))) and all(
        set(state[place]) == {"step", "exp_avg", "exp_avg_sq"}
        and state[place]["step"].shape == ()
        and state[place]["exp_avg"].shape == state[place]["exp_avg_sq"].shape == parameter.shape
        for place, parameter in enumerate(parameters)
    )


def put(network: nn.Module, tensors: Mapping[str, Tensor], name: str) -> None:
    try:
        network.load_state_dict(part_of(tensors, name))
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise RunError(f"The networks' file does not fit the run's config: {reason[:LONGEST_REASON]}") from None


def part_of(tensors: Mapping[str, Tensor], network: str) -> dict[str, Tensor]:
    prefix = network + "."
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def kept(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous()
