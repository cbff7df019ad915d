"""Checks that the native library can work on the networks and optimisers: it writes to their memory unchecked."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from td3.learner.embeddings import EmbeddedActor, EmbeddedCritics, Embedding
from td3.learner.encoders import VectorEncoder
from td3.learner.networks import Actor, Critics, TwinLinear
from td3.learner.td3 import Learner
from td3.learner.td7 import TD7Learner

# PyTorch's defaults for Adam, which source/adam.inl implements; only the learning rate may differ.
ADAM = {
    "betas": (0.9, 0.999),
    "eps": 1e-8,
    "weight_decay": 0,
    "amsgrad": False,
    "maximize": False,
    "differentiable": False,
    "decoupled_weight_decay": False,
}
MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")
OPTIMIZER_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


class Unsupported(Exception):
    """Why the native engine cannot work on something, in words that end a sentence."""


def check_learner(learner: Learner) -> None:
    """Requires networks of the config's sizes, each with its target, and a plain Adam for each."""
    inputs, actions, hidden = learner.layout.numbers, learner.action_size, learner.config.actor_layers
    for name, network in (("actor", learner.actor), ("actor_target", learner.actor_target)):
        check_actor(network, name, (inputs, *hidden, actions))
    for name, critics in (("critics", learner.critics), ("critic_targets", learner.critic_targets)):
        check_critics(critics, name, inputs, (inputs + actions, *hidden, 1))
    check_separate(learner.actor, learner.actor_target, learner.critics, learner.critic_targets)
    check_adam(learner.actor_optimizer, learner.actor, "actor_optimizer")
    check_adam(learner.critics_optimizer, learner.critics, "critics_optimizer")


def check_td7_learner(learner: TD7Learner) -> None:
    """Requires an embedding in three copies, networks that take it, each with its target, and an Adam for each."""
    sizes = (learner.layout.numbers, learner.config.embedding_size)
    actions, config = learner.action_size, learner.config
    for name, actor in (("actor", learner.actor), ("actor_target", learner.actor_target)):
        check_embedded_actor(actor, name, sizes, (*config.actor_layers, actions))
    first, z = config.critic_layers[0], sizes[1]
    for name, critics in (("critics", learner.critics), ("critic_targets", learner.critic_targets)):
        check_module(critics, name, EmbeddedCritics, parts=["encoder", "linear", "layers"])
        check_splits(critics, name, sizes)
        check_linear(critics.linear, f"{name}.linear", TwinLinear, sizes[0] + actions, first)
        check_layers(critics.layers, f"{name}.layers", TwinLinear, (first + 2 * z, *config.critic_layers, 1), nn.ELU)
    encoders = {"embedding": learner.embedding, "critics.encoder": learner.critics.encoder}
    for name, encoder in (encoders | {"critic_targets.encoder": learner.critic_targets.encoder}).items():
        check_embedding(encoder, name, sizes, actions, config.embedding_hidden)
    networks = (learner.actor, learner.actor_target, learner.critics, learner.critic_targets)
    check_separate(*networks, *encoders.values(), learner.critic_targets.encoder)
    check_adam(learner.actor_optimizer, learner.actor, "actor_optimizer")
    check_adam(learner.critics_optimizer, learner.critics, "critics_optimizer")
    check_adam(learner.embedding_optimizer, learner.embedding, "embedding_optimizer")


def check_embedded_actor(actor: Any, name: str, sizes: tuple[int, int], outputs: Sequence[int]) -> None:
    """Requires an actor that takes s and z^s of these sizes, with layers of so many outputs."""
    check_module(actor, name, EmbeddedActor, parts=["linear", "layers"])
    check_splits(actor, name, sizes)
    check_linear(actor.linear, f"{name}.linear", nn.Linear, sizes[0], outputs[0])
    check_layers(actor.layers, f"{name}.layers", nn.Linear, (outputs[0] + sizes[1], *outputs))


def check_embedding(
    embedding: Any, name: str, sizes: tuple[int, int], actions: int | None, hidden: Sequence[int]
) -> None:
    """Requires an f, and a g unless `actions` is None, of these sizes."""
    check_module(embedding, name, Embedding, parts=["f", "g"])
    check_layers(embedding.f, f"{name}.f", nn.Linear, (sizes[0], *hidden, sizes[1]), nn.ELU)
    if actions is not None:
        check_layers(embedding.g, f"{name}.g", nn.Linear, (sizes[1] + actions, *hidden, sizes[1]), nn.ELU)


def check_splits(network: Any, name: str, sizes: tuple[int, int]) -> None:
    """Requires that a network takes its features apart where s ends and z^s begins."""
    if tuple(network.sizes) != sizes:
        raise Unsupported(f"{name} takes features of {tuple(network.sizes)}, not {sizes}")


def check_separate(*networks: Any) -> None:
    """Requires that no two networks or layers have a tensor in common."""
    tensors = [tensor.data_ptr() for network in networks for tensor in tensors_of(network)]
    if len(set(tensors)) < len(tensors):
        raise Unsupported("two networks or layers share their weights")


def check_actor(actor: Any, name: str = "actor", sizes: Sequence[int] | None = None) -> None:
    """Requires a plain actor with these sizes of input, hidden layers and output; None allows any."""
    check_module(actor, name, Actor, parts=["layers"])
    check_layers(actor.layers, f"{name}.layers", nn.Linear, sizes)


def check_critics(critics: Any, name: str, inputs: int, sizes: Sequence[int]) -> None:
    """Requires two plain critics that read vectors of `inputs` numbers."""
    check_module(critics, name, Critics, parts=["encoder", "layers"])
    check_module(critics.encoder, f"{name}.encoder", VectorEncoder)
    if critics.encoder.size != inputs:
        raise Unsupported(f"{name}.encoder reads {critics.encoder.size} numbers, not {inputs}")
    check_layers(critics.layers, f"{name}.layers", TwinLinear, sizes)


