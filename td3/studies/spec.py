"""What a study trains: environments, named settings and seeds; each run of it, in the order they are begun."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from td3.config import SETTINGS, Config, checked, checked_settings
from td3.config.env import folder_name
from td3.config.files import in_file, read_toml
from td3.errors import ConfigError
from td3.wording import brief

DEFAULT_SEEDS = 5
FIRST_SETTING = "default"  # the name of the settings where none are named
MOST_RUNS = 10_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
BARE = re.compile(r"[A-Za-z0-9_-]+")  # a key of TOML that needs no quotes
OWN = ("env", "seed")  # of one run; a study has lists of them


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study, begun or not."""

    name: str  # its place below the study: Pendulum-v1/default/seed-0
    setting: str
    given: Mapping[str, Any]  # the settings that were given, with env and seed
    config: Config


@dataclass(frozen=True)
class Spec:
    """Environments × named settings × seeds, checked."""

    envs: tuple[str, ...]
    seeds: tuple[int, ...] = tuple(range(DEFAULT_SEEDS))
    shared: Mapping[str, Any] = field(default_factory=dict)  # settings of every run
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {FIRST_SETTING: {}})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Spec":
        """Makes one from plain data, as a TOML file has it; what is wrong is refused in one sentence."""
        known = dict(data)
        if "env" not in known:
            raise ConfigError("env is missing: name one environment, or several in a list.")
        if "seed" in known:
            raise ConfigError(
                f"seed belongs to one run: a study has seeds, as in seeds = 5; got {brief(data['seed'])}."
            )
        envs = several("env", known.pop("env"), env_checked)
        seeds = seeds_of(known.pop("seeds", DEFAULT_SEEDS))
        settings = settings_of(known.pop("settings", {FIRST_SETTING: {}}))
        spec = cls(envs, seeds, without_none(checked_settings(known)), settings)
        spec.check()
        return spec

    def changed(self, envs: Sequence[str], seeds: Any, shared: Mapping[str, Any]) -> "Spec":
        """Returns the spec with what flags say: they win over the file, but leave a named setting alone."""
        for name in shared:
            if owner := next((one for one, own in self.settings.items() if name in own), None):
                raise ConfigError(f"{name} is set by settings.{owner} and by a flag: change it in one of them.")
        data = {**self.to_data(), **merged(self.shared, shared)}
        return Spec.of({**data, **({"env": list(envs)} if envs else {}), **({} if seeds is None else {"seeds": seeds})})

    def check(self) -> None:
        """Refuses what only shows when the whole is known: too many runs, or settings that do not fit together."""
        number = len(self.envs) * len(self.seeds) * len(self.settings)
        if number > MOST_RUNS:
            raise ConfigError(f"A study must have at most {MOST_RUNS:,} runs; got {number:,}.")
        unique("env", [folder_name(env) for env in self.envs], "as the name of a folder")
        for env in self.envs:
            for name in self.settings:
                self.config(env, name, 0)

    def given(self, env: str, setting: str, seed: int) -> dict[str, Any]:
        """Returns the settings of one run, as far as they are given; it has one thread unless they say otherwise."""
        given = merged(self.shared, self.settings[setting])
        return {"env": env, **given, "seed": seed, "threads": given.get("threads") or 1}

    def config(self, env: str, setting: str, seed: int) -> Config:
        """Returns the whole settings of one run."""
        try:
            return Config(**self.given(env, setting, seed))
        except ConfigError as problem:
            raise ConfigError(f"settings.{setting}: {problem}") from None

    def runs(self) -> list[PlannedRun]:
        """Returns all runs in the order they are begun: every environment and setting with the first seed first."""
        return [
            PlannedRun(
                f"{folder_name(env)}/{setting}/seed-{seed}",
                setting,
                self.given(env, setting, seed),
                self.config(env, setting, seed),
            )
            for seed in self.seeds
            for env in self.envs
            for setting in self.settings
        ]

    def to_data(self) -> dict[str, Any]:
        """Returns plain data, as `study.toml` has it."""
        settings = {name: plain(own) for name, own in self.settings.items()}
        return {"env": list(self.envs), "seeds": list(self.seeds), **plain(self.shared), "settings": settings}


def read_spec(path: str | Path) -> Spec:
    """Reads a spec from a TOML file; each refusal begins with the file's name."""
    data = read_toml(path)
    return in_file(path, lambda: Spec.of(data))


