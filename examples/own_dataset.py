"""Learns from a dataset alone, without playing (offline): `python examples/own_dataset.py`.

A step of such a run is one update; evaluations play as always.
"""

import sys
from functools import partial

import gymnasium
import numpy as np

import td3


def recorded(steps, seed=0):
    """Plays at random and returns what happened, in the environment's own units, as a dataset would have it."""
    env, rows = gymnasium.make("Pendulum-v1"), []
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = env.action_space.sample()
        next_observation, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, action, reward, next_observation, terminated))
        observation = env.reset()[0] if terminated or truncated else next_observation
    names = ("observation", "action", "reward", "next_observation", "terminated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def main(steps: int = 5_000) -> None:
    dataset = recorded(10_000)
    config = td3.Config(env="Pendulum-v1", steps=steps, warmup_steps=0, update_after=0, eval_every=steps // 5)
    for event in td3.train(config, collector=partial(td3.Dataset, dataset)):
        if isinstance(event, td3.Evaluated):
            print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
