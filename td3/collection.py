"""Plays the environments and hands out transitions: at random while warming up, then the actor with noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from td3 import seeding
from td3.environments import Worlds
from td3.environments.worlds import LONGEST_TAPE
from td3.errors import EnvironmentFailure
from td3.types import Episode, Float32s, Rows, Tick, Transitions

Policy = Callable[[Rows], Float32s]  # (n, observation_size) → (n, action_size) in [−1, 1]


class Played(NamedTuple):
    """One tick: the rows to remember, and the episodes that ended with it."""

    transitions: Transitions
    ended: list[tuple[int, float, int]]  # environment, return, length


class Collector:
    def __init__(
        self,
        worlds: Worlds,
        seeds: list[int],
        chance: np.random.Generator,
        warmup_steps: int,
        exploration_noise: float,
    ) -> None:
        self.worlds, self.chance = worlds, chance
        self.warmup_steps, self.exploration_noise = warmup_steps, exploration_noise
        self.steps = 0  # transitions handed out so far
        self.observation = worlds.reset(seeds)
        self._torn = False  # whether a step was begun and not ended
        self._returns = np.zeros(worlds.num_envs, np.float64)
        self._lengths = np.zeros(worlds.num_envs, np.int64)
        self._env = np.arange(worlds.num_envs, dtype=np.int32)

    def play(self, policy: Policy) -> Played:
        """One action in each environment."""
        if self._torn:
            self.begin_anew()
        before = self.chance.bit_generator.state
        try:
            action = self._choose(policy)
            self._torn = True
            tick = self.worlds.step(action)
        except BaseException:
            self.chance.bit_generator.state = before  # as if it had not been tried: whoever resumes tries it again
            raise
        self._torn = False
        rows = Transitions(
            self.observation,
            action,
            tick.reward,
            tick.next_observation,
            tick.terminated,
            env=self._env,
            first=self._lengths == 0,
        )
        self.observation = tick.observation
        valid = int(np.count_nonzero(tick.valid))
        self.steps += valid
        if valid < len(tick.valid):
            rows = Transitions._make(column[tick.valid] for column in rows)
        return Played(rows, self._tally(tick))

    def begin_anew(self) -> None:
        """Begins every episode again: a step was interrupted half way, or what came before is lost."""
        seeds = [int(seed) for seed in self.chance.integers(2**32, size=self.worlds.num_envs)]
        self.observation = self.worlds.reset(seeds, self.worlds.steps)
        self._returns[:], self._lengths[:] = 0, 0
        self._torn = False

    @property
    def most_bytes(self) -> int:
        """What `capture` may take at the most."""
        row = self.observation[:1].nbytes + self._returns[:1].nbytes + self._lengths[:1].nbytes
        return self.worlds.num_envs * (row + 4 * LONGEST_TAPE * self.worlds.action.size)

    def capture(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data, and arrays: enough to go on playing as if never stopped."""
        try:
            episodes = self.worlds.capture()
        except EnvironmentFailure:  # they are why we save: what was learned is kept all the same
            unknown = Episode(None, None, np.zeros((0, self.worlds.action.size), np.float32))
            episodes = [unknown] * self.worlds.num_envs
        data = {
            "steps": self.steps,
            "env_steps": self.worlds.steps,
            "chance": seeding.state_of(self.chance),
            "episodes": [{"start": one.start, "random": one.random} for one in episodes],
        }
        tapes = {f"actions.{place}": one.actions for place, one in enumerate(episodes)}
        return data, {"observation": self.observation, "returns": self._returns, "lengths": self._lengths, **tapes}

    def restore(self, data: dict[str, Any], arrays: dict[str, Any], seeds: list[int]) -> list[str]:
        """Goes on where `capture` was; tells which episodes could not be brought back, and were closed instead."""
        self._check(arrays)
        episodes = [
            Episode(one["start"], one["random"], arrays[f"actions.{place}"])
            for place, one in enumerate(data["episodes"])
        ]
        n = self.worlds.num_envs
        steps = [int(one) for one in data.get("env_steps", [data["steps"] // n] * n)]  # older checkpoints have none
        if len(steps) != n:
            raise ValueError(f"env_steps has {len(steps)} numbers, not {n}")
        self.observation, failures = self.worlds.restore(episodes, arrays["observation"], seeds, steps)
        lost = np.array([bool(why) for why in failures])
        self._returns = np.where(lost, 0, arrays["returns"])
        self._lengths = np.where(lost, 0, arrays["lengths"])
        self.steps = int(data["steps"])
        seeding.put_state(self.chance, data["chance"])
        return [why for why in failures if why]

    def _check(self, arrays: dict[str, Any]) -> None:
        """Raises ValueError for an array that `capture` would not have made."""
        tape = np.empty((0, self.worlds.action.size), np.float32)
        expected = {"observation": self.observation, "returns": self._returns, "lengths": self._lengths}
        for name, array in arrays.items():
            like = expected.get(name, tape)
            if array.dtype != like.dtype or array.shape[1:] != like.shape[1:]:
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {like.dtype} {like.shape}")
            if name in expected and len(array) != len(like):
                raise ValueError(f"{name} has {len(array)} rows, not {len(like)}")

    def _choose(self, policy: Policy) -> Float32s:
        shape = (self.worlds.num_envs, self.worlds.action.size)
        if self.steps < self.warmup_steps:
            return self.chance.uniform(-1, 1, shape).astype(np.float32)
        noise = self.exploration_noise * self.chance.standard_normal(shape, dtype=np.float32)
        return np.minimum(np.maximum(policy(self.observation) + noise, -1), 1)

    def _tally(self, tick: Tick) -> list[tuple[int, float, int]]:
        self._returns += np.where(tick.valid, tick.reward, 0)
        self._lengths += tick.valid
        over = (tick.terminated | tick.truncated) & tick.valid
        if not np.count_nonzero(over):
            return []
        ended = []
        for env in np.flatnonzero(over):
            ended.append((int(env), float(self._returns[env]), int(self._lengths[env])))
            self._returns[env] = self._lengths[env] = 0
        return ended
