"""Settings in a TOML file: each key is the name of a setting, and each value is checked like a flag's."""

import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from td3.errors import ConfigError
from td3.wording import brief

LARGEST = 2**20  # bytes
OF_STUDIES = ("seeds", "settings")  # keys that only the file of a study has
Checked = TypeVar("Checked")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Reads a TOML file; what cannot be read is refused in one sentence with the file's name."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ConfigError(f"{path} must be a TOML file of at most {LARGEST:,} bytes; it has more.")
        return tomllib.loads(data.decode())
    except OSError as problem:
        raise ConfigError(f"{path} cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:  # no UTF-8, no TOML, more digits than Python reads
        if isinstance(problem, ConfigError):
            raise
        why = brief(problem, str).rstrip(".")
        raise ConfigError(f"{path} is no TOML file: {why}.") from None


def in_file(path: str | Path, check: Callable[[], Checked]) -> Checked:
    """Returns what `check` does; its refusal begins with the file's name."""
    try:
        return check()
    except ConfigError as problem:
        raise ConfigError(f"{path}: {problem}") from None


def check_no_study(path: str | Path, data: Mapping[str, Any]) -> None:
    """Refuses the file of a study where the settings of one run are expected."""
    for name in OF_STUDIES:
        if name in data:
            raise ConfigError(f"{path} describes a study, for it has {name}: use td3 study {shlex.quote(str(path))}.")
