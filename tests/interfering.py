"""An environment that interferes with the process that started its run, for the tests of studies."""

import contextlib
import os
import signal
import threading
from pathlib import Path

from example_envs import Drifting

ORDER = Path("signal")
PARENT = os.getppid()  # later it may be another one: if ours has died, whoever adopted this process


class Interfering(Drifting):
    """Drifts; at the step that the file `signal` names it sends a signal, once, to the parent of its process."""

    steps = 0  # of all environments in this process

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def step(self, action):
        Interfering.steps += 1
        with contextlib.suppress(FileNotFoundError):  # another process may be faster
            name, step = ORDER.read_text().split()
            if Interfering.steps >= int(step):
                ORDER.rename("taken")
                if os.getppid() == PARENT:
                    os.kill(PARENT, signal.Signals[name])
                    while signal.getsignal(signal.SIGTERM).__self__.signal is None:  # until it is passed on to us
                        threading.Event().wait(0.01)
        if self.fails and Interfering.steps > 30:
            raise RuntimeError("the gripper is stuck")
        return super().step(action)
