"""When a run stops by itself: it is good enough, it has not improved for long, or it cannot recover."""

from td3.config import Config
from td3.progress import Progress, Stop


def why_stop(config: Config, progress: Progress, step: int) -> Stop | None:
    """Returns the setting that stops the run after the rows of this step, with the reason; None lets it train on.

    `progress.sick` is set by whoever diagnoses the run.
    """
    last = progress.last_evaluation
    if last is not None and last[0] == step:
        if config.stop_at is not None and last[1] >= config.stop_at:
            return Stop("stop_at", f"The evaluation's mean return, {last[1]:,.1f}, is at least {config.stop_at:,g}.")
        if 0 < config.stop_after <= progress.without_best:
            return Stop("stop_after", f"The last {progress.without_best:,} evaluations brought no new best.")
    if config.stop_when_sick and progress.sick:
        return Stop("stop_when_sick", progress.sick)
    return None
