"""Opens a stopped run: its newest whole checkpoint, its config, and what a stranger's run may not ask for."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from td3.config import Config, checked, env_name, unfolded
from td3.config.trust import immodest, why_not_trusted
from td3.errors import ConfigError, RunError
from td3.schedule import RESUMABLE
from td3.storage import Checkpoint, RunFolder
from td3.storage.record import last_step
from td3.wording import brief


def newest_whole(folder: RunFolder, without_memory: bool) -> tuple[Checkpoint, list[str]]:
    """Returns the newest checkpoint with all files as they were written, and what is wrong with newer ones."""
    try:
        chosen, _, wrong = folder.newest(lambda one: one.check(memory=not without_memory))
        return chosen, wrong
    except RunError as problem:
        if without_memory or not whole_but_for_memory(folder):
            raise
        raise RunError(
            f"{problem} Its networks are whole: --without-memory (without_memory=True) continues without the rows that "
            "are damaged."
        ) from None


def check_just_begun(folder: RunFolder, config: Config) -> None:
    """Refuses to begin a run again from its first step if it had gone further: its checkpoints are missing."""
    last = last_step(folder.metrics)
    if config.checkpoint_every and not folder.awaits_checkpoint() and last > config.checkpoint_every + config.num_envs:
        raise RunError(
            f"run {str(folder.path)!r} has no checkpoint, though its metrics go to step {last:,}: its checkpoints were "
            "removed, or could not be saved. Bring them back, or begin a new run."
        )


def whole_but_for_memory(folder: RunFolder) -> bool:
    """Returns whether a checkpoint is whole if its memory is not counted."""
    try:
        folder.newest(lambda one: one.check(memory=False))
    except RunError:
        return False
    return True


def config_of(state: dict[str, Any], env: Any = None, trust: bool = False) -> Config:
    """The config a checkpoint was made with. What it names is not imported unless the user passes or trusts it."""
    changes: dict[str, Any] = {}
    if env is not None:
        env, own_args = unfolded(checked("env", env))
        changes = {"env": env, "env_args": own_args}
    try:
        data = state["config"]
        if changes and not changes["env_args"] and env_name(env) == data.get("env"):  # the run's own
            changes.pop("env_args")
        config = Config.from_data(data, **changes)
    except (KeyError, TypeError, AttributeError, ConfigError) as problem:
        raise RunError(f"The checkpoint's config cannot be used: {problem}") from problem
    if env is None and not trust and (reason := why_not_trusted(config)):
        raise ConfigError(reason)
    return config


def check_modest(config: Config, trust: bool) -> None:
    """Refuses to start as many processes or environments as a folder asks for, unless the user trusts it."""
    if not trust and (excess := immodest(config)):
        raise ConfigError(f"{excess} that you trust (trust=True, --trust).")


def asked_again(run: str | Path, asked: Config, given: Collection[str]) -> dict[str, Any]:
    """Returns how `td3.resume` continues a run, asked for by the command that began it; `given` are its settings.

    Each of them must be as the run has it, or as it was begun with: what was changed since then stays. Of the goal, the
    further one counts.
    """
    folder = RunFolder.open(run)
    begun = folder.begun()
    now = plain_config(begun if begun is not None else folder.newest(Checkpoint.state)[1].get("config"))
    try:
        first = plain_config(folder.first_config())
    except RunError:  # edited or removed, which changes nothing
        first = now
    wanted = asked.to_data()
    for name in given:
        if name != "steps" and wanted[name] not in (now[name], first[name]):
            how = "td3 resume changes it" if name in RESUMABLE else "begin a new run"
            raise ConfigError(
                f"{name} is {brief(now[name])} in run {str(run)!r}, and --resume keeps that: {how}; got "
                f"{brief(wanted[name])}."
            )
    known = all(wanted[name] == now[name] for name in ("workers", "num_envs"))  # the user asks for as many as the run
    further = {"steps": asked.steps} if "steps" in given and asked.steps > now["steps"] else {}
    return {"env": asked.env, "trust": known, **further} if "env" in given else further


def plain_config(data: Any) -> dict[str, Any]:
    """Returns the settings in a run's files, checked, as plain data."""
    settings = {name: value for name, value in data.items() if name != "parts"} if isinstance(data, dict) else data
    return config_of({"config": settings}, trust=True).to_data()
