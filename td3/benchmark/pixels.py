"""Who learns from images, ours and Stable-Baselines3 with the same layers, frames and batch, and what they remember.

SBX is not among them: its TD3 has no convolutions.
"""

import importlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray
from torch import Tensor, nn

from td3.benchmark.cases import ImageCase
from td3.benchmark.libraries import DummyEnv, Library, StableBaselines, Td3Library, Workload, fill
from td3.learner import Learner
from td3.learner.encoders import ImageEncoder
from td3.learner.networks import initialise
from td3.replay import make_memory
from td3.replay.links import Links
from td3.types import Transitions

EPISODE = 100  # transitions: short, for ours keeps one frame more than an episode has transitions
SHARED = {"an encoder each": False, "one shared": True}  # by actor and critics of Stable-Baselines3
SAVING = "optimize_memory_usage"


class ImageWorkload(NamedTuple):
    """Someone who learns from images."""

    name: str
    run: Workload
    encoders: list[nn.Module]  # of actor, critics and their targets, each once


class Passes(NamedTuple):
    """How often a batch goes through an encoder in one update, averaged over the policy's delay."""

    forward: float
    back: float


class Kept(NamedTuple):
    """A full memory."""

    name: str
    bytes: int  # of all arrays that have a place for every row
    transitions: int  # that can be drawn


def image_workloads(case: ImageCase, found: Iterable[Library], rows: Transitions) -> Iterator[ImageWorkload]:
    """All there are on this machine, ours first; they remember the same rows."""
    for library in among(found):
        if isinstance(library, Td3Library):
            settings = {name: getattr(case, name) for name in ("encoder_channels", "encoder_features")}
            learner = Learner(case.layout, case.actions, library.config("none", case, case.rows, **settings), 0)
            learner.memory.add(rows)
            yield ImageWorkload(
                library.name, library.learning(learner), [learner.critics.encoder, learner.critic_targets.encoder]
            )
        else:
            models = {kind: model_of(case, library, shared) for kind, shared in SHARED.items()}
            buffer = next(iter(models.values())).replay_buffer
            fill(buffer, rows)
            for kind, model in models.items():
                model.replay_buffer = buffer  # large, and only read from now on: one for all
                networks = (model.actor, model.actor_target, model.critic, model.critic_target)
                encoders = list(dict.fromkeys(network.features_extractor for network in networks))
                yield ImageWorkload(f"{library.name}, {kind}", partial(train, model, case.batch), encoders)


def among(found: Iterable[Library]) -> Iterator[Td3Library | StableBaselines]:
    """Those that read images."""
    for library in found:
        if isinstance(library, Td3Library | StableBaselines) and library.name in ("td3 torch", "Stable-Baselines3"):
            yield library


def model_of(case: ImageCase, library: StableBaselines, shared: bool) -> Any:
    """Makes Stable-Baselines3's TD3 for images, with one shared encoder or an encoder each."""
    model = library.model(
        DummyEnv(space_of(case), case.actions),
        case,
        case.rows,
        "CnnPolicy",
        features_extractor_class=Extractor,
        features_extractor_kwargs={"case": case},
        share_features_extractor=shared,
    )
    model.learn(1)  # sets up what its training needs
    return model


def space_of(case: ImageCase) -> Box:
    """The stack as channels: so Stable-Baselines3 reads it."""
    return Box(0, 255, (case.stack * case.channels, case.side, case.side), np.uint8)


def train(model: Any, batch: int, count: int) -> None:
    """Performs `count` updates."""
    model.train(gradient_steps=count, batch_size=batch)


