"""The learner as named tensors, the way checkpoints hold it: networks, and the optimisers' state."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from td3.errors import RunError
from td3.interfaces import captured
from td3.learner.td3 import Learner
from td3.replay import AnyMemory


class Stored(Protocol):
    """The parts of a checkpoint that are read here."""

    def has(self, group: str) -> bool:
        """Returns whether it holds named arrays of this group."""

    def tensors(self, group: str, most: int = ...) -> dict[str, Any]:
        """Returns a group as torch tensors, which take at most `most` bytes."""

    def arrays(self, group: str, most: int = ...) -> dict[str, Any]:
        """Returns a group as NumPy arrays, which take at most `most` bytes."""

    def memory_problem(self) -> str:
        """Returns what is wrong with the stored rows of the memory, or ''."""

    def fill(self, memory: AnyMemory, state: Mapping[str, Any]) -> None:
        """Fills the memory with its stored rows; refuses damaged ones."""

    def fill_undamaged(self, memory: AnyMemory) -> tuple[int, list[str]]:
        """Fills the memory with the rows that are undamaged; returns how many are lost, and why."""


FORMER_NAME = "encoder.eyes.", "encoder.parts."  # in checkpoints from before November 2026
LONGEST_REASON = 500  # characters: PyTorch lists every tensor


def capture_learner(learner: Learner) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Returns plain data and named arrays in groups: all but the memory's rows."""
    state = {"updates": learner.updates, "remembered": learner.memory.written}
    groups = {"networks": network_tensors(learner), "optimizers": optimizer_tensors(learner)}
    sampler = captured(learner.sampler)
    return state, {**groups, "sampler": sampler} if sampler else groups


def restore_learner(
    learner: Learner, chosen: Stored, state: dict[str, Any], without_memory: bool, new_sampler: bool = False
) -> tuple[int, list[str]]:
    """Restores what `capture_learner` returned and fills the memory; returns how many rows are lost, and why.

    Rows are lost only where that is allowed: `without_memory`, and some of them are damaged.
    """
    size = bytes_of(network_tensors(learner))  # no file may be larger than what it is read for
    load_networks(learner, chosen.tensors("networks", size))
    load_optimizers(learner, chosen.tensors("optimizers", 2 * size))
    learner.updates = int(state["updates"])
    memory, sampler = learner.memory, learner.sampler
    if without_memory and chosen.memory_problem():
        lost, reasons = chosen.fill_undamaged(memory)
        sampler.added(np.arange(memory.oldest, memory.written) % memory.capacity)
        return lost, [
            f"{lost:,} stored rows are damaged and gone; {memory.written:,} are left, every episode begins again, "
            "and from here on the run is no longer reproducible.",
            *reasons,
        ]
    chosen.fill(memory, state)
    if chosen.has("sampler") and not new_sampler:
        sampler.restore(chosen.arrays("sampler"))
    else:  # it is stateless, or the run had another one
        sampler.added(np.arange(memory.oldest, memory.written) % memory.capacity)
    return 0, []


def network_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor.layers.0.weight' → tensor; the two critics share one tensor."""
    tensors = {
        f"{name}.{key}": on_cpu(tensor)
        for name, network in learner.networks().items()
        for key, tensor in network.state_dict().items()
    }
    pointers: set[int] = set()
    for name, tensor in tensors.items():  # a network that is listed twice, or a layer in two of them: a file each
        if tensor.data_ptr() in pointers:
            tensors[name] = tensor.clone()
        pointers.add(tensor.data_ptr())
    statistics = learner.normalizer.tensors() if learner.normalizer else {}
    return {**tensors, **{f"normalizer.{name}": tensor for name, tensor in statistics.items()}}


def bytes_of(tensors: Mapping[str, Tensor]) -> int:
    """Counts the bytes of these tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def load_networks(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Copies saved numbers into all networks of a learner."""
    for name, network in learner.networks().items():
        load(network, tensors, name)
    if learner.normalizer:
        learner.normalizer.load(part_of(tensors, "normalizer"))


def optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    """'actor_optimizer.0.exp_avg' → tensor, by the index of the parameter; nothing before the first step."""
    return {
        f"{name}.{index}.{key}": on_cpu(value)
        for name, optimizer in learner.optimizers().items()
        for index, state in optimizer.state_dict()["state"].items()
        for key, value in state.items()
        if isinstance(value, Tensor)
    }


def load_optimizers(learner: Learner, tensors: Mapping[str, Tensor]) -> None:
    """Copies saved state into all optimisers of a learner."""
    for name, optimizer in learner.optimizers().items():
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in part_of(tensors, name).items():
            index, _, what = key.partition(".")
            state.setdefault(int(index), {})[what] = value
        if state and not fits(state, optimizer):
            raise RunError(f"The optimisers' file does not fit the run's networks: {name}.")
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def fits(state: Mapping[int, Mapping[str, Tensor]], optimizer: Optimizer) -> bool:
    """Whether every parameter has a state as this optimiser keeps it: numbers, or tensors like the parameter."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if type(optimizer) is not Adam:  # of the user's own: it may move some parameters and not others
        return set(state) <= set(range(len(parameters))) and all(
            value.shape in ((), parameters[index].shape) for index in state for value in state[index].values()
        )
    names = {"step", "exp_avg", "exp_avg_sq"} | ({"max_exp_avg_sq"} if optimizer.param_groups[0]["amsgrad"] else set())
    return set(state) == set(range(len(parameters))) and all(
        set(state[index]) == names
        and all(state[index][name].shape == (() if name == "step" else parameter.shape) for name in names)
        for index, parameter in enumerate(parameters)
    )


def load(network: nn.Module, tensors: Mapping[str, Tensor], name: str) -> None:
    """Copies saved numbers into one network; refuses what does not fit."""
    try:
        network.load_state_dict(part_of(tensors, name))
    except RuntimeError as problem:
        reason = " ".join(str(problem).split())
        raise RunError(
            f"The networks' file does not fit the run's config, or its learner: {reason[:LONGEST_REASON]}"
        ) from None


def part_of(tensors: Mapping[str, Tensor], network: str) -> dict[str, Tensor]:
    """Returns the tensors of one network, under the names that it uses itself."""
    prefix = network + "."
    return {
        name.removeprefix(prefix).replace(*FORMER_NAME): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def on_cpu(tensor: Tensor) -> Tensor:
    """Returns the tensor in main memory, contiguous and without gradient."""
    return tensor.detach().cpu().contiguous()
