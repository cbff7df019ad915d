"""Every engine's update against the float64 reference: the largest difference after many updates.

Three independent trials are run and the median is reported: in float32 a number may fall on the other side of
a ReLU's kink than in float64, which Adam then magnifies. That is rounding, and rare with networks this small;
a mistake shows in every trial.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from td3.config import Config
from td3.learner import ENGINES, engine_name, why_not_native
from td3.learner.making import one_thread
from td3.learner.native.td7 import NativeTD7Learner
from td3.learner.reference import Array, Layers, NumpyReference, actor_layers, critic_layers
from td3.learner.td3 import Learner
from td3.learner.td7 import TD7Learner
from td3.learner.td7_reference import (
    NumpyTD7Reference,
    Settings,
    embedded_actor,
    embedded_critic,
    encoder_layers,
)
from td3.replay import PrioritizedSampler
from td3.types import Batch, Layout

UPDATES = 200
OBSERVATIONS, ACTIONS, ROWS, HIDDEN = 7, 3, 24, (24, 20)
TRIALS = 3
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-4}
PRECISIONS = {"torch": (torch.float64, torch.float32), "native": (torch.float32,)}
CONFIG = Config(env="none", hidden=HIDDEN, batch_size=ROWS, buffer_size=1)
TD7_ENGINES: dict[str, type[TD7Learner]] = {"native": NativeTD7Learner, "torch": TD7Learner}
TD7_CONFIG = replace(
    CONFIG, algorithm="td7", sampling="lap", embedding_size=12, embedding_hidden=(14, 10), target_every=25
)


class Result(NamedTuple):
    """Holds the outcome of one comparison with the reference."""

    engine: str
    precision: str
    updates: int
    error: float  # the largest, relative to the largest number of its tensor
    limit: float

    @property
    def passed(self) -> bool:
        """Returns whether the error is within the limit."""
        return self.error <= self.limit


def selftest(updates: int = UPDATES, seed: int = 0) -> Iterator[Result]:
    """Compares the updates of each engine here with the float64 reference, in each precision."""
    for engine, kind in ENGINES.items():
        if engine == "native" and why_not_native(CONFIG):
            continue  # not built here: there is nothing to compare
        for dtype in PRECISIONS[engine]:
            with one_thread():  # with networks this small a second one only waits, for minutes where cores are busy
                errors = [compare(kind, dtype, updates, TRIALS * seed + trial) for trial in range(TRIALS)]
            name = str(dtype).removeprefix("torch.")
            yield Result(engine_name(engine), name, updates, statistics.median(errors), LIMITS[dtype])

    for engine, td7 in TD7_ENGINES.items():
        if engine == "native" and why_not_native(TD7_CONFIG):
            continue
        for dtype in PRECISIONS[engine]:
            with one_thread():
                errors = [compare_td7(dtype, updates, TRIALS * seed + trial, td7) for trial in range(TRIALS)]
            name = str(dtype).removeprefix("torch.")
            yield Result(f"{engine_name(engine)}, td7", name, updates, statistics.median(errors), LIMITS[dtype])


def compare(kind: type[Learner], dtype: torch.dtype, updates: int, seed: int) -> float:
    """Returns the largest relative error of a learner against the reference after so many updates."""
    config = CONFIG
    learner = kind(Layout(OBSERVATIONS), ACTIONS, config, seed)
    for network in learner.networks().values():
        network.to(dtype)
    reference = NumpyReference(
        actor_layers(learner.actor),
        [critic_layers(learner.critics, which) for which in range(2)],
        tau=config.tau,
        policy_delay=config.policy_delay,
        target_noise=config.target_noise,
        noise_clip=config.noise_clip,
        actor_lr=config.actor_lr,
        critic_lr=config.critic_lr,
    )
    for columns, noise in batches(updates, seed, config.gamma):
        tensors = (torch.from_numpy(column).to(dtype) for column in columns)
        learner.update(Batch(*tensors), torch.from_numpy(noise).to(dtype))
        reference.update(*columns, noise=noise)
    return max(
        difference(actor_layers(learner.actor), reference.actor),
        difference(actor_layers(learner.actor_target), reference.actor_target),
        *(difference(critic_layers(learner.critics, k), reference.critics[k]) for k in range(2)),
        *(difference(critic_layers(learner.critic_targets, k), reference.critic_targets[k]) for k in range(2)),
    )


def compare_td7(dtype: torch.dtype, updates: int, seed: int, kind: type[TD7Learner] = TD7Learner) -> float:
    """Returns the largest relative error of TD7 against its reference: networks, copies, range and priorities."""
    config = TD7_CONFIG
    learner = kind(Layout(OBSERVATIONS), ACTIONS, replace(config, buffer_size=ROWS), seed)
    sampler = learner.sampler
    assert learner.embedding is not None
    assert isinstance(sampler, PrioritizedSampler)
    learner.memory.written = ROWS  # the sampler is given priorities as if every row had been sampled
    for network in learner.networks().values():
        network.to(dtype)
    f, g = encoder_layers(learner.embedding.f), encoder_layers(learner.embedding.g)
    critics = [embedded_critic(learner.critics, which) for which in range(2)]
    settings = Settings(*(getattr(config, name) for name in Settings._fields))
    reference = NumpyTD7Reference(embedded_actor(learner.actor), critics, f, g, settings)
    priority = np.zeros(ROWS)
    for columns, noise in batches(updates, seed, config.gamma):
        batch = Batch(*(torch.from_numpy(column).to(dtype) for column in columns))
        sampler.updated(np.arange(ROWS), learner.update(batch, torch.from_numpy(noise).to(dtype)))
        priority = reference.update(*columns, noise=noise)
    encoders = (learner.embedding, learner.critics.encoder, learner.critic_targets.encoder)
    theirs = ((reference.f, reference.g), reference.fixed, reference.fixed_target)
    pairs = [
        (embedded_actor(learner.actor), reference.actor),
        (embedded_actor(learner.actor_target), reference.actor_target),
        *((embedded_critic(learner.critics, k), reference.critics[k]) for k in range(2)),
        *((embedded_critic(learner.critic_targets, k), reference.critic_targets[k]) for k in range(2)),
        *((encoder_layers(one.f), other[0]) for one, other in zip(encoders, theirs, strict=True)),
        *((encoder_layers(one.g), other[1]) for one, other in zip(encoders, theirs, strict=True)),
    ]
    clip = np.array([learner.target_range.low.item(), learner.target_range.high.item()])
    wrong = float(np.abs(clip - reference.clip).max() / np.abs(reference.clip).max()) if any(reference.clip) else 0.0
    rounding = float(np.finfo(np.float32).eps)  # priorities are float32 in any precision
    off = float(np.abs(sampler.priority - priority).max() / priority.max())
    return max(*(difference(*pair) for pair in pairs), wrong, off if off > 2 * rounding else 0.0)


def batches(
    count: int, seed: int, gamma: float
) -> Iterator[tuple[tuple[Array, Array, Array, Array, Array, Array], Array]]:
    """Yields batches of random transitions, as columns, each with the noise of its target actions."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        s, s2 = rng.standard_normal((2, ROWS, OBSERVATIONS))
        a = rng.uniform(-1, 1, (ROWS, ACTIONS))
        r, terminated = rng.standard_normal(ROWS), (rng.random(ROWS) < 0.1).astype(np.float64)
        discount = np.power(gamma, rng.integers(1, 4, ROWS), dtype=np.float64)  # as of one to three steps
        yield (s, a, r, s2, terminated, discount), rng.standard_normal((ROWS, ACTIONS))


def difference(ours: Layers, theirs: Layers) -> float:
    """Returns the largest difference of any number, relative to the largest of its tensor."""
    return max(
        float(np.abs(x - y).max() / np.abs(y).max())
        for mine, other in zip(ours, theirs, strict=True)
        for x, y in zip(mine, other, strict=True)
    )
