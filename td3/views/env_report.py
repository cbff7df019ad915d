"""What an environment looks like to TD3, for `td3 check`: known before a long run is started."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from td3 import seeding
from td3.collection import Collector
from td3.config import SETTINGS, Config, env_name
from td3.config.presets import task_settings
from td3.environments import Wrappers, make_envs
from td3.environments.descriptions import describe_bounds, oddities
from td3.environments.observations import Leaf
from td3.errors import ConfigError
from td3.learner.encoders import ENCODERS
from td3.learner.making import check_networks, engine_for
from td3.machine import check_room, human
from td3.replay import bytes_per_transition
from td3.wording import counted

STEPS = 200


def check_environment(config: Config) -> dict[str, Any]:
    """Makes the environment, plays random steps and reports on it; raises what training would raise."""
    wrappers = Wrappers.of(config)
    envs = make_envs(
        config.env, config.num_envs, config.workers, config.worker_timeout, wrappers=wrappers, env_args=config.env_args
    )
    try:
        layout = envs.observation.layout
        engine, _ = engine_for(config, layout, envs.num_envs)
        check_networks(engine, config, layout, envs.action.size)
        began = time.perf_counter()
        seeds = seeding.environment_seeds(config.seed, "environments", envs.num_envs)
        collector = Collector(envs, seeds, seeding.generator(config.seed, "exploration"), STEPS, 0.0)
        rewards: list[float] = []
        lengths: list[int] = []
        while collector.steps < STEPS:
            collected = collector.collect(lambda _: np.empty(0, np.float32))  # never called: all is warm-up
            rewards += collected.transitions.reward.tolist()
            lengths += [length for _, _, length in collected.episodes]
        speed = collector.steps / (time.perf_counter() - began)
        each = bytes_per_transition(layout, envs.action.size, config.n_step)
        notes = oddities(envs.observation, envs.action)
        try:
            check_room(each, config.buffer_size)
        except ConfigError as problem:
            notes.append(f"A full memory does not fit: {problem}")
        if len(set(rewards)) == 1:
            notes.append(f"Every reward of {STEPS} random steps was {rewards[0]:g}: are rewards that rare?")
        return {
            "env": env_name(config.env),
            "trainable": True,
            "num_envs": envs.num_envs,
            "observation": [
                {"name": leaf.name, "shape": leaf.shape, "dtype": leaf.dtype.name, **reading(leaf, config)}
                for leaf in envs.observation.leaves
            ],
            "observation_size": envs.observation.size,
            "action_shape": envs.action.shape,
            "action_size": envs.action.size,
            "action_bounds": describe_bounds(*envs.action.bounds),
            "bytes_per_transition": each,
            "memory_bytes": each * config.buffer_size,
            "buffer_size": config.buffer_size,
            "random_steps": collector.steps,
            "steps_per_second": speed,
            "reward_range": [min(rewards), max(rewards)],
            "episode_lengths": lengths,
            "task_settings": {
                name: value
                for name, value in task_settings(config.env, config.preset).items()
                if getattr(config, name) == value
            },
            "notes": notes,
        }
    finally:
        envs.close()


def reading(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Returns what is done with a leaf of the observation, and how many numbers the networks take of it."""
    return READINGS.get(leaf.kind, read_other)(leaf, config)


def read_vector(leaf: Leaf, config: Config, how: str = "") -> dict[str, Any]:
    """Describes numbers that are passed on as they are."""
    normal = ", normalised" if config.normalize_observations else ""
    return {
        "numbers": leaf.stack * leaf.part.size,
        "read": f"{counted(leaf.part.size, 'number')}{how}{times(leaf)}{normal}",
    }


def times(leaf: Leaf) -> str:
    """Returns how many observations of a leaf are joined, if there are several."""
    return f" × {leaf.history} observations, each stored once" if leaf.history > 1 else ""


def read_category(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes a category."""
    return read_vector(leaf, config, ", one-hot")


def read_image(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes an image and its convolutions."""
    count, height, width = leaf.part.shape
    frames = f"{leaf.stack} frames" if leaf.stack > 1 else "an image"
    layers = ", ".join(map(str, config.encoder_channels))
    by = counted(config.random_shift, "pixel")
    shift = f", shifted by up to {by} when sampled" if config.random_shift else ""
    read = (
        f"{frames} of {height}×{width}, {counted(count, 'channel')}; each stored once, as bytes"
        f"{shift}; convolutions {layers} output {counted(config.encoder_features, 'feature')}"
    )
    return {"numbers": config.encoder_features, "read": read}


def read_other(leaf: Leaf, config: Config) -> dict[str, Any]:
    """Describes a kind that was added: what is stored, and what its encoder makes of it."""
    frames = leaf.stack // leaf.history
    features: int = leaf.history * ENCODERS[leaf.kind](leaf.part, frames, config).size
    stored = f"{counted(frames * leaf.part.size, leaf.kind)} of {leaf.part.dtype}{times(leaf)}"
    return {"numbers": features, "read": f"{stored}; its encoder outputs {counted(features, 'feature')}"}


# What is done with a leaf, by kind.
READINGS: dict[str, Callable[[Leaf, Config], dict[str, Any]]] = {
    "vector": read_vector,
    "category": read_category,
    "image": read_image,
}


def lines_of(report: dict[str, Any]) -> list[str]:
    """Writes the report in lines for people."""
    parts = [
        f"{part['name']} {tuple(part['shape'])} {part['dtype']} → {part['read']}" for part in report["observation"]
    ]
    settings = ", ".join(f"{name} {value}" for name, value in report["task_settings"].items() if name in SETTINGS)
    low, high = report["reward_range"]
    ended = report["episode_lengths"]
    episodes = "no episode ended"
    if ended:
        episodes = f"{counted(len(ended), 'episode')} ended, the longest after {counted(max(ended), 'step')}"
    rows = [
        *(("observes" if place == 0 else "", part) for place, part in enumerate(parts[:12])),
        ("", f"… {len(parts)} parts in all" if len(parts) > 12 else ""),
        (
            "acts",
            f"{counted(report['action_size'], 'number')}, shape {tuple(report['action_shape'])}, "
            f"in {report['action_bounds']}",
        ),
        (
            "memory",
            f"{report['bytes_per_transition']:,} bytes per transition, {human(report['memory_bytes'])} when "
            f"{report['buffer_size']:,} are stored",
        ),
        (
            "played",
            f"{report['random_steps']} random steps at {report['steps_per_second']:,.0f} per second; rewards from "
            f"{low:g} to {high:g}; {episodes}",
        ),
        ("settings", settings and f"of its own: {settings}"),
        *(("note", note) for note in report["notes"]),
    ]
    lines = [f"{title:>9}  {text}" for title, text in rows if text]
    return [f"{report['env']}: TD3 can train on it.", *lines]
