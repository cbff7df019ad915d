"""What a run says of itself before its first step: what it will see and use, and what is odd."""

from typing import Any

from td3.config import Config, env_name
from td3.environments.descriptions import describe_bounds, describe_layout, oddities
from td3.interfaces import AnyCollector
from td3.machine import human
from td3.wording import counted


def summary(config: Config, collector: AnyCollector, bytes_each: int, bytes_in_all: int) -> dict[str, Any]:
    """Returns spaces, memory and processes; a `Started` event has these, and engine and threads beside them."""
    observation, action = collector.observation_map, collector.action_map
    return {
        "env": env_name(config.env),
        "observation": str(observation.space),
        "observation_size": observation.size,
        "sees": describe_layout(observation.layout),
        "action_size": action.size,
        "action_bounds": describe_bounds(*action.bounds),
        "num_envs": collector.num_envs,
        "workers": config.workers,
        "bytes_per_transition": bytes_each,
        "memory_bytes": bytes_in_all,
        "memory": f"{human(bytes_in_all)} for {counted(min(config.buffer_size, config.steps), 'transition')}",
    }


def notes(config: Config, collector: AnyCollector, engine_note: str, threads: int, goal: int) -> tuple[str, ...]:
    """Returns what is odd about a run to `goal` steps, one sentence each."""
    found = [*oddities(collector.observation_map, collector.action_map), *filter(None, [engine_note])]
    if config.threads > threads:
        found.append(f"threads is {config.threads}, and here are {threads} cores: so many are used.")
    for name, what in (("warmup_steps", "play at random throughout"), ("update_after", "learn nothing")):
        if getattr(config, name) >= goal:
            found.append(f"{name} is {getattr(config, name):,} and steps only {goal:,}: the agent will {what}.")
    return tuple(found)


def change_note(name: str, then: Any, now: Any) -> str:
    """Says that what the bytes depend on is not what it was."""
    return f"{name} was {then}, now it is {now}: the same bytes are not to be expected."
