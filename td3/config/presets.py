"""Tables of settings: the presets, and what some tasks need in addition."""

import re
from collections.abc import Mapping
from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "author": {},
    "paper": {  # the 2018 code also learns from the warm-up's episodes while it lasts: update_after 0
        "hidden": (400, 300),
        "actor_lr": 1e-3,
        "critic_lr": 1e-3,
        "batch_size": 100,
        "warmup_steps": 10_000,
        "update_schedule": "episode",
        "update_after": 0,
    },
    "pixels": {
        "grey": True,
        "frame_stack": 3,
        "action_repeat": 2,
        "reward_scale": 0.1,
        "batch_size": 64,
        "buffer_size": 100_000,
        "actor_lr": 5e-4,
        "critic_lr": 5e-4,
        "warmup_steps": 500,
    },
}

PRESETS["td7"] = {  # as published in 2023: what `algorithm td7` does without being asked, and the rest
    "algorithm": "td7",
    "sampling": "lap",
    "policy_checkpoints": True,
    "update_schedule": "episode",
}

EASY = {"warmup_steps": 1_000}
TASKS: dict[str, dict[str, Any]] = {  # by the id's name without its version; they override the preset
    "Pendulum": {
        **EASY,
        "steps": 10_000,
        "hidden": (128, 128),
        "gamma": 0.98,
        "actor_lr": 1e-3,
        "critic_lr": 1e-3,
        "eval_every": 1_000,
    },
    "InvertedPendulum": {**EASY, "steps": 50_000},
    "InvertedDoublePendulum": EASY,
    "Reacher": EASY,
    "Swimmer": {"gamma": 0.9999},  # learns to swim only when it looks this far: Franceschetti et al., arXiv:2208.07587
}
OF_PRESETS: dict[str, dict[str, dict[str, Any]]] = {  # for one preset alone; they override TASKS
    "paper": {"Hopper": EASY, "Walker2d": EASY},  # as in the author's code of 2018
    "pixels": {
        "Pendulum": {
            "steps": 7_500,
            "hidden": (256, 256),
            "pixels": 32,
            "warmup_steps": 500,
            "eval_every": 500,
            "gamma": 0.99,
        },
        "InvertedPendulum": {
            "pixels": 64,
            "steps": 20_000,
            "warmup_steps": 500,
            "action_repeat": 1,
            "eval_every": 1_000,
        },
    },
}


def task_settings(env: Any, preset: str) -> Mapping[str, Any]:
    """Returns what this task needs in addition to the preset."""
    match = re.fullmatch(r"(\w+?)(-v\d+)?", env) if isinstance(env, str) else None  # or the latest version
    name = match[1] if match else ""
    return {**TASKS.get(name, {}), **OF_PRESETS.get(preset, {}).get(name, {})}


def completed(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a value for every setting: what is given, else the task's, else the preset's, else the default."""
    preset = given.get("preset", "pixels" if given.get("pixels") else defaults["preset"])
    task = task_settings(given.get("env", defaults["env"]), preset)
    values = {**defaults, **PRESETS[preset], **task, **given, "preset": preset}
    if values["update_after"] is None:
        values["update_after"] = values["warmup_steps"]
    return values
