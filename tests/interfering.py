"""An environment that interferes with the process that started its run, for the tests of studies."""

import os
import signal
from pathlib import Path

from example_envs import Drifting


class Interfering(Drifting):
    """Drifts; at a step that the file `signal` names it sends a signal, once, to the parent of its process."""

    steps = 0  # of all environments in this process

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def step(self, action):
        Interfering.steps += 1
        order = Path("signal")
        if order.exists():
            name, step = order.read_text().split()
            if Interfering.steps >= int(step):
                order.unlink()
                os.kill(os.getppid(), signal.Signals[name])
        if self.fails and Interfering.steps > 30:
            raise RuntimeError("the gripper is stuck")
        return super().step(action)
