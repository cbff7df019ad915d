"""Estimates how long a run will take on this machine, and whether more environments would make it shorter."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from td3 import seeding
from td3.config import Config
from td3.environments import Envs
from td3.learner import Learner, switched
from td3.learner.making import hand_over
from td3.machine import cores
from td3.trial import Clock, Times

UPDATE_SECONDS, ACT_SECONDS = 0.6, 0.05  # of measurement
FAST = 5e-3  # seconds of a step that may be played between measurements
WORTH_A_PROCESS = 1e-3  # seconds of a step: below, passing it to another process costs as much
DOMINATES = 0.5  # share of the time
MESSAGE = 2e-4  # seconds that a step of all workers costs beyond the slowest environment's

Work = Callable[[], object]


class Costs(NamedTuple):
    """Seconds of each part of a run."""

    step: float  # of the training environments, per transition
    act: float  # of the actor, for one observation of each of them
    update: float
    eval_step: float  # of the evaluation environment and the actor


class Forecast(NamedTuple):
    """Seconds that a run will take, by what they are spent on."""

    environment: float
    acting: float
    updates: float
    evaluations: float

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum(self)


class Parallel(NamedTuple):
    """More environments that would make a run shorter, and its seconds with them."""

    num_envs: int
    workers: int
    seconds: float


def costs_of(
    config: Config, learner: Learner, times: Times, envs: Envs, seeds: list[int], clock: Clock = time.perf_counter
) -> Costs:
    """Measures acting, and updates between steps as in a run, with what the trial left in the memory."""
    observation, num_envs = envs.reset(seeds), envs.num_envs
    act = timed(lambda: learner.act(observation), 1, ACT_SECONDS, clock)
    act_one = timed(lambda: learner.act(observation[:1]), 1, ACT_SECONDS, clock) if num_envs > 1 else act
    alone = times.step * max(config.workers, 1)  # a step in one process
    fast = times.median * num_envs < FAST  # a slow step is long enough without being repeated
    between = (lambda: envs.step(learner.act(observation))) if fast else None
    return Costs(times.step, act, update_seconds(config, learner, clock, between), alone + act_one)


def update_seconds(
    config: Config, learner: Learner, clock: Clock = time.perf_counter, between: Work | None = None
) -> float:
    """Measures updates, as many that each kind of them has its share."""
    replay, smoothing = seeding.generator(config.seed, "replay"), seeding.generator(config.seed, "smoothing")
    block = min(config.policy_delay, 10)
    return timed(lambda: learner.learn(replay, smoothing).means(), block, UPDATE_SECONDS, clock, between)


def timed(work: Work, block: int, seconds: float, clock: Clock, between: Work | None = None) -> float:
    """Returns the mean seconds of a piece of work, in blocks, after a first one that does not count.

    The mean, for what else this machine does will slow a run down, too. What is done `between` is not timed, but it
    empties caches and lets threads fall asleep.
    """
    blocks: list[float] = []
    began = clock()
    while len(blocks) < 2 or (clock() - began < seconds and len(blocks) < 1_000):
        spent = 0.0
        for _ in range(block):
            if between:
                between()
            before = clock()
            work()
            spent += clock() - before
        blocks.append(spent / block)
    return sum(blocks[1:]) / (len(blocks) - 1)


def forecast(config: Config, costs: Costs, num_envs: int, eval_length: float) -> Forecast:
    """Estimates the seconds of a run in which evaluation episodes last `eval_length` steps."""
    acting = max(0, config.steps - config.warmup_steps) / num_envs
    updates = max(0, config.steps - config.update_after) * config.updates_per_step
    evaluations = -(-config.steps // config.eval_every) if config.eval_every else 0
    return Forecast(
        config.steps * costs.step,
        acting * costs.act,
        updates * costs.update,
        evaluations * config.eval_episodes * eval_length * costs.eval_step,
    )


def in_parallel(
    config: Config, learner: Learner, costs: Costs, expected: Forecast, clock: Clock = time.perf_counter
) -> Parallel | None:
    """Returns the number of environments, one per process, that would make the run shorter; None where none would."""
    most = cores()
    alone = config.num_envs == 1 and not config.workers
    if not alone or most < 2 or costs.step < WORTH_A_PROCESS or expected.environment < DOMINATES * expected.seconds:
        return None
    with_workers = replace(learner.config, num_envs=2, workers=2)  # which leaves a core to them
    again, *_ = hand_over(switched(learner, "torch"), with_workers)
    update = update_seconds(config, again, clock)
    best = None
    for count in range(2, most + 1):
        several = replace(config, num_envs=count, workers=count)
        step = (costs.step + MESSAGE) / count
        seconds = forecast(several, costs._replace(step=step, update=update), count, 0).seconds + expected.evaluations
        if best is None or seconds < 0.9 * best.seconds:
            best = Parallel(count, count, seconds)
    return best if best and best.seconds < 0.9 * expected.seconds else None
