"""Judges a policy without noise, in a world of its own, so that judging never touches training."""

from collections.abc import Sequence

import numpy as np

from td3.collection import Policy
from td3.environments import Worlds
from td3.errors import EnvironmentFailure
from td3.types import Evaluation

LONGEST = 100_000  # steps of one episode; an environment without an end would be judged for ever


def play_episodes(worlds: Worlds, policy: Policy, seeds: Sequence[int]) -> Evaluation:
    """One whole episode from each seed. Every environment plays one per round: none is cut for being long."""
    returns: list[float] = []
    lengths: list[int] = []
    n = worlds.num_envs
    for start in range(0, len(seeds), n):
        wanted = seeds[start : start + n]
        observation = worlds.reset([*wanted, *(range(n - len(wanted)))])
        total, length = np.zeros(n), np.zeros(n, np.int64)
        playing = np.arange(n) < len(wanted)
        while playing.any():
            if length.max() >= LONGEST:
                raise EnvironmentFailure(
                    f"An evaluation episode of {worlds.name} did not end within {LONGEST:,} steps: give it a time "
                    "limit (gymnasium.wrappers.TimeLimit), or switch evaluation off (eval_every 0)."
                )
            tick = worlds.step(policy(observation))
            counts = playing & tick.valid
            total += np.where(counts, tick.reward, 0)
            length += counts
            playing &= ~(counts & (tick.terminated | tick.truncated))
            observation = tick.observation
        returns += total[: len(wanted)].tolist()
        lengths += length[: len(wanted)].tolist()
    return Evaluation(tuple(returns), tuple(lengths))
