"""Trains a Pendulum that hides its velocity, with and without a history: `python examples/hidden_velocity.py`."""

import sys

import gymnasium
import numpy as np

import td3


class HiddenVelocity(gymnasium.ObservationWrapper):
    """Observes the pendulum's angle alone, as cosine and sine: one observation does not say which way it swings."""

    def __init__(self, **how):
        super().__init__(gymnasium.make("Pendulum-v1", **how))
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def observation(self, observation):
        return observation[:2]


def main(steps: int = 10_000, episodes: int = 20) -> dict[int, list[float]]:
    """Returns the mean returns by history, one for each seed."""
    returns: dict[int, list[float]] = {}
    for history in (1, 3):
        for seed in (0, 1):
            agent = td3.TD3(
                HiddenVelocity, history=history, seed=seed, warmup_steps=1_000, hidden=(128, 128), gamma=0.98,
                actor_lr=1e-3, critic_lr=1e-3, threads=1,
            )  # fmt: skip
            mean = td3.evaluate(agent.learn(steps), episodes).mean
            returns.setdefault(history, []).append(mean)
            print(f"history {history}, seed {seed}: mean return {mean:,.0f}")
    return returns


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
