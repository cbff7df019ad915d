"""Finds the time limit of an environment, if it has one that can be known without playing it."""

from collections.abc import Callable
from typing import Any

import gymnasium

from td3.environments.envs import Envs
from td3.environments.factory import in_this_process


def time_limit(envs: Envs, env: str | Callable[..., Any], action_repeat: int = 1) -> int:
    """Returns after how many steps of the agent an episode is truncated; 0 where no limit is known."""
    local = in_this_process(envs)
    limits = _limits_of(local[0]) if local else []
    if isinstance(env, str):
        limits.append(getattr(gymnasium.registry.get(env.rpartition(":")[2]), "max_episode_steps", None))
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return -(-min(known) // action_repeat) if known else 0


def _limits_of(env: Any) -> list[Any]:
    """Returns what each wrapper and the specification of an environment say."""
    limits: list[Any] = []
    while env is not None:
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        limits.append(getattr(getattr(env, "spec", None), "max_episode_steps", None))
        env = getattr(env, "env", None) if isinstance(env, gymnasium.Wrapper) else None
    return limits
