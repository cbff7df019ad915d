"""Makes a learner that this machine can carry: its engine's threads, its device, and room for its networks."""

import contextlib
import os
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch

from td3 import seeding
from td3.config import Config
from td3.errors import ConfigError
from td3.learner import ENGINES, Learner
from td3.replay.room import RESERVE, available, human
from td3.types import Layout


def make_learner(engine: str, config: Config, layout: Layout, action_size: int) -> Learner:
    check_networks(engine, config, layout, action_size)
    seed = int(seeding.sequence(config.seed, "weights").generate_state(1, np.uint64)[0] >> 1)
    with fitting(config):
        learner = ENGINES[engine](layout, action_size, config, seed)
    if config.compile:
        for network in (learner.actor, learner.actor_target, learner.critics, learner.critic_targets):
            network.compile()
    return learner


def check_networks(engine: str, config: Config, layout: Layout, action_size: int) -> None:
    """Refuses networks that cannot fit, before a page of them is touched: the system would kill, not complain."""
    needed = bytes_of_networks(engine, config, layout, action_size)
    room, whose = available()
    if config.device == "cpu" and room is not None and needed > room - RESERVE:
        raise ConfigError(
            f"hidden and batch_size must be smaller here: layers of {','.join(map(str, config.hidden))} and batches of "
            f"{config.batch_size:,} take {human(needed)} for six networks and what they learn with, and {whose} has "
            f"room for {human(room)}."
        )


def bytes_of_networks(engine: str, config: Config, layout: Layout, action_size: int) -> int:
    """Of six networks and all that grows with them, in float32."""

    def parameters(inputs: int, outputs: int) -> int:
        return sum((before + 1) * after for before, after in pairwise((inputs, *config.hidden, outputs)))

    features = config.encoder_features * len(layout.pictures) + layout.numbers
    learned = parameters(features, action_size) + 2 * parameters(features + action_size, 1)
    units = sum(config.hidden)
    for picture in layout.pictures:
        inputs, pixels = layout.stack * picture.channels, picture.height * picture.width
        units += inputs * pixels
        for outputs in config.encoder_channels:
            pixels = -(-pixels // 4)  # each convolution halves width and height
            learned += (9 * inputs + 1) * outputs
            units += outputs * pixels
            inputs = outputs
        learned += (inputs * pixels + 1) * config.encoder_features
    copies = 4  # itself, its target, and two numbers that Adam remembers
    copies += 3 if engine == "native" else 1  # packed for the library's products; or the gradient
    copies += 3 if config.record_updates else 0  # while an update is recorded: how all but the squares were before
    # On the way back through actor and critics, each row of the batch has about seven numbers at every unit.
    return 4 * (copies * learned + 7 * config.batch_size * units)


def check_frames(config: Config, layout: Layout, num_envs: int) -> None:
    """Frames are remembered once, so a transition can be drawn only while those before it are held, too."""
    least = 2 * num_envs * (layout.stack + 1)
    if layout.pictures and config.buffer_size < least:
        raise ConfigError(
            f"buffer_size must be at least {least:,} for stacks of {layout.stack} frames from {num_envs} environments; "
            f"got {config.buffer_size:,}."
        )


@contextlib.contextmanager
def fitting(config: Config) -> Iterator[None]:
    """What does not fit in memory is the config's fault."""
    try:
        yield
    except (MemoryError, RuntimeError) as problem:
        if "alloc" not in str(problem):
            raise
        raise ConfigError(
            f"buffer_size, batch_size and hidden must fit in memory; {config.buffer_size:,} transitions with layers of "
            f"{','.join(map(str, config.hidden))} and batches of {config.batch_size:,} do not."
        ) from problem


def use_threads(threads: int, engine: str = "torch", workers: int = 0) -> int:
    """Sets and tells the number of threads of the update; 0 chooses.

    The native engine takes every core, for it works alone while the others are busy; one stays free for environments
    in processes of their own. PyTorch always leaves one: two threads with one busy core are far slower than one alone.
    """
    if threads == 0:
        free = cores() if engine == "native" and not workers else cores() - 1
        threads = max(1, min(4, free))
    torch.set_num_threads(threads)
    return threads


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device must be cpu here: this PyTorch sees no CUDA GPU; got 'cuda'.")
