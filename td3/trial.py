"""Plays random steps before a run: the evidence that shows before anything is learned, and how long a step takes."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from td3 import seeding
from td3.collection import Collector
from td3.config import Config
from td3.diagnosis import Evidence
from td3.environments import Envs
from td3.events import EpisodeEnded
from td3.health import measure_health
from td3.learner import Learner
from td3.learner.making import hand_over, make_learner
from td3.probing import SHARES, TooSlow, probe
from td3.progress import plain_episode
from td3.replay import bytes_per_transition, smallest_capacity

STEPS, ENOUGH, FEWEST = 2_000, 300, 3  # random steps: at most, at least, and at least of a very slow environment
SECONDS, PATIENCE = 5.0, 15.0  # after which ENOUGH steps, or FEWEST, will do
PROBE_SECONDS = 10.0  # a slower probe is left out
HEALTH_EVERY = 1_000  # steps, as in the first steps of a run
ROOM = 2**28  # bytes of a memory for these steps

Clock = Callable[[], float]
Show = Callable[[float], None]  # is called with the share that is done


class Times(NamedTuple):
    """Seconds of the environments; a step is one transition, whether they are stepped side by side or not."""

    step: float  # the mean, resets included
    median: float  # of those that ended no episode
    reset: float


class Trial(NamedTuple):
    """What random steps showed."""

    evidence: Evidence
    steps: int
    rewards: tuple[float, float]  # the smallest and the largest
    lengths: list[int]  # of the episodes that ended
    times: Times
    probed: bool  # whether there was time to play the same episode again


def small_learner(config: Config, envs: Envs, engine: str) -> tuple[Learner, str, int]:
    """Makes the learner of a run with a memory for a trial alone; returns its engine and threads, too."""
    layout, action_size = envs.observation.layout, envs.action.size
    rows = min(2 * STEPS, ROOM // bytes_per_transition(layout, action_size, config.n_step))
    least = max(smallest_capacity(layout, envs.num_envs), envs.num_envs)
    small = replace(config, buffer_size=max(rows, least), compile=False)  # compiling takes longer than a trial
    learner, engine, _, threads = hand_over(make_learner(engine, small, layout, action_size), small)
    return learner, engine, threads


def play_randomly(
    envs: Envs,
    config: Config,
    learner: Learner,
    limit: int,
    show: Show = lambda _: None,
    clock: Clock = time.perf_counter,
) -> Trial:
    """Plays random steps, some seconds of them at most, and collects the rows that training would record."""
    evidence = Evidence(config, before=True, limit=limit)
    seeds = seeding.environment_seeds(config.seed, "environments", envs.num_envs)
    rng = seeding.generator(config.seed, "exploration")
    collector = Collector(envs, seeds, rng, warmup_steps=2**62, exploration_noise=0.0)
    memory, measured = learner.memory, 0
    every = min(HEALTH_EVERY, memory.capacity // 2)
    low, high = np.inf, -np.inf  # of the rewards
    lengths: list[int] = []
    usual: list[float] = []  # seconds
    with_reset: list[float] = []
    began = clock()
    collector.start()
    first_reset = (clock() - began) / envs.num_envs
    while (done := share_done(collector.steps, clock() - began)) < 1:
        show(done)
        before = clock()
        collected = collector.collect(lambda _: np.empty(0, np.float32))  # never called: all is warm-up
        (with_reset if collected.episodes else usual).append(clock() - before)
        learner.store(collected.transitions)
        rewards = collected.transitions.reward.tolist()  # none where all environments were just reset
        low, high = min([low, *rewards]), max([high, *rewards])
        for episode in collected.episodes:
            ended = EpisodeEnded(collector.steps, *plain_episode(*episode))
            evidence.add({"step": ended.step, **ended.metrics})
            lengths.append(ended.length)
        if memory.written - measured >= every:
            evidence.add({"step": collector.steps, **measure_health(learner, memory.written - measured)})
            measured = memory.written
    show(1.0)
    if memory.written > measured:
        evidence.add({"step": collector.steps, **measure_health(learner, memory.written - measured)})
    times = times_of(usual, with_reset, first_reset, envs.num_envs)
    probed = seconds_of_probe(times, envs) <= PROBE_SECONDS
    if probed:
        try:
            evidence.add({"step": collector.steps, **probe(envs, seeds[0], PROBE_SECONDS, clock).metrics})
        except TooSlow:
            probed = False
    return Trial(evidence, collector.steps, (float(low), float(high)), lengths, times, probed)


def share_done(steps: int, seconds: float) -> float:
    """Returns which share of a trial is done, 1 at its end: a fast environment plays all steps, a slow one fewer."""
    by_steps = steps / STEPS
    by_seconds = min(steps / ENOUGH, seconds / SECONDS)
    by_patience = min(steps / FEWEST, seconds / PATIENCE)
    return min(1.0, max(by_steps, by_seconds, by_patience))


def times_of(usual: list[float], with_reset: list[float], first_reset: float, num_envs: int) -> Times:
    """Sums up how long each step of all environments took; the first one, which may set things up, does not count."""
    later = usual[1:] or usual or with_reset
    median = float(np.median(later))
    reset = max(0.0, float(np.median(with_reset)) - median) if with_reset else first_reset
    return Times(float(np.mean([*later, *with_reset])) / num_envs, median / num_envs, reset)


def seconds_of_probe(times: Times, envs: Envs) -> float:
    """Estimates how long a probe of a healthy environment takes: one long comparison, and a short one per action."""
    comparisons = len(SHARES) + 1 + min(envs.action.size, 16)
    steps = 2 * (sum(SHARES) + comparisons)
    return envs.num_envs * (steps * times.median + 2 * comparisons * times.reset)
