"""Asks an environment three questions by playing it again from the same seed with other actions.

Does the same seed lead to the same episode? Do actions change anything? Does it use the whole range of each of them?
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.environments import Envs
from td3.types import Float32s

STEPS, LONG = 30, 300  # of an episode: an action may take some steps to show, and all of them together many
SHARES = (1, 6, STEPS)  # steps that are compared one after the other: most differences show at once
DIMENSIONS = 16  # of the action: the first ones
TENTH = 0.1
PATIENCE = 20.0  # seconds

Step = tuple[NDArray[Any], ...]  # what it led to


class Probe(NamedTuple):
    """The answers."""

    reproducible: bool
    actions_matter: bool
    ignored: list[int]  # dimensions of the action that change nothing
    narrow: list[int]  # dimensions in which a tenth of the range does the same as the whole

    @property
    def metrics(self) -> dict[str, Any]:
        """What a record keeps of them."""
        found: dict[str, Any] = {"probe/reproducible": self.reproducible}
        if self.reproducible:  # else a difference says nothing
            found |= {"probe/actions_matter": self.actions_matter}
            found |= {"probe/ignored": self.ignored, "probe/narrow": self.narrow}
        return found


class TooSlow(Exception):
    """An environment that takes too long to be asked."""


def probe(envs: Envs, seed: int, seconds: float = PATIENCE, clock: Callable[[], float] = time.perf_counter) -> Probe:
    """Plays short pieces of the same episode; an environment that fails raises as it does elsewhere.

    One that takes longer than `seconds` raises `TooSlow`.
    """
    size = envs.action.size
    actions = np.random.default_rng(0).uniform(-1, 1, (LONG, size)).astype(np.float32)
    same = _comparison(envs, seed, clock() + seconds, clock)
    if not same(actions, actions):
        return Probe(False, True, [], [])
    if same(actions, -actions, (*SHARES, LONG)):
        return Probe(True, False, [], [])
    ignored: list[int] = []
    narrow: list[int] = []
    for dimension in range(min(size, DIMENSIONS)):
        full, turned, little, less, none = (actions.copy() for _ in range(5))
        signs = np.where(actions[:, dimension] < 0, -1, 1)
        full[:, dimension], turned[:, dimension] = signs, -signs
        little[:, dimension], less[:, dimension], none[:, dimension] = TENTH * signs, TENTH / 2 * signs, 0
        if not same(full, little):
            continue
        if same(full, none) and same(full, turned):
            ignored.append(dimension)
        elif not same(little, less):  # else it is a switch: only the sign counts
            narrow.append(dimension)
    return Probe(True, True, ignored, narrow)


def _comparison(envs: Envs, seed: int, end: float, clock: Callable[[], float]) -> Callable[..., bool]:
    """Returns what says whether two rows of actions lead to the very same episode."""

    def same(these: Float32s, those: Float32s, shares: tuple[int, ...] = SHARES) -> bool:
        for steps in shares:
            if clock() > end:
                raise TooSlow
            first, second = (_played(envs, seed, actions[:steps]) for actions in (these, those))
            equal = len(first) == len(second) and all(
                np.array_equal(one, other)
                for now, then in zip(first, second, strict=True)
                for one, other in zip(now, then, strict=True)
            )
            if not equal:
                return False
        return True

    return same


def _played(envs: Envs, seed: int, actions: Float32s) -> list[Step]:
    """Plays an episode from its seed, as far as there are actions or to its end."""
    steps: list[Step] = [(envs.reset([seed] * envs.num_envs).copy(),)]
    for action in actions:
        result = envs.step(np.tile(action, (envs.num_envs, 1)))
        steps.append(tuple(array.copy() for array in result[:4]))  # an environment may write into them again
        if (result.terminated | result.truncated).any():
            break
    return steps
