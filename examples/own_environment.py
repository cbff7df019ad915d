"""Trains an environment of one's own, with odd bounds and no registration: `python examples/own_environment.py`."""

import sys

import gymnasium
import numpy as np

import td3


class Heater(gymnasium.Env):
    """Keep a room at 21 °C. Heating has 0 to 2,000 watts, the window opens from 0 to 1; both cost something."""

    observation_space = gymnasium.spaces.Dict(
        {
            "inside": gymnasium.spaces.Box(-50, 100, (), np.float32),
            "outside": gymnasium.spaces.Box(-50, 100, (), np.float32),
            "season": gymnasium.spaces.Discrete(2),
        }
    )
    action_space = gymnasium.spaces.Box(np.float32([0, 0]), np.float32([2_000, 1]))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.season = int(self.np_random.integers(2))
        self.outside = float(self.np_random.normal(28 if self.season else 2, 3))
        self.inside, self.minutes = float(self.np_random.uniform(10, 30)), 0
        return self.look(), {}

    def step(self, action):
        watts, window = (float(one) for one in action)
        self.minutes += 5
        self.inside += watts / 1_000 + (0.02 + 0.2 * window) * (self.outside - self.inside)
        reward = -abs(self.inside - 21) - watts / 10_000
        return self.look(), reward, False, self.minutes >= 12 * 60, {}  # a time limit, not an end

    def look(self):
        inside, outside = np.float32(self.inside / 10), np.float32(self.outside / 10)
        return {"inside": np.asarray(inside), "outside": np.asarray(outside), "season": self.season}


def main(steps: int = 6_000) -> float:
    config = td3.Config(
        env=Heater, steps=steps, warmup_steps=1_000, gamma=0.95, hidden=(64, 64), eval_every=1_000, num_envs=2
    )
    score = float("nan")
    for event in td3.train(config):
        if isinstance(event, td3.Evaluated):
            score = event.evaluation.mean
            print(f"step {event.step:6,}: {score:8.1f}")
    return score


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
