"""The ring of time steps: stores each observation once, and makes s, s' and their stacks when they are sampled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from td3.errors import RunError
from td3.replay.links import FEW, NONE, Links, NStep, look_ahead
from td3.replay.memory import drop_overwritten, write
from td3.types import Batch, Layout, Rows, Transitions


class FrameMemory:
    """A ring of time steps. Each stores the newest frame and numbers of one observation, and the action that led there.

    The action comes with its reward and `terminated`. A transition is a time step together with those before it: s' is
    the stack that ends at this time step, s the stack that ends one time step earlier; `frame_stack` says how many
    frames are stacked, `history` how many observations of numbers. The first time step of an episode has no action;
    stacks that would reach further back repeat it, as the environment's own stacks do. `capacity` counts time steps: an
    episode of n transitions takes n + 1 of them.
    """

    def __init__(self, capacity: int, layout: Layout, action_size: int, n_step: int = 1, gamma: float = 0.99) -> None:
        self.capacity, self.layout, self.n_step, self.gamma = capacity, layout, n_step, gamma
        self.columns: dict[str, NDArray[Any]] = {
            "frame": np.empty((capacity, layout.frame), np.uint8),
            "numbers": np.empty((capacity, layout.step_numbers), np.float32),
            "action": np.empty((capacity, action_size), np.float32),
            "reward": np.empty(capacity, np.float32),
            "terminated": np.empty(capacity, np.bool_),
            "begins": np.empty(capacity, np.bool_),  # an episode's first time step: no action led there
            "env": np.empty(capacity, np.int32),
        }
        self.links = Links(capacity)
        self._reach = np.zeros(capacity, np.int64)  # the number of the oldest time step its transition needs, plus 1
        self.written = 0  # time steps ever written: number n lies at n modulo the capacity

    @staticmethod
    def smallest_capacity(layout: Layout, num_envs: int) -> int:
        """Returns how many time steps must fit: a transition needs those before it, in every environment."""
        return 2 * num_envs * (layout.depth + 1)

    @property
    def oldest(self) -> int:
        """The number of the oldest time step still stored."""
        return max(0, self.written - self.capacity)

    def __len__(self) -> int:
        """Returns the number of transitions that can be sampled."""
        return int(np.count_nonzero(self.can_sample(np.arange(min(self.written, self.capacity)))))

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        return sum(column.nbytes for column in self.columns.values()) + self.links.nbytes + self._reach.nbytes

    def add(self, rows: Transitions) -> None:
        """Adds each transition as the time step it led to; an episode's first adds its beginning before that."""
        assert self._overlap(rows.observation, rows.next_observation)
        led_to = self._time_steps(rows.next_observation, rows, begins=False)
        if not np.count_nonzero(rows.first):
            self.load(led_to)
            return
        began = self._time_steps(rows.observation, rows, begins=True)
        each = np.arange(len(rows.first))
        order = np.argsort(np.concatenate([each[rows.first], each]), kind="stable")  # a beginning, then where it led
        self.load({name: np.concatenate([began[name][rows.first], led_to[name]])[order] for name in self.columns})

    def _overlap(self, observation: Rows, next_observation: Rows) -> bool:
        """Returns whether s' has all of s but the oldest frame and the oldest numbers."""
        layout, once = self.layout, self.layout.step_numbers
        frames, next_frames = layout.frames(observation), layout.frames(next_observation)
        numbers, next_numbers = layout.vectors(observation), layout.vectors(next_observation)
        same_numbers = layout.history == 1 or np.array_equal(numbers[:, once:], next_numbers[:, :-once])
        return same_numbers and (layout.stack == 1 or np.array_equal(frames[:, 1:], next_frames[:, :-1]))

    def _time_steps(self, observation: Rows, rows: Transitions, begins: bool) -> dict[str, NDArray[Any]]:
        """Returns observations with what led to them: nothing where an episode begins."""
        action, reward, terminated = rows.action, rows.reward, rows.terminated
        if begins:
            action, reward, terminated = action * np.float32(0), reward * np.float32(0), terminated & False
        return {
            "frame": self.layout.frames(observation)[:, -1],
            "numbers": self.layout.newest(observation),
            "action": action,
            "reward": reward,
            "terminated": terminated,
            "begins": np.full(len(rows.reward), begins),
            "env": rows.env,
        }

    def load(self, rows: Mapping[str, NDArray[Any]]) -> None:
        """Adds time steps by the names of the columns, as `rows` returns them."""
        first, rows = drop_overwritten(rows, self.written, self.capacity)
        write(self.columns, rows, first, self.capacity)
        self.links.add(first, rows["env"], rows["begins"])
        self.written = first + len(rows["reward"])
        if self.written - first <= FEW:
            for number in range(first, self.written):
                self._reach[number % self.capacity] = self._oldest_needed(number) + 1
            return
        numbers = reach = np.arange(first, self.written)
        for _ in range(self.layout.depth):
            reach = np.where(reach >= self.oldest, self.links.before(reach % self.capacity), NONE)
        self._reach[numbers % self.capacity] = reach + 1

    def _oldest_needed(self, number: int) -> int:
        """Returns the same for one time step, which is faster for a few; NONE where it is overwritten."""
        oldest = self.oldest
        for _ in range(self.layout.depth):
            if number < oldest:
                return NONE
            number = self.links.number_before(number % self.capacity)
        return number

    def break_links(self) -> None:
        """Links what is added next to nothing before it: time steps in between are missing."""
        self.links.break_links()

    def rows(self, first: int, end: int) -> dict[str, NDArray[Any]]:
        """Returns copies of the time steps numbered from `first` to before `end`, in the order they were written."""
        indices = np.arange(first, end) % self.capacity
        return {name: column[indices] for name, column in self.columns.items()}

    def can_sample(self, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns which of these indices end a transition that has all its time steps still stored."""
        valid: NDArray[np.bool_] = (self._reach[indices] > self.oldest) & ~self.columns["begins"][indices]
        return valid

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Samples indices of transitions, uniformly and with replacement; indices that end none are replaced."""
        stored = min(self.written, self.capacity)
        indices = rng.integers(stored, size=count)
        while not (valid := self.can_sample(indices)).all():
            if not valid.any() and not len(self):
                raise RunError("The memory holds no transition that can be sampled.")
            indices[~valid] = rng.integers(stored, size=count - np.count_nonzero(valid))
        return indices

    def batch(self, indices: NDArray[np.int64]) -> Batch:
        """Returns these transitions, each with what n steps led to."""
        columns, depth = self.columns, self.layout.depth
        ahead = self._look_ahead(indices)
        led_here = self._led_to(indices, depth + 1)
        led_on = led_here[:, 1:] if ahead.last is indices else self._led_to(ahead.last, depth)
        arrays = (
            self._observations(led_here[:, :-1]),
            columns["action"].take(indices, axis=0),
            ahead.reward,
            self._observations(led_on),
            columns["terminated"].take(ahead.last).astype(np.float32),
            ahead.discount,
        )
        return Batch(*map(torch.from_numpy, arrays))

    def _look_ahead(self, indices: NDArray[np.int64]) -> NStep:
        """Returns what n steps led to."""
        reward = self.columns["reward"]
        if self.n_step > 1:
            return look_ahead(indices, self.links, reward, self.n_step, self.gamma)
        return NStep(reward.take(indices), indices, np.full(len(indices), self.gamma, np.float32))  # in less time

    def _led_to(self, indices: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Returns the indices of the last time steps up to each of these, (B, count), the oldest first."""
        led_to = np.empty((len(indices), count), np.int64)
        led_to[:, -1] = indices
        for depth in reversed(range(count - 1)):
            indices = self.links.before(indices) % self.capacity
            led_to[:, depth] = indices
        return led_to

    def _observations(self, led_to: NDArray[np.int64]) -> Rows:
        """Returns the observations that these time steps make, (B, depth): frames and numbers, the oldest first."""
        layout = self.layout
        numbers = self.columns["numbers"].take(led_to[:, layout.depth - layout.history :], axis=0)
        numbers = numbers.reshape(len(led_to), layout.numbers)
        return layout.joined(self.columns["frame"][led_to[:, layout.depth - layout.stack :]], numbers)
