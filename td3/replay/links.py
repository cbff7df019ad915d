"""Links between the stored rows of an episode, and n-step returns along them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.types import Bools, Float32s

FEW = 4  # rows that are added one by one
NONE = -1  # stored as 0, and every number plus 1: an array of zeros takes no RAM until it is written


class Links:
    """Links each row of a ring to the one before and the one after it in its episode.

    Rows are numbered as they are written; row number n lies at n modulo the capacity. Rows of several environments are
    interleaved. Links stay within an episode. `after` leads only to rows that are stored; `before` returns row numbers,
    which show whether that row is overwritten by now.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._before, self._after = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        self._newest = np.full(0, NONE, np.int64)  # of each environment: the number of its newest row

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return self._before.nbytes + self._after.nbytes

    def break_links(self) -> None:
        """Links what is added next to nothing before it: rows in between are missing."""
        self._newest[:] = NONE

    def before(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the numbers of the rows before; a row's own where it begins an episode; NONE where there was none."""
        return self._before[indices] - 1

    def number_before(self, index: int) -> int:
        """Returns the same for one row."""
        return int(self._before[index]) - 1

    def after(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the indices of the rows after, or NONE where there is none yet."""
        return self._after[indices] - 1

    def add(self, first_number: int, env: NDArray[np.int32], begins: Bools) -> None:
        """Links rows numbered from `first_number` on, no more than fit; where an episode begins nothing is before."""
        end = first_number + len(env)
        if len(env) and env.max() >= len(self._newest):
            more = np.full(env.max() + 1 - len(self._newest), NONE, np.int64)
            self._newest = np.concatenate([self._newest, more])
        if len(env) <= FEW:
            self._add_few(first_number, env.tolist(), begins.tolist())
            return
        order = np.argsort(env, kind="stable")  # each environment's rows together, in the order they were written
        env, begins, number = env[order], begins[order], np.arange(first_number, end)[order]
        changes = np.ones(len(env) + 1, np.bool_)
        changes[1:-1] = env[1:] != env[:-1]
        before = np.roll(number, 1)
        before[changes[:-1]] = self._newest[env[changes[:-1]]]
        self._newest[env[changes[1:]]] = number[changes[1:]]
        self._before[number % self.capacity] = np.where(begins, number, before) + 1
        self._after[number % self.capacity] = 0
        held = ~begins & (before >= max(0, end - self.capacity))
        self._after[before[held] % self.capacity] = number[held] % self.capacity + 1

    def _add_few(self, first_number: int, envs: list[int], begins: list[bool]) -> None:
        """Does the same row by row, which is faster for a few."""
        capacity, oldest = self.capacity, max(0, first_number + len(envs) - self.capacity)
        for number, (env, first) in enumerate(zip(envs, begins, strict=True), first_number):
            before = int(self._newest[env])
            self._newest[env] = number
            self._before[number % capacity] = (number if first else before) + 1
            self._after[number % capacity] = 0
            if not first and before >= oldest:
                self._after[before % capacity] = number % capacity + 1


class NStep(NamedTuple):
    """Up to n steps from each sampled row, as one."""

    reward: Float32s  # (B,) their rewards, discounted to the first
    last: NDArray[np.int64]  # (B,) the index of the last of them
    discount: Float32s  # (B,) γᵏ with the k steps there were


def look_ahead(indices: NDArray[np.int64], links: Links, reward: Float32s, n_step: int, gamma: float) -> NStep:
    """Adds up to n steps from each row on, fewer where the episode ended or is not yet stored further."""
    last, active = indices, np.ones(len(indices), np.bool_)
    total, discount = reward[indices].astype(np.float64), np.full(len(indices), gamma)
    for _ in range(n_step - 1):
        after = links.after(last)
        active &= after != NONE
        if not active.any():
            break
        last = np.where(active, after, last)
        total += np.where(active, discount * reward[last], 0)
        discount = np.where(active, discount * gamma, discount)
    return NStep(total.astype(np.float32), last, discount.astype(np.float32))