def env_checked(env: Any) -> str:
    """Returns the name of an environment; a study has no other way to say which."""
    if not isinstance(env, str):
        raise ConfigError(f"env must be the name of an environment, or a list of names; got {brief(env)}.")
    return str(checked("env", env))


def seeds_of(seeds: Any) -> tuple[int, ...]:
    """Returns the seeds: of a number n those from 0 to n − 1, or those in a list."""
    if isinstance(seeds, list | tuple):
        return several("seeds", seeds, lambda seed: int(in_words("seeds", "seed", seed)))
    known = SETTINGS["seed"]
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= MOST_RUNS:
        raise ConfigError(
            f"seeds must be a whole number from 1 to {MOST_RUNS:,}, or a list of seeds, each {known.allowed}; "
            f"got {brief(seeds)}."
        )
    return tuple(range(seeds))


def in_words(name: str, setting: str, value: Any) -> Any:
    """Checks a value as one of a setting, and refuses it under another name."""
    try:
        return checked(setting, value)
    except ConfigError:
        raise ConfigError(f"{name} must hold {SETTINGS[setting].range_words}; got {brief(value)}.") from None


def several(name: str, values: Any, check: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Returns a value or a list of them as a tuple; an empty list and a value that is there twice are refused."""
    found = [check(value) for value in (values if isinstance(values, list | tuple) else [values])]
    if not found:
        raise ConfigError(f"{name} must have at least one entry; got an empty list.")
    unique(name, found)
    return tuple(found)


def unique(name: str, values: Iterable[Any], how: str = "") -> None:
    """Refuses a value that is there twice; capitals do not count, for some disks take them for the same."""
    seen: set[Any] = set()
    for value in values:
        key = value.casefold() if isinstance(value, str) else value
        if key in seen:
            raise ConfigError(f"{name} must have each entry once{how and f', {how}'}; got {brief(value)} twice.")
        seen.add(key)


def settings_of(tables: Any) -> dict[str, dict[str, Any]]:
    """Returns the named settings, checked."""
    if not isinstance(tables, Mapping) or not all(isinstance(own, Mapping) for own in tables.values()):
        raise ConfigError(f"settings must be tables with names, as in [settings.wide]; got {brief(tables)}.")
    if not tables:
        raise ConfigError("settings must have at least one table, as in [settings.wide]; got none.")
    unique("settings", tables)
    found = {}
    for name, own in tables.items():
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"settings must have names of letters, digits, '_', '-' and '.', at most 100, which do not begin with "
                f"'-' or '.'; got {brief(name)}."
            )
        for one in OWN:
            if one in own:
                raise ConfigError(
                    f"settings.{name} has no {one}: it is set for the whole study; got {brief(own[one])}."
                )
        try:
            found[name] = without_none(checked_settings(own))
        except ConfigError as problem:
            raise ConfigError(f"settings.{name}: {problem}") from None
    return found


def merged(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with others that win over them; arguments of an environment one by one."""
    both = [one["env_args"] for one in (settings, others) if "env_args" in one]
    arguments = {"env_args": {name: value for one in both for name, value in one.items()}} if both else {}
    return {**settings, **others, **arguments}


def without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what is none: that is the same as not given, and TOML has no word for it."""
    for name, value in settings.get("env_args", {}).items():
        if has_none(value):
            raise ConfigError(f"env_args must have values that TOML can write; got {name} = {brief(value)}.")
    return {name: value for name, value in settings.items() if value is not None}


def has_none(value: Any) -> bool:
    """Returns whether the value is none, or a list with none in it."""
    return value is None or (isinstance(value, list) and any(map(has_none, value)))


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Turns tuples into lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def toml_of(spec: Spec) -> bytes:
    """Writes a spec as TOML that reads the same."""
    data = spec.to_data()
    tables = {f"settings.{name}": own for name, own in data.pop("settings").items()}
    lines = [f"{name} = {toml_value(value)}" for name, value in data.items()]
    for name, own in tables.items():
        head, _, tail = name.partition(".")
        lines += ["", f"[{head}.{toml_value(tail) if '.' in tail else tail}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in own.items()]
    return ("\n".join(lines) + "\n").encode()


def toml_key(name: str) -> str:
    """Writes a key of TOML, in quotes where it needs them."""
    return name if BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Writes plain data as a value of TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(name)} = {toml_value(own)}" for name, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)  # as TOML writes it: 0.005, 3e-05, 100.0
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")  # a text, a whole number, true, false
