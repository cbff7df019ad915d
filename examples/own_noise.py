"""Explores with noise of its own: Ornstein–Uhlenbeck, which drifts from step to step instead of jumping.

Run it with `python examples/own_noise.py`, or `td3 train Pendulum-v1 --noise examples.own_noise:OrnsteinUhlenbeck`.
"""

import numpy as np

import td3


class OrnsteinUhlenbeck(td3.GaussianNoise):
    """Noise that remembers: each step it returns by `pull` towards zero, and a Gaussian number is added."""

    pull = 0.15

    def __init__(self, num_envs, action_size):
        super().__init__(num_envs, action_size)
        self.state = np.zeros(self.shape, np.float32)

    def sample(self, rng, scale, first):
        self.state[first] = 0  # an episode begins
        self.state += super().sample(rng, scale, first) - self.pull * self.state
        return self.state.copy()

    def capture(self):  # what a resumed run needs to continue exactly
        return {"state": self.state}

    def restore(self, arrays):
        self.state = arrays["state"].copy()


if __name__ == "__main__":
    for event in td3.train(td3.Config(env="Pendulum-v1", steps=10_000), noise=OrnsteinUhlenbeck):
        if isinstance(event, td3.Evaluated):
            print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")
