"""Imports a user's own code by `module:name`, and says in one sentence why it cannot."""

import importlib
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from td3.environments.families import family_advice
from td3.environments.faults import STOPPED, describe_exception, message_of
from td3.errors import ConfigError, TD3Error
from td3.wording import brief, did_you_mean


def user_module(setting: str, text: str) -> ModuleType:
    """Imports the module of `module:name`, which was given for this setting; whatever it raises is a refusal."""
    module = text.rpartition(":")[0]
    try:
        return importlib.import_module(module)
    except (*STOPPED, TD3Error):
        raise
    except BaseException as problem:
        reason = message_of(problem) if isinstance(problem, ImportError) else describe_exception(problem)
        missing = isinstance(problem, ModuleNotFoundError) and module.startswith(problem.name or "\0")
        advice = family_advice(text)
        near = (f" {advice[0].upper()}{advice[1:]}" if advice else near_module(module)) if missing else ""
        raise ConfigError(f"{setting} {text!r} cannot be imported: {reason}.{near}") from problem


def near_module(module: str) -> str:
    """Suggests a module in the working directory for a mistyped one."""
    return did_you_mean(module.removesuffix(".py"), [path.stem for path in Path().glob("*.py")])


def load_named(setting: str, text: str) -> Any:
    """Imports the class or callable `module:name`; anything else is refused, with a near miss where there is one."""
    module_name, _, name = text.rpartition(":")
    if not module_name or not name:
        raise ConfigError(f"{setting} must be MODULE:NAME, a class or callable of yours; got {brief(text)}.")
    module = user_module(setting, text)
    try:
        part = reduce(getattr, name.split("."), module)
    except AttributeError:
        near = did_you_mean(name, [name for name in vars(module) if not name.startswith("_")])
        raise ConfigError(f"{setting} {text!r} cannot be imported: {module_name} has no {name}.{near}") from None
    if not callable(part):
        raise ConfigError(f"{setting} {text!r} must be a class or a callable; it is {brief(part)}.")
    return part
