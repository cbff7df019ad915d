"""An environment that fails in some of its episodes, alone in its file: worker processes import it."""

import os
import signal
import threading

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 10  # steps of an episode that does not fail
FATES = {
    "raises": lambda: (_ for _ in ()).throw(RuntimeError("the joint broke")),
    "dies": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hangs": lambda: threading.Event().wait(),
    "is no number": lambda: np.nan,
}


class Flaky(gymnasium.Env):
    """Fails at a step that its seed decides, in about a third of its episodes; `fate` says how.

    It observes the steps of its episode and a random number that every step draws.
    """

    observation_space = spaces.Box(-100, 100, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, fate="raises", often=30):
        self.fate, self.often = fate, often

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.last = 0, int(self.np_random.integers(1, self.often))
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        reward = float(action[0])
        if self.count == self.last:
            reward = FATES[self.fate]()
        return self._seen(), reward, False, self.count == LENGTH, {}

    def _seen(self):
        return np.array([self.count, self.np_random.random()], np.float32)
