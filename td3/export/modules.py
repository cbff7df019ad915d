"""PyTorch modules as operations; a module that is not listed here is refused by its name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from td3.export.graph import Convolution, LayerNorm, Linear, Op, Relu, Tanh
from td3.learner.encoders import ImageEncoder
from td3.learner.native.supported import Unsupported, check_module
from td3.learner.networks import Actor

Ops = list[Op]


def add_actor(actor: nn.Module, name: str, ops: Ops) -> None:
    """Adds the operations of an actor that reads the last value."""
    if type(actor) is Actor:
        check_module(actor, name, Actor, parts=["layers"])
        add_module(actor.layers, f"{name}.layers", ops)
        ops.append(Tanh((len(ops) - 1,), ops[-1].shape))
    else:  # one of the user's own: a Sequential of layers that are known
        add_module(actor, name, ops)


def add_encoder(encoder: nn.Module, name: str, ops: Ops) -> None:
    """Adds the operations of an image encoder that reads the last value."""
    check_module(encoder, name, ImageEncoder, parts=["convolutions", "joined", "norm"])
    for part in ("convolutions", "joined", "norm"):
        add_module(getattr(encoder, part), f"{name}.{part}", ops)
    ops.append(Tanh((len(ops) - 1,), ops[-1].shape))


def add_module(module: nn.Module, name: str, ops: Ops) -> None:
    """Adds the operations of a module that reads the last value."""
    add = MODULES.get(type(module))
    if add is None:
        known = ", ".join(kind.__name__ for kind in MODULES)
        raise Unsupported(f"{name} is a {type(module).__name__}, and these layers can be exported: {known}")
    check_module(module, name, type(module), parts=None)
    add(module, name, ops)


def _add_sequence(layers: Any, name: str, ops: Ops) -> None:
    for index, layer in enumerate(layers._modules.values()):
        add_module(layer, f"{name}[{index}]", ops)


def _add_linear(layer: Any, name: str, ops: Ops) -> None:
    weight = numbers_of(layer.weight, f"{name}.weight")
    bias = np.zeros(len(weight), np.float32) if layer.bias is None else numbers_of(layer.bias, f"{name}.bias")
    ops.append(Linear((len(ops) - 1,), (len(weight),), weight, bias))


def _add_convolution(layer: Any, name: str, ops: Ops) -> None:
    (stride, other), padding = layer.stride, layer.padding
    plain = stride == other and layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    if not plain or isinstance(padding, str) or padding[0] != padding[1]:
        raise Unsupported(f"{name} is a Conv2d with groups, dilation or another kind of padding")
    weight = numbers_of(layer.weight, f"{name}.weight")
    bias = np.zeros(len(weight), np.float32) if layer.bias is None else numbers_of(layer.bias, f"{name}.bias")
    _, height, width = ops[-1].shape
    rows, columns = (
        (side + 2 * padding[0] - kernel) // stride + 1
        for side, kernel in zip((height, width), weight.shape[2:], strict=True)
    )
    ops.append(Convolution((len(ops) - 1,), (len(weight), rows, columns), weight, bias, stride, padding[0]))


def _add_layer_norm(layer: Any, name: str, ops: Ops) -> None:
    shape = ops[-1].shape
    if tuple(layer.normalized_shape) != shape:
        raise Unsupported(f"{name} is a LayerNorm over {tuple(layer.normalized_shape)}, not over {shape}")
    weight = np.ones(shape, np.float32) if layer.weight is None else numbers_of(layer.weight, f"{name}.weight")
    bias = np.zeros(shape, np.float32) if layer.bias is None else numbers_of(layer.bias, f"{name}.bias")
    ops.append(LayerNorm((len(ops) - 1,), shape, weight, bias, float(layer.eps)))


def _add_relu(layer: Any, name: str, ops: Ops) -> None:  # noqa: ARG001
    ops.append(Relu((len(ops) - 1,), ops[-1].shape))


def _add_tanh(layer: Any, name: str, ops: Ops) -> None:  # noqa: ARG001
    ops.append(Tanh((len(ops) - 1,), ops[-1].shape))


def _add_nothing(layer: Any, name: str, ops: Ops) -> None:
    """Adds nothing for a layer that passes its input on."""


MODULES: dict[type[nn.Module], Callable[[Any, str, Ops], None]] = {
    nn.Linear: _add_linear,
    nn.ReLU: _add_relu,
    nn.Tanh: _add_tanh,
    nn.LayerNorm: _add_layer_norm,
    nn.Conv2d: _add_convolution,
    nn.Identity: _add_nothing,
    nn.Sequential: _add_sequence,
}


def numbers_of(tensor: Tensor, name: str) -> NDArray[np.float32]:
    """Returns a tensor's numbers; refuses those that are not finite or not float32."""
    if tensor.dtype != torch.float32:
        raise Unsupported(f"{name} is {tensor.dtype}, not torch.float32")
    array: NDArray[np.float32] = tensor.detach().cpu().contiguous().numpy().copy()
    if not np.isfinite(array).all():
        raise Unsupported(f"{name} holds numbers that are not finite")
    return array
