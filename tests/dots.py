"""A small environment with images for tests: a dot that wanders, observed, rendered or given in numbers."""

from functools import partial

import gymnasium
import numpy as np
from gymnasium import spaces

from td3.config import Config
from td3.session import Session

Box = spaces.Box
SMALL = {
    "hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "encoder_channels": (4,), "encoder_features": 6,
    "eval_every": 0, "film": False,
}  # fmt: skip


def images(*shape):
    return Box(0, 255, shape, np.uint8)


def some(*shape, seed=0):
    """Random bytes, the same ones each time."""
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


class Dot(gymnasium.Env):
    """A dot that wanders at random and by the action, shown as an image, as numbers, as both, or drawn."""

    action_space = Box(-2, 3, (1,), np.float32)
    metadata = {"render_modes": ["rgb_array"]}
    spaces = {
        "image": images(9, 12, 3),
        "numbers": Box(-np.inf, np.inf, (2,), np.float32),
        "both": spaces.Dict({"a": Box(-np.inf, np.inf, (2,), np.float32), "eye": images(9, 12, 3)}),
    }

    def __init__(self, kind="image", render_mode=None):
        self.kind, self.render_mode, self.observation_space = kind, render_mode, self.spaces[kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.uniform(0, 9, 2).astype(np.float32), 0
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        self.place = (self.place + self.np_random.normal(size=2).astype(np.float32) + action) % np.float32(9)
        return self._seen(), 100.0 + float(self.place[0]), False, self.count == 12, {}

    def _seen(self):
        parts = {"a": 100 + self.place, "eye": self._picture(9, 12)}
        return parts if self.kind == "both" else parts["eye" if self.kind == "image" else "a"]

    def _picture(self, height, width):
        picture = np.full((height, width, 3), 30, np.uint8)
        picture[tuple(np.int64(self.place * height / 9))] = [250, 130, 10]
        return picture

    def render(self):
        return self._picture(24, 36)


def session_of(kind, run=None, **settings):
    return Session(Config(**{"env": partial(Dot, kind), "steps": 60, **SMALL, **settings}), run)
