"""The setting `env` and its arguments: what may be given, what it is called, and how it is found again."""

import inspect
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from td3.config.values import is_plain, plain_data
from td3.errors import ConfigError
from td3.wording import brief

ENV_WORDS = "a Gymnasium id or a callable that makes an environment"
ARGUMENT_WORDS = "names with plain values: numbers, texts, true, false, null, or lists of those"


def check_env(env: Any) -> Any:
    """Returns an id or a callable; an environment itself or anything else is refused."""
    gymnasium = sys.modules.get("gymnasium")  # as long as it is not imported, no environment exists
    if gymnasium is not None and isinstance(env, gymnasium.Env | gymnasium.vector.VectorEnv):
        kind = type(env).__name__
        raise ConfigError(
            f"env must be {ENV_WORDS}; got an environment, a {kind}: pass what makes one, such as lambda: {kind}(…)."
        )
    if (isinstance(env, str) and env) or callable(env):
        return env
    near = " An environment itself cannot be copied: pass what makes it." if hasattr(env, "reset") else ""
    raise ConfigError(f"env must be {ENV_WORDS}; got {brief(env)}.{near}")


def check_env_args(arguments: Any) -> dict[str, Any]:
    """Returns keyword arguments as plain data; what JSON cannot return exactly is refused."""
    if not isinstance(arguments, Mapping):
        raise ConfigError(f"env_args must be {ARGUMENT_WORDS}; got {brief(arguments)}.")
    for name in arguments:
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(f"env_args must have names that Python can call with; got {brief(name)}.")
    plain = {name: plain_data(value) for name, value in arguments.items()}
    for name, value in plain.items():
        if not is_plain(value):
            kind = type(value).__name__
            raise ConfigError(f"env_args must be {ARGUMENT_WORDS}; got {name} = {brief(value)}, a {kind}.")
    return plain


def parse_env_args(texts: Sequence[str]) -> dict[str, Any]:
    """Reads `name=value` texts; a value that is no JSON is a text."""
    arguments: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--env-arg must be NAME=VALUE; got {brief(text)}.")
        try:
            arguments[name] = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            arguments[name] = value
    return arguments


def unfolded(env: Any) -> tuple[Any, dict[str, Any]]:
    """Splits a `functools.partial` with plain arguments into callable and arguments; anything else stays whole.

    `partial(gymnasium.make, "Id-v0", size=3)` is the id and its arguments.
    """
    if not isinstance(env, partial):
        return env, {}
    try:
        parameters = inspect.signature(env.func).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        arguments = {**dict(zip(names[: len(env.args)], env.args, strict=True)), **env.keywords}
        arguments = check_env_args(arguments)
    except (TypeError, ValueError):  # no signature, more arguments than names, or no plain data
        return env, {}
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is not None and env.func is gymnasium.make and isinstance(arguments.get("id"), str):
        return arguments.pop("id"), arguments
    return env.func, arguments


def env_name(env: Any) -> str:
    """Names the environment: its id, or the name of the callable that makes it."""
    return env if isinstance(env, str) else name_of(env)


def folder_name(env: str) -> str:
    """Turns the name of an environment into one for a folder, which is not hidden and leads nowhere else."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in env)
    return f"_{name[1:]}" if name.startswith(".") else name


def name_of(thing: Any) -> str:
    """Names a class or callable as 'module:name', by which another program can import it.

    What cannot be imported by a name (a lambda, a function inside another, an object) has its name in `<…>`.
    """
    inner = thing.func if isinstance(thing, partial) else thing
    module = getattr(inner, "__module__", None) or "?"
    name = getattr(inner, "__qualname__", None)
    if name is None:
        return f"{module}:<{type(inner).__qualname__} object>"
    if isinstance(thing, partial):
        return f"{module}:<partial of {name}>"
    imported: Any = sys.modules.get(module)
    for part in name.split("."):
        imported = getattr(imported, part, None)
    return f"{module}:{name}" if imported == thing or "<" in name else f"{module}:<{name}>"


def has_no_name(name: Any) -> bool:
    """Says whether `name_of` found no name to import it by."""
    return isinstance(name, str) and ("<" in name or name == "functools:partial")


def nameless(env: str) -> str:
    """Returns the sentence that refuses an environment without such a name."""
    return (
        f"env {env!r} was made by code that no other program can import by name: pass the environment itself "
        "(env=… in Python, --env module:callable)."
    )
