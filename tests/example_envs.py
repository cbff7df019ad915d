"""Environments with known answers, odd spaces and bad manners, for the tests."""

import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Counting(gymnasium.Env):
    """Observes (its seed's number, episode, step); ends after 3 to 7 steps, every second time by time limit.

    With it every stored row can be checked: the step grows by one within one episode of one environment.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self) -> None:
        self.identity, self.episode = -1.0, -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self.identity = float(seed % 1000)
        self.episode += 1
        self.count = 0
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        assert action.shape == (2,)
        self.count += 1
        over = self.count == 3 + self.episode % 5
        terminated = over and self.episode % 2 == 0
        # the reward tells which action was executed here
        return self._observe(), float(action[0]), terminated, over and not terminated, {}

    def _observe(self) -> Any:
        return np.array([self.identity, self.episode, self.count], np.float64)


def ends(observation: Any) -> tuple[bool, bool]:
    """(terminated, truncated) of the Counting environment when it shows this observation."""
    _, episode, count = observation
    over = count == 3 + episode % 5
    return bool(over and episode % 2 == 0), bool(over and episode % 2 == 1)


class Drifting(gymnasium.Env):
    """Drifts by its own random stream and the action, for 12 steps: its episodes can be brought back exactly."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.count = self.np_random.normal(size=2).astype(np.float32), 0
        return self.place, {}

    def step(self, action: Any) -> Any:
        self.count += 1
        self.place = self.place + self.np_random.normal(size=2).astype(np.float32) * 0.1 + action * 0.1
        return self.place, -float(np.abs(self.place).sum()), False, self.count == 12, {}


class Spaces(gymnasium.Env):
    """Any two spaces; observes samples, ends after 10 steps, remembers the action it was given."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.actions.append(np.array(action))
        self.count += 1
        return self.observation_space.sample(), 1.0, False, self.count == 10, {}


def with_actions(low: Any, high: Any, shape: Any = None, dtype: Any = np.float32) -> Spaces:
    return Spaces(spaces.Box(-1, 1, (2,)), spaces.Box(np.array(low, dtype), np.array(high, dtype), shape, dtype))


class Unruly(gymnasium.Env):
    """Behaves for `after` steps, then does `what`."""

    observation_space = spaces.Dict({"eye": spaces.Box(-1, 1, (2,), np.float32), "mode": spaces.Discrete(3)})
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, what: str, after: int = 4) -> None:
        self.what, self.after, self.count = what, after, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return {"eye": np.zeros(2, np.float32), "mode": 0}, {}

    def step(self, action: Any) -> Any:
        self.count += 1
        good = {"eye": np.full(2, 0.5, np.float32), "mode": 1}
        if self.count <= self.after:
            return good, 0.0, False, False, {}
        match self.what:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(7)
            case "raise":
                raise KeyError("no such joint")
            case "hang":
                time.sleep(600)
            case "nan":
                return {**good, "eye": np.array([0.5, np.nan], np.float32)}, 0.0, False, False, {}
            case "nan reward":
                return good, float("nan"), False, False, {}
            case "shape":
                return {**good, "eye": np.zeros(3, np.float32)}, 0.0, False, False, {}
            case "dtype":
                return {**good, "mode": 1.5}, 0.0, False, False, {}
            case "category":
                return {**good, "mode": 3}, 0.0, False, False, {}
            case "missing":
                return {"eye": good["eye"]}, 0.0, False, False, {}
            case "flag":
                return good, 0.0, None, False, {}
            case "four":
                return good, 0.0, False, {}
        raise AssertionError(self.what)


class Probe(gymnasium.Env):
    """One action in [−1, 1], and a value that can be worked out by hand.

    `constant`: one step, reward 1, so Q = 1. `state`: one step, reward is the observation, ±1.
    `action`: one step, reward is −(a − 0.5)², so the best action is 0.5.
    `delayed`: two steps, reward 1 at the second, so Q = γ and then 1.
    `endless`: reward 1 for ever, cut by a time limit after 5 steps, so Q = 1 / (1 − γ).
    """

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        start = self.np_random.choice([-1.0, 1.0]) if self.kind in ("state", "action") else 0.0
        self.seen = np.array([start], np.float32)
        return self.seen, {}

    def step(self, action: Any) -> Any:
        self.count += 1
        match self.kind:
            case "constant":
                return self.seen, 1.0, True, False, {}
            case "state":
                return self.seen, float(self.seen[0]), True, False, {}
            case "action":
                return self.seen, -float((action[0] - 0.5) ** 2), True, False, {}
            case "delayed":
                late = self.count == 2
                return np.array([1.0], np.float32), float(late), late, False, {}
            case "endless":
                return self.seen, 1.0, False, self.count == 5, {}
        raise AssertionError(self.kind)
