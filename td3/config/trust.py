"""Trust: what a folder that somebody else may have written cannot ask for, unless the user says so."""

from dataclasses import replace
from typing import Any

from td3.config.config import Config
from td3.config.env import env_name, has_no_name, nameless
from td3.machine import cores

MOST_WORKERS, MOST_ENVS = 32, 1_024  # that a run starts without being trusted; more workers where there are more cores
HOW = "pass the environment (env=…, --env) or say that you trust it (trust=True, --trust)."


def why_not_trusted(config: Config, how: str = HOW) -> str:
    """Why this environment is not made just because a run names it, or nothing."""
    if has_no_name(config.env):
        return nameless(str(config.env))
    if ":" in str(config.env):
        return f"env {config.env!r} lives in Python code, which is not imported just because a run names it: {how}"
    texts = [name for name, value in config.env_args.items() if has_text(value)]
    if texts:
        return f"env_args {', '.join(texts)} may name files, which are not read just because a run names them: {how}"
    return ""


def has_text(value: Any) -> bool:
    """Returns whether the value is text, or a list with text in it."""
    return isinstance(value, str) or (isinstance(value, list) and any(map(has_text, value)))


def needs_trust(config: Config) -> bool:
    """Whether a run is continued only if the user says that it is trusted."""
    return bool(why_not_trusted(replace(config, env=env_name(config.env))) or immodest(config))


def immodest(config: Config) -> str:
    """What a run asks for that is not started just because a folder says so, or nothing."""
    most = {"workers": max(MOST_WORKERS, 4 * cores()), "num_envs": MOST_ENVS}
    for name, limit in most.items():
        if getattr(config, name) > limit:
            return (
                f"{name} is {getattr(config, name):,} in this run; more than {limit:,} are started only for a run that"
            )
    return ""
