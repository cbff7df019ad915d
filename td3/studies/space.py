"""The space of a search: which settings it varies, in which ranges, and how a point in it becomes settings."""

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from td3.config import SETTINGS, Config, checked
from td3.config.config import check_name
from td3.config.search import Choices, Range
from td3.config.values import in_words
from td3.errors import ConfigError
from td3.wording import brief, did_you_mean

Space = Mapping[str, Range | Choices]
TUNABLE = tuple(name for name, known in SETTINGS.items() if known.search is not None)
TUNED = tuple(name for name in TUNABLE if SETTINGS[name].tuned)
DIGITS = 3  # of a number in a range: more only make a table hard to read
LONGEST_WARMUP = 0.25  # of the steps: a longer one leaves too little to compare


def default_space(config: Config, fixed: Collection[str]) -> dict[str, Range | Choices]:
    """Returns the settings that are searched unless they are fixed, in ranges that include what `config` has."""
    space: dict[str, Range | Choices] = {}
    for name in TUNED:
        known, now = SETTINGS[name].search, getattr(config, name)
        if name in fixed:
            continue
        if isinstance(known, Choices):
            space[name] = known if now in known.values else Choices((*known.values, now))
        elif isinstance(known, Range):
            known = replace(known, low=min(known.low, now) if now > 0 else known.low, high=max(known.high, now))
            if name == "warmup_steps":
                known = replace(known, high=min(known.high, int(LONGEST_WARMUP * config.steps)))
            if known.low < known.high:
                space[name] = known
    return space


def space_of(tables: Any) -> dict[str, Range | Choices]:
    """Makes a space from plain data, as a TOML file has it; what is wrong is refused in one sentence."""
    if not isinstance(tables, Mapping):
        raise ConfigError(f"space must be a table of settings and their ranges; got {brief(tables)}.")
    if not tables:
        raise ConfigError("space must name at least one setting; got none.")
    return {name: one_of(name, value) for name, value in tables.items()}


def one_of(name: str, value: Any) -> Range | Choices:
    """Reads the range of one setting: a table with low and high, a list of values, or true for its usual range."""
    known = SETTINGS[check_name(name)]
    if known.search is None:
        raise ConfigError(f"{name} cannot be searched; these can: {', '.join(TUNABLE)}. Got {name} = {brief(value)}.")
    if value is True and not isinstance(known.default, bool):
        return known.search
    if isinstance(value, Mapping):
        return range_of(name, value)
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise ConfigError(
            f"{name} must be searched in a list of two or more values, a table such as {{low = 1, high = 8}}, or true "
            f"for its usual range ({known.search.words}); got {brief(value)}."
        )
    values = [checked(name, one) for one in value]
    for place, one in enumerate(values):
        if one in values[:place]:
            raise ConfigError(f"{name} must have each value once; got {brief(one)} twice.")
    return Choices(tuple(values))


def range_of(name: str, table: Mapping[str, Any]) -> Range:
    """Reads a table with low and high, and with log or step."""
    kind, words = SETTINGS[name].type, [one.name for one in fields(Range)]
    if kind not in (int, float):
        raise ConfigError(f"{name} must be searched in a list of values: it is no number; got {brief(dict(table))}.")
    for key in table:
        if key not in words:
            raise ConfigError(f"{name} has a range of low, high, log and step; got {key}.{did_you_mean(key, words)}")
    for key in ("low", "high"):
        if key not in table:
            raise ConfigError(f"{name} must have low and high; got {brief(dict(table))}.")
    low, high = (checked(name, table[key]) for key in ("low", "high"))
    log, step = table.get("log", False), table.get("step")
    if not isinstance(log, bool):
        raise ConfigError(f"{name}: log must be true or false; got {brief(log)}.")
    if low >= high:
        raise ConfigError(f"{name}: low must be below high, which is {high:g}; got {low:g}.")
    if log and low <= 0:
        raise ConfigError(f"{name}: low must be above 0 where log is true; got {low:g}.")
    if step is not None:
        number = isinstance(step, int | float) and not isinstance(step, bool)
        if not number or not 0 < step <= high - low or (kind is int and step != int(step)):
            whole = "a whole number" if kind is int else "a number"
            raise ConfigError(f"{name}: step must be {whole} above 0, at most {high - low:g}; got {brief(step)}.")
        if log:
            raise ConfigError(f"{name}: step cannot be given where log is true; got {brief(step)}.")
        step = kind(step)
    return Range(low, high, log, step)


def space_data(space: Space) -> dict[str, Any]:
    """Returns plain data, as `tune.toml` has it."""
    return {name: range_data(known) for name, known in space.items()}


def range_data(known: Range | Choices) -> Any:
    """Returns one range as plain data: a table of what is not as usual, or a list."""
    if isinstance(known, Choices):
        return [list(value) if isinstance(value, tuple) else value for value in known.values]
    log, step = {"log": True} if known.log else {}, {} if known.step is None else {"step": known.step}
    return {"low": known.low, "high": known.high, **log, **step}


def label(value: Any) -> Any:
    """Returns a value as Optuna keeps it: numbers and words as they are, layers as '256,256'."""
    return in_words(value) if isinstance(value, tuple) else value


def settings_at(space: Space, point: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings at a point of the space; numbers in ranges have three digits."""
    return {name: setting_at(name, known, point[name]) for name, known in space.items()}


def setting_at(name: str, known: Range | Choices, value: Any) -> Any:
    """Returns the value of one setting for what Optuna proposes."""
    if isinstance(known, Choices):
        return next((own for own in known.values if label(own) == value and type(label(own)) is type(value)), value)
    if SETTINGS[name].type is int:
        return int(value)
    return min(known.high, max(known.low, float(f"{value:.{DIGITS if known.step is None else 10}g}")))


def nearest(space: Space, config: Config) -> dict[str, Any]:
    """Returns the settings in the space that are nearest to those of a config."""
    return {name: nearest_in(known, getattr(config, name)) for name, known in space.items()}


def nearest_in(known: Range | Choices, now: Any) -> Any:
    """Returns the value in a range that is nearest to another one; of lists and words the first."""
    if isinstance(known, Choices):
        if now in known.values:
            return now
        number = isinstance(now, int | float) and not isinstance(now, bool)
        return min(known.values, key=lambda value: abs(value - now)) if number else known.values[0]
    inside = min(known.high, max(known.low, now))
    if known.step is None:
        return inside
    steps = min(round((inside - known.low) / known.step), int((known.high - known.low) / known.step + 1e-9))
    return type(known.low)(f"{known.low + steps * known.step:.10g}")