def check_layers(
    layers: Any, name: str, linear: type[nn.Module], sizes: Sequence[int] | None, activation: type[nn.Module] = nn.ReLU
) -> None:
    """Requires linear layers with a ReLU, or another activation, between any two of them, and nothing else."""
    check_module(layers, name, nn.Sequential, parts=None)
    parts: list[Any] = list(layers._modules.values())  # `children` skips a layer that occurs twice
    for index, layer in enumerate(parts):
        kind, tensors = (activation, []) if index % 2 else (linear, ["weight", "bias"])
        check_module(layer, f"{name}[{index}]", kind, tensors=tensors)
        if kind is nn.ELU and layer.alpha != 1:
            raise Unsupported(f"{name}[{index}] has alpha {layer.alpha}, not 1")
    if len(parts) % 2 == 0 or (sizes is not None and len(parts) != 2 * len(sizes) - 3):
        wanted = "an odd number" if sizes is None else 2 * len(sizes) - 3
        raise Unsupported(f"{name} has {len(parts)} layers, not {wanted}")
    if sizes is None:
        sizes = [parts[0].in_features, *(layer.out_features for layer in parts[::2])]
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        check_linear(parts[2 * index], f"{name}[{2 * index}]", linear, inputs, outputs)


def check_linear(layer: Any, name: str, linear: type[nn.Module], inputs: int, outputs: int) -> None:
    """Requires a linear layer of these sizes."""
    check_module(layer, name, linear, tensors=["weight", "bias"])
    shapes = [(2, inputs, outputs), (2, 1, outputs)] if linear is TwinLinear else [(outputs, inputs), (outputs,)]
    for part, shape in zip(("weight", "bias"), shapes, strict=True):
        check_tensor(layer._parameters[part], f"{name}.{part}", shape)


def check_module(
    module: nn.Module, name: str, kind: type[nn.Module], parts: Collection[str] | None = (), tensors: Sequence[str] = ()
) -> None:
    """Requires exactly this class, with these parts and tensors alone, and no hook or forward of its own."""
    if type(module) is not kind:
        raise Unsupported(f"{name} is a {type(module).__name__}, not a {kind.__name__}")
    held = {*module._modules, *module._parameters, *module._buffers}
    if parts is not None and held != {*parts, *tensors}:
        raise Unsupported(f"{name} holds {', '.join(sorted(held)) or 'nothing'}")
    if "forward" in vars(module) or any(getattr(module, hooks, None) for hooks in MODULE_HOOKS):
        raise Unsupported(f"{name} has a hook or a forward of its own, which would not be called")


def check_tensor(tensor: Any, name: str, shape: Sequence[int]) -> None:
    """Requires a contiguous float32 tensor of this shape on the CPU."""
    if not isinstance(tensor, Tensor) or tuple(tensor.shape) != tuple(shape):
        raise Unsupported(f"{name} has the shape {tuple(getattr(tensor, 'shape', ()))}, not {tuple(shape)}")
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
        raise Unsupported(f"{name} is {tensor.dtype} on {tensor.device}, not torch.float32 on cpu")
    if tensor.layout != torch.strided or not tensor.is_contiguous():
        raise Unsupported(f"{name} is not contiguous")


def check_adam(optimizer: Any, network: Any, name: str) -> None:
    """Requires an Adam over all of the network's parameters with PyTorch's defaults, but for the learning rate."""
    if type(optimizer) is not Adam:
        raise Unsupported(f"{name} is a {type(optimizer).__name__}, not an Adam")
    own_step = "step" in vars(optimizer) and not hasattr(optimizer.step, "_wrapped_by_lr_sched")
    if own_step or any(getattr(optimizer, hooks, None) for hooks in OPTIMIZER_HOOKS):
        raise Unsupported(f"{name} has a hook or a step of its own, which would not be called")
    optimised = [id(tensor) for group in optimizer.param_groups for tensor in group["params"]]
    if len(optimizer.param_groups) != 1 or optimised != [id(tensor) for tensor in tensors_of(network)]:
        raise Unsupported(f"{name} does not move all of its network alike")
    (group,) = optimizer.param_groups
    if not isinstance(group["lr"], float | int):
        raise Unsupported(f"{name} has an lr that is a {type(group['lr']).__name__}, not a number")
    for setting, usual in ADAM.items():
        if group.get(setting, usual) != usual:
            raise Unsupported(f"{name} has {setting} {group[setting]}, not {usual}")
    steps = set()
    for index, tensor in enumerate(group["params"]):
        if not tensor.requires_grad or any(getattr(tensor, hooks, None) for hooks in TENSOR_HOOKS):
            raise Unsupported(f"{name} is to leave parameter {index} as it is, or to call a hook of it")
        if optimizer.state:  # empty before the first step
            state = optimizer.state.get(tensor, {})
            for key, shape in (("exp_avg", tensor.shape), ("exp_avg_sq", tensor.shape), ("step", ())):
                check_tensor(state.get(key), f"{name}.state[{index}][{key!r}]", shape)
            steps.add(float(state["step"]))
    if len(steps) > 1:
        raise Unsupported(f"{name} has moved some parameters more often than others")


def tensors_of(network: Any) -> list[Tensor]:
    """Returns weight and bias of each linear layer of a checked network, in the library's order."""
    layers: list[Any]
    if isinstance(network, Embedding):
        layers = [*list(network.f)[::2], *list(network.g)[::2]]
    else:
        own = [network.linear] if isinstance(network, EmbeddedActor | EmbeddedCritics) else []
        layers = [*own, *list(network.layers)[::2]]
    return [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
