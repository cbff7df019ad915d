"""When a run updates, logs, evaluates and saves, and which settings may change on the way."""

from collections.abc import Mapping
from typing import Any

from td3.config import SETTINGS, Config
from td3.errors import ConfigError
from td3.wording import brief, did_you_mean


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` was reached on the way from `before` to `now`; never for 0."""
    return every > 0 and now // every > before // every


def health_due(before: int, step: int) -> int:
    """Returns over how many steps the health of a run is to be measured now; 0 where it is not.

    Often while a run is young, so that a fault is found early; then rarely, for a record should stay small.
    """
    every = 1_000 if step <= 50_000 else 5_000
    return every if crossed(every, before, step) else 0


def updates_due(config: Config, due: float, step: int, ended: int) -> float:
    """Returns how many updates a run should have done by now; `ended` are the steps of episodes that just ended."""
    if config.update_schedule == "step":
        return (step - config.update_after) * config.updates_per_step
    return due + ended * config.updates_per_step if step > config.update_after else due


def reports_due(config: Config, before: int, step: int, goal: int) -> bool:
    """Whether there is anything to report but ended episodes."""
    every = (config.log_every, config.eval_every, config.checkpoint_every, 1_000 * config.diagnose)
    return step >= goal or any(crossed(steps, before, step) for steps in every)


# Settings that may change between two steps of a run.
CHANGEABLE = (
    "actor_lr",
    "critic_lr",
    "gamma",
    "tau",
    "policy_delay",
    "target_noise",
    "noise_clip",
    "exploration_noise",
    "batch_size",
)


def check_changeable(settings: Mapping[str, Any]) -> None:
    """Refuses a change of what a run cannot change on the way."""
    for name, value in settings.items():
        if name not in SETTINGS:
            raise ConfigError(f"{name} is no setting; got {brief(value)}.{did_you_mean(name, SETTINGS)}")
        if name not in CHANGEABLE:
            raise ConfigError(
                f"{name} cannot be changed to {brief(value)} during a run; these can: {', '.join(CHANGEABLE)}."
            )
