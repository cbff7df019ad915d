"""Evaluates a policy without noise, in environments of its own, so that evaluation never touches training."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from td3.environments import Envs
from td3.errors import EnvironmentFailure
from td3.types import Evaluation, Float32s, Policy, Rows

LONGEST = 100_000  # steps of one episode; an environment without an end would be evaluated for ever


Value = Callable[[Rows, Float32s], Float32s]  # observations and actions → what a critic says of each row


def play_episodes(
    envs: Envs,
    policy: Policy,
    seeds: Sequence[int],
    gamma: float = 1.0,
    value: Value | None = None,
    spare: Iterable[int] = (),
) -> Evaluation:
    """One whole episode from each seed. Every environment plays one per round: none is cut for being long.

    `value` is asked once an episode, for its first observation and action: what it says is to be compared with the
    return that followed, discounted by `gamma`. An episode in an environment that failed and was made anew does not
    count: another is played in its place, from the next `spare` seed.
    """
    seeds, others = list(seeds), iter(spare)
    failures: list[str] = []
    returns: list[float] = []
    lengths: list[int] = []
    discounted: list[float] = []
    predicted: list[float] = []
    n = envs.num_envs
    while len(returns) < len(seeds):
        start = len(returns)
        wanted = seeds[start : start + n]
        observation = envs.reset([*wanted, *(range(n - len(wanted)))])
        total, worth, length = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
        playing = np.arange(n) < len(wanted)
        while playing.any():
            if length.max() >= LONGEST:
                raise EnvironmentFailure(
                    f"An evaluation episode of {envs.name} did not end within {LONGEST:,} steps: give it a time "
                    "limit (gymnasium.wrappers.TimeLimit), or switch evaluation off (eval_every 0)."
                )
            actions = policy(observation)
            if value is not None and len(predicted) == start:
                predicted += value(observation, actions)[: len(wanted)].tolist()
            result = envs.step(actions)
            failures += result.failures
            if (result.truncated & ~result.valid).any():
                break
            counts = playing & result.valid
            total += np.where(counts, result.reward, 0)
            worth += np.where(counts, result.reward * gamma**length, 0)
            length += counts
            playing &= ~(counts & (result.terminated | result.truncated))
            observation = result.observation
        if playing.any():
            seeds[start] = next(others)
            del predicted[start:]
            continue
        returns += total[: len(wanted)].tolist()
        lengths += length[: len(wanted)].tolist()
        discounted += worth[: len(wanted)].tolist()
    return Evaluation(tuple(returns), tuple(lengths), tuple(discounted), tuple(predicted), tuple(failures))
