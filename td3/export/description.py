"""Describes an agent's policy as a graph: from the environment's own observations to its own actions."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from td3.config import Config, env_name
from td3.environments import ActionMap, ObservationMap, Wrappers
from td3.environments.images import arrangement
from td3.environments.observations import CategoryLeaf, ImageLeaf, Leaf, VectorLeaf
from td3.environments.structure import ObservedArray, Path, arrays_in
from td3.errors import ConfigError
from td3.export.graph import Graph, Input, Join, Normalise, Op, ReadImage, ReadNumbers, Unscale
from td3.export.modules import add_actor, add_encoder
from td3.export.naming import distinct, identifier
from td3.learner import Learner
from td3.learner.encoders import CombinedEncoder, VectorEncoder
from td3.learner.native.supported import Unsupported, check_module
from td3.learner.preprocessing import CLIP, SMALLEST_VARIANCE, Normalizer
from td3.version import VERSION

KINDS: dict[type[Leaf], str] = {VectorLeaf: "vector", CategoryLeaf: "category", ImageLeaf: "image"}
LONGEST_NAME = 60  # characters


def describe(
    learner: Learner, observation: ObservationMap, action: ActionMap, config: Config, step: int, name: str
) -> Graph:
    """Describes the policy of a learner; refuses networks, observations and policies that td3 does not know."""
    try:
        if type(learner).policy is not Learner.policy or "policy" in vars(learner):
            raise Unsupported(f"{type(learner).__name__} has a policy of its own")
        inputs = inputs_of(observation)
        ops = list(_encoded(learner, observation, inputs))
        add_actor(learner.actor, "actor", ops)
        if ops[-1].shape != (action.size,):
            raise Unsupported(f"the actor makes {ops[-1].shape} and not ({action.size},)")
        ops.append(unscale_of(action, len(ops) - 1))
    except Unsupported as problem:
        raise ConfigError(f"This policy cannot be exported: {problem}.") from None
    return Graph(name, inputs, tuple(ops), _about(inputs, action, learner, config, step))


def inputs_of(observation: ObservationMap) -> tuple[Input, ...]:
    """Lists the arrays that a policy takes, in the order of the observation's leaves."""
    arrays = arrays_in(observation)
    names = distinct(_name(array.path) for array in arrays)
    return tuple(_input(array, name) for array, name in zip(arrays, names, strict=True))


def _name(path: Path) -> str:
    """Names an input by the keys that lead to it."""
    text = "_".join(identifier(str(key), "part") for key in path)[:LONGEST_NAME]
    return identifier(text, "part") if path else "observation"


def _input(array: ObservedArray, name: str) -> Input:
    for leaf in array.leaves:
        if type(leaf) not in KINDS:
            raise Unsupported(f"{leaf.name} is of the kind {leaf.kind!r}, which is not td3's own")
    first = array.leaves[0]
    kind, shape, fields = KINDS[type(first)], array.shape, dict[str, Any]()
    if kind == "image":
        shape = shape[1:] if first.stack > 1 else shape
        fields = _image(shape)
    elif kind == "category":
        fields["categories"] = tuple((leaf.start, leaf.size) for leaf in array.leaves if isinstance(leaf, CategoryLeaf))
    else:
        fields = {"low": array.low, "high": array.high}
    return Input(name, array.path, kind, shape, first.stack, array.dtype, **fields)


def _image(shape: tuple[int, ...]) -> dict[str, Any]:
    """Returns the planes of one frame, and where its frames, channels, rows and columns are."""
    order, (frames, height, width, channels) = arrangement(shape)
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    leading = [steps[axis] for axis in order[:-2]]  # of frames and channels, as far as there are any
    if len(shape) == 4:
        frame, channel = leading
    else:
        frame, channel = 0, (leading[0] if leading else 0)
    strides = (frame, channel, steps[order[-2]], steps[order[-1]])
    return {"planes": (frames, channels, height, width), "strides": strides}