class Extractor(nn.Module):
    """The layers of our own encoder, as Stable-Baselines3 takes them: it has made the bytes numbers before."""

    def __init__(self, _space: Box, case: ImageCase) -> None:
        super().__init__()
        self.features_dim = case.encoder_features
        (part,) = case.layout.parts
        encoder = ImageEncoder(part, case.stack, case.encoder_channels, case.encoder_features)
        initialise(encoder, torch.Generator().manual_seed(0))
        self.layers = nn.Sequential(encoder.convolutions, nn.Flatten(), encoder.joined, encoder.norm, nn.Tanh())

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps (B, channels, H, W) to (B, features)."""
        features: Tensor = self.layers(pixels)
        return features


def passes(workload: ImageWorkload) -> Passes:
    """Counted in two updates, one of which moves the actor."""
    forward, back = [], []

    def count(_module: nn.Module, _pixels: Any, features: Tensor) -> None:
        """Counts a forward pass, and its backward pass if it has one."""
        forward.append(features.shape)
        if features.requires_grad:
            features.register_hook(lambda gradient: back.append(gradient.shape))

    hooks = [encoder.register_forward_hook(count) for encoder in workload.encoders]
    workload.run(2)
    for hook in hooks:
        hook.remove()
    return Passes(len(forward) / 2, len(back) / 2)


def memories(case: ImageCase, found: Iterable[Library], rows: Transitions) -> Iterator[Kept]:
    """Memories for so many rows, each filled with them."""
    for library in among(found):
        if isinstance(library, Td3Library):
            memory = make_memory(case.rows, case.layout, case.actions, n_step=1, gamma=0.99)
            memory.add(rows)
            yield Kept("td3", held(memory, case.rows), len(memory))
        else:
            for name, settings in {"": {}, f", {SAVING}": {SAVING: True, "handle_timeout_termination": False}}.items():
                buffer = buffer_of("ReplayBuffer", case.rows, space_of(case), case.actions, **settings)
                fill(buffer, rows)
                # Where s' is the next row's s, the newest row has none yet: it is not drawn.
                yield Kept(library.name + name, held(buffer, case.rows), case.rows - bool(settings))


def refusals(found: Iterable[Library]) -> dict[str, str]:
    """What Stable-Baselines3 itself says of its memory that keeps s' as the next row's s, by what was asked of it."""
    if not any(isinstance(library, StableBaselines) for library in among(found)):
        return {}
    image = Box(0, 255, (3, 8, 8), np.uint8)
    asked: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "to know a time limit from an end": ("ReplayBuffer", image, {}),
        "to keep a Dict": ("DictReplayBuffer", Dict({"eye": image}), {"handle_timeout_termination": False}),
    }
    said = {}
    for what, (kind, space, settings) in asked.items():
        try:
            buffer_of(kind, 8, space, 1, **{SAVING: True}, **settings)
        except (AssertionError, ValueError) as refusal:
            said[what] = str(refusal)
    return said


def buffer_of(kind: str, rows: int, space: Any, actions: int, **settings: Any) -> Any:
    """Makes a replay buffer of Stable-Baselines3."""
    buffers = importlib.import_module("stable_baselines3.common.buffers")
    return getattr(buffers, kind)(rows, space, Box(-1, 1, (actions,), np.float32), "cpu", **settings)


def held(memory: Any, rows: int) -> int:
    """Bytes of all arrays in it that have a place for every row."""
    return sum(array.nbytes for array in arrays(vars(memory)) if len(array) == rows)


def arrays(thing: Any) -> Iterator[NDArray[Any]]:
    """Yields the arrays in a memory's attributes."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict | Links):
        for part in (thing if isinstance(thing, dict) else vars(thing)).values():
            yield from arrays(part)


def some_images(case: ImageCase) -> Transitions:
    """So many transitions, in episodes that are all of one length and terminate."""
    rng, layout, episodes = np.random.default_rng(0), case.layout, -(-case.rows // EPISODE)
    frames = rng.integers(0, 256, (episodes, EPISODE + 1, layout.frame), np.uint8)
    ends_with = np.arange(EPISODE + 1)[:, None] + np.arange(1 - layout.stack, 1)
    seen = frames[:, np.maximum(ends_with, 0)].reshape(episodes, EPISODE + 1, layout.size)
    step = np.tile(np.arange(EPISODE), episodes)[: case.rows]
    return Transitions(
        observation=seen[:, :-1].reshape(-1, layout.size)[: case.rows],
        action=rng.uniform(-1, 1, (len(step), case.actions)).astype(np.float32),
        reward=rng.standard_normal(len(step), dtype=np.float32),
        next_observation=seen[:, 1:].reshape(-1, layout.size)[: case.rows],
        terminated=step == EPISODE - 1,
        env=np.zeros(len(step), np.int32),
        first=step == 0,
    )
