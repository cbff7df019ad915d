"""When a run updates, logs, evaluates and saves."""

from td3.config import Config


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` was reached on the way from `before` to `now`; never for 0."""
    return every > 0 and now // every > before // every


def updates_due(config: Config, due: float, step: int, ended: int) -> float:
    """Returns how many updates a run should have done by now; `ended` are the steps of episodes that just ended."""
    if config.update_schedule == "step":
        return (step - config.update_after) * config.updates_per_step
    return due + ended * config.updates_per_step if step > config.update_after else due


def reports_due(config: Config, before: int, step: int, goal: int) -> bool:
    """Whether there is anything to report but ended episodes."""
    every = (config.log_every, config.eval_every, config.checkpoint_every)
    return step >= goal or any(crossed(steps, before, step) for steps in every)
