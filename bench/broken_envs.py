"""One small healthy environment and its broken twins: a mass to be pushed to the middle of a plane."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

LIMIT = 100  # steps of an episode


class Twin(gymnasium.Env):
    """A mass with friction, pushed in two directions; observes place and velocity. `fault` breaks one thing.

    `Twin()` is the healthy one. A random agent stays near the middle, so that places, velocities and rewards are
    around 1 in size; a trained one reaches the middle in some twenty steps.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, fault: str = "") -> None:
        assert not fault or fault in FAULTS or fault in LATER, fault
        self.fault = fault

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:  # noqa: ARG002
        super().reset(seed=seed)
        self.place, self.velocity = self.np_random.uniform(-1, 1, 2), np.zeros(2)
        self.count = 0
        return self._observe(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        if self.fault == "raises" and self.place[0] > 2.5:
            raise RuntimeError("the mass has left the plane")
        self.velocity = 0.9 * self.velocity + 0.1 * self._push(np.asarray(action, np.float64))
        self.place = np.clip(self.place + 0.5 * self.velocity, -3, 3)
        terminated = self.fault == "ends at once" and self.count == 2
        over = self.count == LIMIT and self.fault != "never ends"
        if self.fault == "limit as end":
            terminated, over = over, False
        return self._observe(), self._reward(np.asarray(action)), terminated, over, {}

    def _push(self, action: Any) -> Any:
        if self.fault == "actions ignored":
            return np.zeros(2)
        if self.fault == "one action ignored":
            return action * [1, 0]
        if self.fault == "narrow actions":
            return np.clip(action, -0.08, 0.08) / 0.08
        return action

    def _observe(self) -> Any:
        seen = np.concatenate([self.place, self.velocity])
        if self.fault == "constant observation":
            seen[1] = 0.5
        if self.fault == "nothing to see":
            seen[:] = 0.5
        if self.fault == "unscaled observation":
            seen[0] *= 1_000
        if self.fault == "noise":
            seen[:] = self.np_random.normal(0, 1, 4)
        if self.fault == "not reproducible":
            seen += np.random.default_rng().normal(0, 0.01, 4)
        return seen.astype(np.float32)

    def _reward(self, action: Any) -> float:
        distance = float(np.linalg.norm(self.place))
        if self.fault == "rare rewards":
            return float(distance < 1e-3)
        if self.fault == "late rewards":
            return (1 - distance) * (self.count > 0.9 * LIMIT)
        if self.fault == "same score":
            return self.count / LIMIT
        if self.fault == "tiny actions pay":
            return (1 - distance) / 20 - 20 * float(action @ action)
        return (1 - distance) * {"large rewards": 1e3, "small rewards": 1e-3, "huge rewards": 1e25}.get(self.fault, 1.0)


class Fault(NamedTuple):
    """What is found in a twin, and the settings that it takes beside the environment."""

    finding: str
    settings: Mapping[str, Any] = MappingProxyType({})


# Each fault, and the finding that it must lead to. A fault of the settings alone has the healthy environment.
FAULTS = {
    "constant observation": Fault("constant_observations"),
    "nothing to see": Fault("nothing_to_see"),
    "unscaled observation": Fault("unscaled_observations"),
    "large rewards": Fault("reward_scale"),
    "small rewards": Fault("reward_scale"),
    "rare rewards": Fault("rare_rewards"),
    "limit as end": Fault("limit_as_end"),
    "never ends": Fault("never_ends"),
    "ends at once": Fault("ends_at_once"),
    "actions ignored": Fault("actions_ignored"),
    "one action ignored": Fault("actions_ignored"),
    "narrow actions": Fault("narrow_actions"),
    "not reproducible": Fault("not_reproducible"),
    "small memory": Fault("small_memory", {"buffer_size": 500}),
    "young memory": Fault("young_memory", {"warmup_steps": 200}),
}
# Faults that show only once something is learned.
LATER = ("raises", "huge rewards", "same score", "noise", "late rewards", "tiny actions pay")


def settings_of(fault: str = "") -> dict[str, Any]:
    """Returns the settings of a run of this twin: environment, argument, and what else breaks it."""
    extra = FAULTS[fault].settings if fault else {}
    return {"env": Twin, "env_args": {"fault": fault} if fault else {}, **extra}
