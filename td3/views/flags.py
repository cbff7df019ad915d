"""Flags: a parser that refuses in one sentence, a flag for every setting, and what a flag's text stands for."""

import argparse
import re
import sys
from argparse import BooleanOptionalAction, Namespace
from pathlib import Path
from typing import Any, NoReturn

from td3.config import GROUPS, SETTINGS, settings_in
from td3.config.env import parse_env_args
from td3.config.help_text import explained
from td3.config.values import whole_number_in
from td3.config.words import flag
from td3.errors import ConfigError
from td3.views.speaking import write_out
from td3.wording import brief


class Parser(argparse.ArgumentParser):
    """argparse, but what it refuses becomes our one sentence."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1e-5 too is a value, and no flag

    def error(self, message: str) -> NoReturn:
        """Refuses with exit code 2, as every other bad input."""
        raise ConfigError(message[0].upper() + message[1:] + f"; see {self.prog} --help.")

    def _print_message(self, message: str, _file: Any = None) -> None:
        write_out(message)


def metavar(name: str) -> str:
    """Returns what `--help` shows for the value of a setting."""
    known = SETTINGS[name]
    if known.choices:
        return "|".join(known.choices)
    if known.is_list:
        return ",".join("N" for _ in known.default or (1, 1))
    return "X" if known.type is float else "N"


def help_of(name: str) -> str:
    """Returns the help text of a setting."""
    return explained(SETTINGS[name]).replace("%", "%%")  # argparse's own sign


def add_settings(parser: Parser) -> None:
    """Adds a flag for every field of a Config, group by group."""
    parser.add_argument_group("settings", "A task or preset may choose another default than the one in brackets.")
    for group, names in GROUPS.items():
        flags = parser.add_argument_group(group)
        for name in names:
            if name == "env_args":
                text = f"{help_of(name)}; once for each"
                flags.add_argument(flag(name), dest="env_args", action="append", metavar="NAME=VALUE", help=text)
            elif name != "env":
                add_setting(flags, name)


def add_setting(flags: Any, name: str, text: str = "") -> None:
    """Adds the flag of one setting to a parser or a group of it, with its own help or another `text`."""
    text = text or help_of(name)
    if isinstance(SETTINGS[name].default, bool):
        flags.add_argument(flag(name), dest=f"set_{name}", action=BooleanOptionalAction, help=text)
    else:
        flags.add_argument(flag(name), dest=f"set_{name}", metavar=metavar(name), help=text)


def given_settings(chosen: Namespace) -> dict[str, Any]:
    """Returns the settings that were given as flags, still to be checked."""
    given = {name: getattr(chosen, f"set_{name}", None) for name in SETTINGS}
    return {
        name: text if isinstance(text, bool) else SETTINGS[name].parse(text)
        for name, text in given.items()
        if text is not None
    }


def given_task(chosen: Namespace) -> dict[str, Any]:
    """Returns the environment and its arguments, as far as they were given."""
    task = {} if chosen.env is None else {"env": chosen.env}
    return {**task, "env_args": parse_env_args(chosen.env_args)} if chosen.env_args else task


def add_config(parser: Parser) -> None:
    """Adds the flag for a file of settings."""
    parser.add_argument("--config", metavar="FILE", help="a TOML file with settings by their names; flags win over it")


def all_given(chosen: Namespace) -> dict[str, Any]:
    """Returns the settings of `--config FILE` and of the flags, which win; arguments of an environment one by one."""
    file = {} if chosen.config is None else settings_in(chosen.config)
    given = {**given_task(chosen), **given_settings(chosen)}
    if "env_args" in given and "env_args" in file:
        given["env_args"] = {**file["env_args"], **given["env_args"]}
    return {**file, **given}


def add_run(parser: Parser) -> None:
    """Adds the folder of a run that there is."""
    parser.add_argument("run", metavar="RUN", help="the run's folder")


def add_trust(parser: Parser) -> None:
    """Adds the flags that say which environment of a run may be made."""
    parser.add_argument("--env", metavar="ENV", help="use this environment instead of the one the run names")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the Python code the run's env names, and start as many processes as it asks for",
    )


def whole_number(name: str, text: str, at_least: int, at_most: int | None = None) -> int:
    """Reads the whole number of a flag; any other text is refused."""
    try:
        number = whole_number_in(text)
    except ValueError:
        number = at_least - 1
    if number < at_least or (at_most is not None and number > at_most):
        limit = f"at least {at_least}" if at_most is None else f"from {at_least} to {at_most:,}"
        raise ConfigError(f"{name} must be a whole number, {limit}; got {brief(text)}.")
    return number


def number_for(setting: str, name: str, text: str) -> int:
    """Reads a whole number within the limits of a setting, for a flag of another name or command."""
    known = SETTINGS[setting]
    return whole_number(name, text, known.at_least, known.at_most)  # type: ignore[arg-type]


def find_local_modules() -> None:
    """Lets `module:name` be found in the working directory, as `python -m` would find it."""
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.append(here)  # last: a file of the user's never stands in for a library
