"""Samples batches in its own way: a transition is as likely as its last error is large.

Run it with `python examples/own_sampler.py`, or `td3 train Pendulum-v1 --sampler examples.own_sampler:ByError`.
"""

import numpy as np

import td3


class ByError(td3.UniformSampler):
    """A priority for each row of the memory: the first critic's last error there; new rows get the largest."""

    def __init__(self, memory):
        super().__init__(memory)
        self.rows, self.priority = np.arange(memory.capacity), np.zeros(memory.capacity)

    def sample(self, rng, count):
        sums = np.cumsum(self.priority * self.memory.can_sample(self.rows))  # frames before a stack are none
        return np.searchsorted(sums, rng.random(count) * sums[-1], side="right")

    def added(self, indices):
        self.priority[indices] = max(1.0, self.priority.max())

    def updated(self, indices, update):
        self.priority[indices] = (update.q1 - update.target).abs().cpu().numpy() + 1e-3

    def capture(self):  # what a resumed run needs to continue exactly
        return {"priority": self.priority}

    def restore(self, arrays):
        self.priority = arrays["priority"].copy()


if __name__ == "__main__":
    for event in td3.train(td3.Config(env="Pendulum-v1", steps=10_000), sampler=ByError):
        if isinstance(event, td3.Evaluated):
            print(f"step {event.step:6,}: {event.evaluation.mean:8.1f}")
