"""When a run updates, logs, evaluates and saves, and which settings may change on the way."""

from collections.abc import Mapping, Sequence
from typing import Any

from td3.config import SETTINGS, Config
from td3.errors import ConfigError
from td3.synonyms import instead_of
from td3.wording import brief, did_you_mean


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` was reached on the way from `before` to `now`; never for 0."""
    return every > 0 and now // every > before // every


def health_due(before: int, step: int) -> bool:
    """Whether the health of a run is to be measured now.

    Often while a run is young, so that a fault is found early; then rarely, for a record should stay small.
    """
    return crossed(1_000 if step <= 50_000 else 5_000, before, step)


def updates_due(config: Config, due: float, step: int, ended: int) -> float:
    """Returns how many updates a run should have done by now; `ended` are the steps of episodes that just ended."""
    if config.update_schedule == "step":
        return (step - config.update_after) * config.updates_per_step
    return due + ended * config.updates_per_step if step > config.update_after else due


def reports_due(config: Config, before: int, step: int, goal: int) -> bool:
    """Whether there is anything to report but ended episodes."""
    return (
        step >= goal
        or crossed(config.log_every, before, step)
        or crossed(config.eval_every, before, step)
        or crossed(config.checkpoint_every, before, step)
        or (config.diagnose and crossed(1_000, before, step))
    )


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
    "stop_at",
    "stop_after",
    "stop_when_sick",
)
# Settings that may change also when a run is resumed: what is set up then, and says nothing of the past. Others cannot:
# networks, memory and observations have their shape, the updates owed follow from the schedule since the first step,
# and `update_after` was taken from `warmup_steps` when the run began.
RESUMABLE = (
    "steps",
    *CHANGEABLE,
    "workers",
    "worker_timeout",
    "restart_failed",
    "eval_every",
    "eval_episodes",
    "checkpoint_every",
    "keep_last",
    "keep_best",
    "log_every",
    "record_updates",
    "diagnose",
    "film",
    "engine",
    "threads",
)


def check_changeable(settings: Mapping[str, Any], names: Sequence[str] = CHANGEABLE) -> None:
    """Refuses a change of what a run cannot change: on the way, or with other `names` when it is resumed."""
    when = "during a run" if names is CHANGEABLE else "when a run is resumed"
    for name, value in settings.items():
        if name not in SETTINGS:
            there = instead_of(name)
            meant = f": {there}" if there else ""
            raise ConfigError(f"{name} is no setting{meant}; got {brief(value)}.{did_you_mean(name, SETTINGS)}")
        if name not in names:
            raise ConfigError(f"{name} cannot be changed to {brief(value)} {when}; these can: {', '.join(names)}.")


def differences(old: Config, new: Config) -> dict[str, list[Any]]:
    """Returns the settings that two configs differ in, each as [before, after].

    The goal is left out: a run that was extended is the same as one that had this goal from the beginning.
    """
    before, after = old.to_data(), new.to_data()
    return {name: [before[name], after[name]] for name in RESUMABLE if name != "steps" and before[name] != after[name]}