def _encoded(learner: Learner, observation: ObservationMap, inputs: tuple[Input, ...]) -> Iterator[Op]:
    """Yields the operations from the inputs to the features: those of images first, then the numbers."""
    layout, encoder = observation.layout, learner.critics.encoder
    images = [one for one in inputs if one.kind == "image"]
    numbers = tuple(one for one in inputs if one.kind != "image" and one.size)
    ops: list[Op] = []
    parts: list[int] = []  # the values that the features are made of
    if type(encoder) is CombinedEncoder:
        check_module(encoder, "encoder", CombinedEncoder, parts=["parts"])
        modules = list(encoder.parts)
        for index, module in enumerate(modules[len(images) :], len(images)):
            check_module(module, f"encoder.parts[{index}]", VectorEncoder)
    else:
        check_module(encoder, "encoder", VectorEncoder)
        modules = []
    for index, (image, module) in enumerate(zip(images, modules, strict=False)):
        frames, channels, height, width = image.planes
        ops.append(ReadImage((), (image.stack * frames * channels, height, width), image))
        add_encoder(module, f"encoder.parts[{index}]", ops)
        parts.append(len(ops) - 1)
    if numbers:
        shape = (layout.history, layout.step_numbers)
        ops.append(ReadNumbers((), shape, numbers))
        if learner.normalizer:
            ops.append(_normalise(learner.normalizer, shape, len(ops) - 1))
        parts.append(len(ops) - 1)
    ops.append(Join(tuple(parts), (sum(math.prod(ops[part].shape) for part in parts),)))
    yield from ops


def _normalise(normalizer: Normalizer, shape: tuple[int, ...], taken: int) -> Normalise:
    if type(normalizer) is not Normalizer or len(normalizer.mean) != shape[1]:
        raise Unsupported(f"the normalizer is a {type(normalizer).__name__} that leaves some numbers as they are")
    count = float(normalizer.count)
    variance = normalizer.squares / count if count > 1 else np.ones_like(normalizer.squares)
    scale = 1 / np.sqrt(variance + SMALLEST_VARIANCE)
    if not (np.isfinite(normalizer.mean).all() and np.isfinite(scale).all()):
        raise Unsupported("the statistics of the observations are not finite")
    return Normalise((taken,), shape, normalizer.mean.copy(), scale, CLIP)


def unscale_of(action: ActionMap, taken: int) -> Unscale:
    """Makes the operation from [−1, 1] to the environment's units; dimensions that are no choice have no width."""
    low, high = (bound.reshape(-1) for bound in action.bounds)
    free = low < high
    source = np.where(free, np.cumsum(free) - 1, 0).astype(np.int64)
    centre, half = np.where(free, low + (high - low) / 2, low), np.where(free, (high - low) / 2, 0.0)
    dtype = "float32" if np.dtype(action.dtype).itemsize <= 4 else "float64"
    return Unscale((taken,), tuple(action.shape), source, centre, half, low, high, dtype)


def _about(inputs: tuple[Input, ...], action: ActionMap, learner: Learner, config: Config, step: int) -> dict[str, Any]:
    """Returns what to know of a policy, as plain data; the same data is in every format."""
    wrappers = Wrappers.of(config)
    prepared = {
        name: getattr(wrappers, name) for name in wrappers.asked_for if name not in ("frame_stack", "history")
    }  # what the caller has to do as training did: render, resize, make grey, repeat actions
    low, high = action.bounds
    return {
        "made_by": f"td3 {VERSION}",
        "env": env_name(config.env),
        "step": step,
        "normalized": learner.normalizer is not None,
        "prepare": prepared,
        "inputs": [_about_input(one) for one in inputs if one.size],
        "action": {
            "shape": list(action.shape),
            "dtype": np.dtype(action.dtype).name,
            "low": low.tolist(),
            "high": high.tolist(),
        },
    }


def _about_input(one: Input) -> dict[str, Any]:
    data = {
        "name": one.name,
        "path": list(one.path),
        "kind": one.kind,
        "shape": list(one.shape),
        "stack": one.stack,
        "dtype": one.dtype,
    }
    if one.kind == "image":
        data |= {"low": 0, "high": 255}
    elif one.categories:
        data["categories"] = [{"first": first, "count": count} for first, count in one.categories]
    elif one.low is not None and one.high is not None:
        data |= {"low": _alike(one.low), "high": _alike(one.high)}
    return data


def _alike(bound: Any) -> Any:
    """One number where all are alike."""
    return bound.flat[0].item() if bound.size and (bound == bound.flat[0]).all() else bound.tolist()
