"""An environment that draws itself, alone in its file: a process that films it has little else to import."""

import os
import signal
import threading
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces


class Painted(gymnasium.Env):
    """Shows its step as a grey; ends after `length` steps. `trouble` is what drawing does instead.

    Each drawing tells its process in the file `log`: one line with the process and the actions since the reset.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 25}
    length, made = 10, []

    def __init__(self, render_mode=None, trouble="", log=""):
        self.render_mode, self.trouble, self.log = render_mode, trouble, log
        self.actions, self.seeds, self.drawn, self.closed = [], [], 0, 0
        Painted.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.place = 0, self.np_random.normal()
        self.seeds.append(seed)
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        self.actions.append(float(action[0]))
        return self._seen(), float(action[0]), False, self.count == self.length, {}

    def _seen(self):
        return np.array([self.count / 10, self.place], np.float32)

    def close(self):
        self.closed += 1

    def render(self):
        assert self.render_mode == "rgb_array"
        self.drawn += 1
        if self.log:
            with Path(self.log).open("a") as file:
                print(os.getpid(), *self.actions, file=file, flush=True)
        match self.trouble:
            case "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "exit":
                os._exit(7)
            case "hang":
                threading.Event().wait()
            case "raise":
                raise RuntimeError("no context")
        return np.full((300, 480, 3), 20 * (self.count % 12), np.uint8)
