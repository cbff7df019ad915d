"""Tapes of episodes: how each began and what was done since, enough to play it again when a run is resumed."""

from typing import Any

import gymnasium
import numpy as np

from td3 import seeding
from td3.environments.faults import STOPPED, BadValue
from td3.types import Episode, Float32s

LONGEST_TAPE = 100_000  # actions of one episode that are stored: a longer one would take too long to play again


class Tape:
    """One episode under way."""

    def __init__(self, start: dict[str, Any] | None = None) -> None:
        """Begins an episode: from a seed, a random state, or from what is not known."""
        self.start = start
        self._actions: list[Float32s] = []

    def add(self, action: Float32s) -> None:
        """Adds an action that was executed."""
        if len(self._actions) < LONGEST_TAPE:
            self._actions.append(action.copy())
        else:
            self.start = None
            self._actions.clear()

    def episode(self, random: dict[str, Any] | None, action_size: int) -> Episode:
        """Returns the episode so far; `random` is where the environment's own generator is now."""
        actions = np.array(self._actions, np.float32).reshape(-1, action_size)
        return Episode(self.start, random, actions)


def random_state(env: gymnasium.Env[Any, Any]) -> dict[str, Any] | None:
    """Returns the state of the environment's own random generator; None where it has none, or one of another kind."""
    try:
        stream = _stream(env)
        return None if stream is None else seeding.state_of(stream)
    except STOPPED:
        raise
    except BaseException:
        return None


def set_random_state(env: gymnasium.Env[Any, Any], state: dict[str, Any]) -> None:
    """Puts the environment's own random generator where it was."""
    stream = _stream(env) or env.unwrapped.np_random
    if ("key" in state) != isinstance(stream, np.random.RandomState):
        raise BadValue("its random generator is of another kind than it was.")
    seeding.load_state(stream, state)


def _stream(env: gymnasium.Env[Any, Any]) -> seeding.Stream | None:
    """Returns the environment's own random generator, as far as there is one already."""
    own = type(env.unwrapped).np_random is not gymnasium.Env.np_random  # such as dm_control's, through shimmy
    stream: Any = env.unwrapped.np_random if own else getattr(env.unwrapped, "_np_random", None)
    return stream if isinstance(stream, seeding.Stream) else None
