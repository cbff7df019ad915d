"""Every engine's update against the float64 reference: the largest difference after many updates.

Three independent trials are run and the median is reported: in float32 a number may fall on the other side of
a ReLU's kink than in float64, which Adam then magnifies. That is rounding, and rare with networks this small;
a mistake shows in every trial.
"""

import statistics
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from td3.config import Config
from td3.learner import ENGINES, engine_name, why_not_native
from td3.learner.making import one_thread
from td3.learner.reference import Layers, NumpyReference, actor_layers, critic_layers
from td3.learner.td3 import Learner
from td3.types import Batch, Layout

UPDATES = 200
OBSERVATIONS, ACTIONS, ROWS, HIDDEN = 7, 3, 24, (24, 20)
TRIALS = 3
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-4}
PRECISIONS = {"torch": (torch.float64, torch.float32), "native": (torch.float32,)}
CONFIG = Config(env="none", hidden=HIDDEN, batch_size=ROWS, buffer_size=1)


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
    rng = np.random.default_rng(seed)
    for _ in range(updates):
        s, s2 = rng.standard_normal((2, ROWS, OBSERVATIONS))
        a = rng.uniform(-1, 1, (ROWS, ACTIONS))
        r, terminated = rng.standard_normal(ROWS), (rng.random(ROWS) < 0.1).astype(np.float64)
        discount = np.power(config.gamma, rng.integers(1, 4, ROWS), dtype=np.float64)  # as of one to three steps
        noise = rng.standard_normal((ROWS, ACTIONS))
        tensors = (torch.from_numpy(column).to(dtype) for column in (s, a, r, s2, terminated, discount))
        learner.update(Batch(*tensors), torch.from_numpy(noise).to(dtype))
        reference.update(s, a, r, s2, terminated, discount, noise)
    return max(
        difference(actor_layers(learner.actor), reference.actor),
        difference(actor_layers(learner.actor_target), reference.actor_target),
        *(difference(critic_layers(learner.critics, k), reference.critics[k]) for k in range(2)),
        *(difference(critic_layers(learner.critic_targets, k), reference.critic_targets[k]) for k in range(2)),
    )


def difference(ours: Layers, theirs: Layers) -> float:
    """Returns the largest difference of any number, relative to the largest of its tensor."""
    return max(
        float(np.abs(x - y).max() / np.abs(y).max())
        for mine, other in zip(ours, theirs, strict=True)
        for x, y in zip(mine, other, strict=True)
    )
