"""Plays the episodes of a video and yields a rendered frame of each step, with the numbers of that moment."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3 import seeding
from td3.agent import Agent
from td3.config import env_name
from td3.environments import Wrappers, make_to_render, maker_to_render
from td3.errors import ConfigError, EnvironmentFailure

USUAL_RATE = 30.0  # frames a second, where an environment does not say


class Moment(NamedTuple):
    """One step of an episode, as it is about to be taken."""

    episode: int
    step: int
    frame: NDArray[np.uint8]  # (height, width, 3)
    action: NDArray[np.float32]  # in [−1, 1]
    earned: float  # the sum of the rewards so far
    values: tuple[float, float] | None  # what the two critics expect from here on; none where the agent has no critics
    last: bool = False  # the episode is over, and no action follows; the frame is the one before


class Playback:
    """The environment of a video, and how many of its steps are a second."""

    def __init__(self, agent: Agent, size: int) -> None:
        config = agent.config
        wrappers = Wrappers.of(config)
        self.agent, self.name = agent, env_name(config.env)
        make = maker_to_render(config.env, size, wrappers, config.env_args)
        self.envs = make_to_render(self.name, make, wrappers)
        env = self.envs.envs[0]
        rate = env.metadata.get("render_fps") or USUAL_RATE
        self.rate = float(rate) / config.action_repeat
        self.render: Callable[[], Any] = env.render

    def episode(self, number: int, seed: int, most: int | None) -> Iterator[Moment]:
        """Plays one episode, or its first `most` steps."""
        agent, earned, step = self.agent, 0.0, 0
        observation = self.envs.reset([seed])
        while True:
            action = agent.policy(observation)
            moment = Moment(number, step, self._frame(), action[0], earned, values_of(agent, observation, action))
            yield moment
            result = self.envs.step(action)
            if result.failures:
                raise EnvironmentFailure(result.failures[0])
            earned, step = earned + float(result.reward[0]), step + 1
            observation = result.observation
            if result.terminated[0] or result.truncated[0] or step == most:
                break
        yield moment._replace(step=step, earned=earned, last=True)  # the environment is at its next start already

    def _frame(self) -> NDArray[np.uint8]:
        frame = np.asarray(self.render())
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            got = f"{frame.dtype} of {frame.shape}"
            raise ConfigError(f"env {self.name!r} must render bytes of (height, width, 3); got {got}.")
        return frame


def values_of(agent: Agent, observation: Any, action: Any) -> tuple[float, float] | None:
    """Returns what both critics say of the first row."""
    if agent.values is None:
        return None
    first, second = agent.values(observation, action)[0].tolist()
    return first, second


@contextlib.contextmanager
def play(agent: Agent, size: int) -> Iterator[Playback]:
    """Makes the environment of a video, and closes it at the end."""
    playback = Playback(agent, size)
    try:
        yield playback
    finally:
        playback.envs.close()


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Returns the seeds of the episodes: those of `td3 evaluate` with the same seed, so that both show the same."""
    return seeding.environment_seeds(seed, "final evaluation environments", episodes)
