"""Evaluates a policy without noise, in environments of its own, so that evaluation never touches training."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from td3.environments import Envs
from td3.errors import EnvironmentFailure
from td3.types import Evaluation, Float32s, Policy, Rows

LONGEST = 100_000  # steps of one episode; an environment without an end would be evaluated for ever


class EndlessEpisode(EnvironmentFailure):
    """An evaluation episode did not end."""


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

    `value` is asked for each episode's first observation and action: what it says is to be compared with the return
    that followed, discounted by `gamma`. It is asked again where an episode was truncated: what would have followed?
    An episode in an environment that failed and was made anew does not count: another is played in its place, from the
    next `spare` seed.
    """
    seeds, others = list(seeds), iter(spare)
    failures: list[str] = []
    returns: list[float] = []
    lengths: list[int] = []
    discounted: list[float] = []
    predicted: list[float] = []
    cut: list[float] = []
    late: list[float] = []
    n = envs.num_envs
    while len(returns) < len(seeds):
        start = len(returns)
        wanted = seeds[start : start + n]
        observation = envs.reset([*wanted, *(range(n - len(wanted)))])
        total, worth, length = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
        beyond, sizes = np.zeros(n), []
        playing = np.arange(n) < len(wanted)
        while playing.any():
            if length.max() >= LONGEST:
                raise EndlessEpisode(
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
            sizes.append(np.where(counts, np.abs(result.reward), 0).astype(np.float64))
            length += counts
            if value is not None and (truncated := counts & result.truncated & ~result.terminated).any():
                after = value(result.next_observation, policy(result.next_observation))
                beyond = np.where(truncated, after * gamma**length, beyond)
            playing &= ~(counts & (result.terminated | result.truncated))
            observation = result.observation
        if playing.any():
            seeds[start] = next(others)
            del predicted[start:]
            continue
        returns += total[: len(wanted)].tolist()
        lengths += length[: len(wanted)].tolist()
        discounted += worth[: len(wanted)].tolist()
        cut += beyond[: len(wanted)].tolist()
        late += late_shares(np.array(sizes), length)[: len(wanted)].tolist()
    discounted_each, predicted_each, cut_each, late_each = map(tuple, (discounted, predicted, cut, late))
    return Evaluation(
        tuple(returns), tuple(lengths), discounted_each, predicted_each, cut_each, late_each, tuple(failures)
    )


def late_shares(sizes: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns how much of the rewards' size, (steps, n), came in the last tenth of each episode."""
    steps = np.arange(len(sizes))[:, None]
    last_tenth = np.where(steps >= lengths - np.ceil(lengths / 10), sizes, 0).sum(axis=0)
    shares: NDArray[np.float64] = last_tenth / np.maximum(sizes.sum(axis=0), 1e-300)
    return shares
