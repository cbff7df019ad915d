"""Makes a learner that fits this machine: checks memory, device and settings, chooses the engine and its threads."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch

from td3 import seeding
from td3.config import Config
from td3.environments.descriptions import describe_layout
from td3.errors import ConfigError
from td3.interfaces import MakeSampler
from td3.learner import ALGORITHMS, Learner, choose_engine, switched
from td3.learner.encoders import VectorEncoder, encoder_of
from td3.learner.networks import own_stream
from td3.learner.preprocessing import is_normalised, is_shifted
from td3.machine import RESERVE, available, cores, human
from td3.replay import smallest_capacity
from td3.types import Layout


def make_learner(
    engine: str,
    config: Config,
    layout: Layout,
    action_size: int,
    kind: Callable[..., Learner] | None = None,
    sampler: MakeSampler | None = None,
) -> Learner:
    """Makes a learner and checks that it fits with what `engine` needs too; `hand_over` gives it to an engine."""
    seed = int(seeding.sequence(config.seed, "weights").generate_state(1, np.uint64)[0] >> 1)
    with fitting(config):
        check_networks(engine, config, layout, action_size)
        learner = (kind or ALGORITHMS[config.algorithm])(layout, action_size, config, seed, sampler)
    if config.compile:
        encoders = (learner.critics.encoder, learner.critic_targets.encoder)
        for network in (*learner.networks().values(), *encoders):
            if not isinstance(network, VectorEncoder):  # which computes nothing
                network.compile()
    return learner


def hand_over(learner: Learner, config: Config, threads: int = 0) -> tuple[Learner, str, str, int]:
    """Returns the learner as its engine performs it, the engine, the note of `choose_engine`, the number of threads.

    The engine is chosen when the learner exists: custom networks may be unsupported by native. `threads` is how many
    PyTorch used before the run was resumed, because its results depend on that.
    """
    engine, note = choose_engine(config, learner.layout, learner)
    before = threads if engine == "torch" else 0
    used = use_threads(config.threads or before, engine, config.workers)
    with fitting(config):
        return switched(learner, engine), engine, note, used


def check_networks(engine: str, config: Config, layout: Layout, action_size: int) -> None:
    """Refuses networks that cannot fit, before allocation; otherwise the system would kill the process."""
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
    """Counts the bytes of six networks and of all that grows with them, in float32."""
    units = (
        max(sum(config.actor_layers), sum(config.critic_layers)) + 2 * layout.stack * layout.frame
    )  # pixels as floats, and the outputs of the convolutions
    copies = 4  # of each weight: itself, its target, and Adam's two moments
    copies += 3 if engine == "native" else 1  # weights packed for its matrix products; or the gradient
    copies += 3 if config.record_updates else 0  # a recorded update copies weight, target and first moment
    # Backpropagation through actor and critics needs about seven numbers for each unit and row of the batch.
    return 4 * (copies * parameters(config, layout, action_size) + 7 * config.batch_size * units)


def bytes_of_policy(config: Config, layout: Layout, action_size: int) -> int:
    """Counts the bytes of six networks alone, in float32: what is needed to act, not to learn."""
    return 4 * 2 * parameters(config, layout, action_size)


def parameters(config: Config, layout: Layout, action_size: int) -> int:
    """Counts the numbers of an actor, two critics and their encoder."""

    def perceptron(inputs: int, hidden: Sequence[int], outputs: int) -> int:
        """Counts the weights and biases of one perceptron."""
        return sum((before + 1) * after for before, after in pairwise((inputs, *hidden, outputs)))

    with own_stream(0):  # custom layers may draw initial weights; td3's are not drawn here and take no RAM yet
        encoder = encoder_of(layout, config)
    actor = perceptron(encoder.size, config.actor_layers, action_size)
    critics = 2 * perceptron(encoder.size + action_size, config.critic_layers, 1)
    counted = actor + critics + sum(tensor.numel() for tensor in encoder.parameters())
    if config.algorithm == "td3" or not config.embedding_size:
        return counted
    z, (first, *_) = config.embedding_size, (*config.actor_layers, config.embedding_size)
    f = perceptron(encoder.size, config.embedding_hidden, z)
    g = perceptron(z + action_size, config.embedding_hidden, z)
    return counted + f + g + first * (encoder.size + z) + 2 * first * (encoder.size + action_size + 2 * z)


def layers_of(config: Config) -> str:
    """Names the hidden layers, of both kinds of networks where they differ."""
    return " and ".join(
        ",".join(map(str, sizes)) for sizes in dict.fromkeys((config.actor_layers, config.critic_layers))
    )


def engine_for(config: Config, layout: Layout, num_envs: int, resumed: bool = False) -> tuple[str, str]:
    """Returns the engine and the note of `choose_engine`; refuses settings that this machine cannot keep.

    A run that is `resumed` may come from a machine with more cores: it continues with the available ones.
    """
    check_device(config.device)
    if config.threads > cores() and not resumed:
        raise ConfigError(f"threads must be at most {cores()}, the number of available cores; got {config.threads}.")
    check_settings(config, layout, num_envs)
    return choose_engine(config, layout)


def check_settings(config: Config, layout: Layout, num_envs: int) -> None:
    """Refuses settings that such observations do not allow."""
    if config.random_shift and not is_shifted(layout):
        raise ConfigError(f"random_shift must be 0 here: the observation has no image; got {config.random_shift}.")
    if config.normalize_observations and not is_normalised(layout):
        raise ConfigError("normalize_observations must be off here: the observation has only images.")
    least = smallest_capacity(layout, num_envs)
    if config.buffer_size < least:
        raise ConfigError(
            f"buffer_size must be at least {least:,} here: each {'frame' if layout.frame else 'observation'} is "
            "stored once, so a transition needs "
            f"those before it; got {config.buffer_size:,}."
        )


@contextlib.contextmanager
def fitting(config: Config) -> Iterator[None]:
    """Turns a failed allocation into a ConfigError that names the settings to reduce."""
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
    """Sets and returns the number of threads of the update, never more than the available cores; 0 chooses.

    The native engine uses up to four cores, because nothing else in this process runs during its update; it leaves one
    free where `workers` step the environments at the same time. PyTorch always leaves one free: if another process
    keeps one of two cores busy, two threads are far slower than one.
    """
    if threads == 0:
        free = cores() if engine == "native" and not workers else cores() - 1
        threads = max(1, min(4, free))
    threads = min(threads, cores())
    torch.set_num_threads(threads)
    return threads


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Uses one thread inside the block: where numbers are few, waking others costs more than it saves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)  # what an engine computes with PyTorch depends on it


def check_device(device: str) -> None:
    """Refuses CUDA if PyTorch sees no GPU."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device must be cpu here: this PyTorch sees no CUDA GPU; got 'cuda'.")
