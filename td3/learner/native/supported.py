"""Checks that the native library can work on the networks and optimisers: it writes to their memory unchecked."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from td3.learner.encoders import VectorEncoder
from td3.learner.networks import Actor, Critics, TwinLinear
from td3.learner.td3 import Learner

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
    networks = (learner.actor, learner.actor_target, learner.critics, learner.critic_targets)
    tensors = [tensor.data_ptr() for network in networks for tensor in tensors_of(network)]
    if len(set(tensors)) < len(tensors):
        raise Unsupported("two networks or layers share their weights")
    check_adam(learner.actor_optimizer, learner.actor, "actor_optimizer")
    check_adam(learner.critics_optimizer, learner.critics, "critics_optimizer")


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


def check_layers(layers: Any, name: str, linear: type[nn.Module], sizes: Sequence[int] | None) -> None:
    """Requires linear layers with a ReLU between any two of them, and nothing else."""
    check_module(layers, name, nn.Sequential, parts=None)
    parts: list[Any] = list(layers._modules.values())  # `children` skips a layer that occurs twice
    for index, layer in enumerate(parts):
        kind, tensors = (nn.ReLU, []) if index % 2 else (linear, ["weight", "bias"])
        check_module(layer, f"{name}[{index}]", kind, tensors=tensors)
    if len(parts) % 2 == 0 or (sizes is not None and len(parts) != 2 * len(sizes) - 3):
        wanted = "an odd number" if sizes is None else 2 * len(sizes) - 3
        raise Unsupported(f"{name} has {len(parts)} layers, not {wanted}")
    if sizes is None:
        sizes = [parts[0].in_features, *(layer.out_features for layer in parts[::2])]
    for index, (inputs, outputs) in enumerate(pairwise(sizes)):
        shapes = [(2, inputs, outputs), (2, 1, outputs)] if linear is TwinLinear else [(outputs, inputs), (outputs,)]
        for part, shape in zip(("weight", "bias"), shapes, strict=True):
            check_tensor(parts[2 * index]._parameters[part], f"{name}[{2 * index}].{part}", shape)


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
    return [tensor for layer in list(network.layers)[::2] for tensor in (layer.weight, layer.bias)]
