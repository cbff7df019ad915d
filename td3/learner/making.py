"""Makes a learner that this machine can carry: its engine, the threads of that, its device, and room for networks."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch

from td3 import seeding
from td3.config import Config
from td3.environments.descriptions import describe_layout
from td3.errors import ConfigError
from td3.interfaces import MakeSampler
from td3.learner import Learner, choose_engine, switched
from td3.learner.encoders import VectorEncoder, encoder_of
from td3.learner.networks import own_stream
from td3.learner.preprocessing import is_normalised, is_shifted
from td3.machine import RESERVE, available, human
from td3.replay import UniformSampler, smallest_capacity
from td3.types import Layout


def make_learner(
    engine: str,
    config: Config,
    layout: Layout,
    action_size: int,
    kind: Callable[..., Learner] = Learner,
    sampler: MakeSampler = UniformSampler,
) -> Learner:
    """Makes a learner, with room for what `engine` needs too; `hand_over` gives it to an engine."""
    seed = int(seeding.sequence(config.seed, "weights").generate_state(1, np.uint64)[0] >> 1)
    with fitting(config):
        check_networks(engine, config, layout, action_size)
        learner = kind(layout, action_size, config, seed, sampler)
    if config.compile:
        encoders = (learner.critics.encoder, learner.critic_targets.encoder)
        for network in (*learner.networks().values(), *encoders):
            if not isinstance(network, VectorEncoder):  # which does nothing
                network.compile()
    return learner


def hand_over(learner: Learner, config: Config, threads: int = 0) -> tuple[Learner, str, str, int]:
    """The learner as its engine performs it, the engine, a note as `choose_engine` tells, and the number of threads.

    The engine is chosen with the learner at hand: what somebody made of its networks may be nothing for native.
    `threads` is how many PyTorch used before, whose results depend on it.
    """
    engine, note = choose_engine(config, learner.layout, learner)
    before = threads if engine == "torch" else 0
    used = use_threads(config.threads or before, engine, config.workers)
    with fitting(config):
        return switched(learner, engine), engine, note, used


def check_networks(engine: str, config: Config, layout: Layout, action_size: int) -> None:
    """Refuses networks that cannot fit, before a page of them is touched: the system would kill, not complain."""
    needed = bytes_of_networks(engine, config, layout, action_size)
    room, whose = available()
    if config.device == "cpu" and room is not None and needed > room - RESERVE:
        images = f" that read {describe_layout(layout)}" if layout.frame else ""
        raise ConfigError(
            f"{'images, ' if images else ''}hidden and batch_size must be smaller here: layers of "
            f"{layers_of(config)} and batches of {config.batch_size:,} take {human(needed)} for six "
            f"networks{images} and what they learn with, and {whose} has room for {human(room)}."
        )


def bytes_of_networks(engine: str, config: Config, layout: Layout, action_size: int) -> int:
    """Counts six networks and all that grows with them, in float32."""
    units = (
        max(sum(config.actor_layers), sum(config.critic_layers)) + 2 * layout.stack * layout.frame
    )  # pixels as numbers, and what the convolutions make
    copies = 4  # itself, its target, and two numbers that Adam remembers
    copies += 3 if engine == "native" else 1  # packed for the library's products; or the gradient
    copies += 3 if config.record_updates else 0  # while an update is recorded: how all but the squares were before
    # On the way back through actor and critics, each row of the batch has about seven numbers at every unit.
    return 4 * (copies * parameters(config, layout, action_size) + 7 * config.batch_size * units)


def bytes_of_policy(config: Config, layout: Layout, action_size: int) -> int:
    """Counts six networks alone, in float32: what is needed to act and not to learn."""
    return 4 * 2 * parameters(config, layout, action_size)


def parameters(config: Config, layout: Layout, action_size: int) -> int:
    """Counts the numbers of an actor, two critics and their encoder."""

    def perceptron(inputs: int, hidden: Sequence[int], outputs: int) -> int:
        return sum((before + 1) * after for before, after in pairwise((inputs, *hidden, outputs)))

    with own_stream(0):  # for layers of your own; td3's draw nothing, and cost nothing until they are written
        encoder = encoder_of(layout, config)
    actor = perceptron(encoder.size, config.actor_layers, action_size)
    critics = 2 * perceptron(encoder.size + action_size, config.critic_layers, 1)
    return actor + critics + sum(tensor.numel() for tensor in encoder.parameters())


def layers_of(config: Config) -> str:
    """Names the hidden layers, of both kinds of networks where they differ."""
    return " and ".join(
        ",".join(map(str, sizes)) for sizes in dict.fromkeys((config.actor_layers, config.critic_layers))
    )


def engine_for(config: Config, layout: Layout, num_envs: int, resumed: bool = False) -> tuple[str, str]:
    """Who will perform the update, as `choose_engine` tells; settings that cannot be kept here are refused.

    A run that is `resumed` may have been begun where there are more cores: it goes on with those that are here.
    """
    check_device(config.device)
    if config.threads > cores() and not resumed:
        raise ConfigError(f"threads must be at most {cores()}, the cores there are; got {config.threads}.")
    check_settings(config, layout, num_envs)
    return choose_engine(config, layout)


def check_settings(config: Config, layout: Layout, num_envs: int) -> None:
    """Refuses what cannot be done with such observations."""
    if config.random_shift and not is_shifted(layout):
        raise ConfigError(f"random_shift must be 0 here: no image is observed; got {config.random_shift}.")
    if config.normalize_observations and not is_normalised(layout):
        raise ConfigError("normalize_observations must be left alone here: images alone are observed, and no numbers.")
    least = smallest_capacity(layout, num_envs)
    if config.buffer_size < least:
        raise ConfigError(
            f"buffer_size must be at least {least:,} here: a frame is remembered once, so a transition needs those "
            f"before it; got {config.buffer_size:,}."
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
            f"{layers_of(config)} and batches of {config.batch_size:,} do not."
        ) from problem


def use_threads(threads: int, engine: str = "torch", workers: int = 0) -> int:
    """Sets and tells the number of threads of the update, never more than there are cores; 0 chooses.

    The native engine takes every core, for it works alone while the others are busy; one stays free for environments
    in processes of their own. PyTorch always leaves one: two threads with one busy core are far slower than one alone.
    """
    if threads == 0:
        free = cores() if engine == "native" and not workers else cores() - 1
        threads = max(1, min(4, free))
    threads = min(threads, cores())
    torch.set_num_threads(threads)
    return threads


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for a while: where numbers are few, waking others costs more than they do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)  # what an engine computes with PyTorch depends on it


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device must be cpu here: this PyTorch sees no CUDA GPU; got 'cuda'.")
