"""Judges a policy without noise, in a world of its own, so that judging never touches training."""

from collections.abc import Callable, Sequence

import numpy as np

from td3.collection import Policy
from td3.environments import Worlds
from td3.errors import EnvironmentFailure
from td3.types import Evaluation, Float32s, Rows

LONGEST = 100_000  # steps of one episode; an environment without an end would be judged for ever


Value = Callable[[Rows, Float32s], Float32s]  # observations and actions → what a critic says of each row


def play_episodes(
    worlds: Worlds, policy: Policy, seeds: Sequence[int], gamma: float = 1.0, value: Value | None = None
) -> Evaluation:
    """One whole episode from each seed. Every environment plays one per round: none is cut for being long.

    `value` is asked once an episode, for its first observation and action: what it says is to be compared with the
    return that followed, discounted by `gamma`.
    """
    returns: list[float] = []
    lengths: list[int] = []
    discounted: list[float] = []
    predicted: list[float] = []
    n = worlds.num_envs
    for start in range(0, len(seeds), n):
        wanted = seeds[start : start + n]
        observation = worlds.reset([*wanted, *(range(n - len(wanted)))])
        total, worth, length = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
        playing = np.arange(n) < len(wanted)
        while playing.any():
            if length.max() >= LONGEST:
                raise EnvironmentFailure(
                    f"An evaluation episode of {worlds.name} did not end within {LONGEST:,} steps: give it a time "
                    "limit (gymnasium.wrappers.TimeLimit), or switch evaluation off (eval_every 0)."
                )
            actions = policy(observation)
            if value is not None and len(predicted) == start:
                predicted += value(observation, actions)[: len(wanted)].tolist()
            tick = worlds.step(actions)
            counts = playing & tick.valid
            total += np.where(counts, tick.reward, 0)
            worth += np.where(counts, tick.reward * gamma**length, 0)
            length += counts
            playing &= ~(counts & (tick.terminated | tick.truncated))
            observation = tick.observation
        returns += total[: len(wanted)].tolist()
        lengths += length[: len(wanted)].tolist()
        discounted += worth[: len(wanted)].tolist()
    return Evaluation(tuple(returns), tuple(lengths), tuple(discounted), tuple(predicted))
