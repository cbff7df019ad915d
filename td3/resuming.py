"""What a stopped run has to go on from: its newest whole checkpoint, and what it still owed."""

from typing import Any, NamedTuple

from td3.config import Config, env_name
from td3.errors import ConfigError, RunError
from td3.keeping import Checkpoint, RunFolder
from td3.learner.making import cores

MOST_WORKERS, MOST_ENVS = 32, 1_024  # that a run starts without being trusted; more workers where there are more cores


class Pending(NamedTuple):
    """A tick that is remembered but not finished: its updates, its rows of metrics, or its evaluation are owed."""

    before: int  # the step before it
    ended: list[tuple[int, float, int]]  # as in `Played`
    reported: bool = False  # whether its rows of metrics are written: what is left is the evaluation

    @classmethod
    def of(cls, data: Any) -> "Pending | None":
        """From plain data, as a checkpoint has it."""
        if data is None:
            return None
        before, ended, reported = data
        return cls(int(before), [(int(env), float(total), int(length)) for env, total, length in ended], bool(reported))


def newest_whole(folder: RunFolder, without_memory: bool) -> tuple[Checkpoint, list[str]]:
    """The newest checkpoint whose files are what was written, and what is wrong with newer ones."""
    try:
        chosen, _, wrong = folder.newest(lambda one: one.check(memory=not without_memory))
        return chosen, wrong
    except RunError as problem:
        if without_memory or not whole_but_for_memory(folder):
            raise
        raise RunError(
            f"{problem} Its networks are whole: --without-memory (without_memory=True) goes on without the rows that "
            "are damaged."
        ) from None


def whole_but_for_memory(folder: RunFolder) -> bool:
    try:
        folder.newest(lambda one: one.check(memory=False))
    except RunError:
        return False
    return True


def needs_trust(config: Config) -> bool:
    """Whether a run is gone on with only if the user says that it is trusted."""
    return ":" in env_name(config.env) or bool(immodest(config))


def immodest(config: Config) -> str:
    """What a run asks for that is not started just because a folder says so, or nothing."""
    most = {"workers": max(MOST_WORKERS, 4 * cores()), "num_envs": MOST_ENVS}
    for name, limit in most.items():
        if getattr(config, name) > limit:
            return f"{name} is {getattr(config, name):,} in this run, more than the {limit:,} that are started just"
    return ""


def check_modest(config: Config, trust: bool) -> None:
    """Refuses to start as many processes or environments as a folder asks for, unless the user trusts it."""
    if not trust and (excess := immodest(config)):
        raise ConfigError(f"{excess} because a folder says so: say that you trust it (trust=True, --trust).")
