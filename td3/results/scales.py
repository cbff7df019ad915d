"""Normalised scores: 0 and 1 of each environment, by published figures, by a file of one's own, or by the baseline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from td3.config.files import in_file, read_toml
from td3.errors import ConfigError
from td3.results.published import ENDS, ENDS_SOURCE, task_of
from td3.results.records import number
from td3.wording import brief, one_line

PUBLISHED, BASELINE = "published", "baseline"


class Scale(NamedTuple):
    """The returns that become 0 and 1 in one environment."""

    low: float
    high: float
    source: str

    def __call__(self, scores: Any) -> Any:
        """Returns scores in units of this scale."""
        return (scores - self.low) / (self.high - self.low)


def published_scale(env: str) -> Scale:
    """Returns the scale that papers use for a task; refuses a task that has none."""
    task = task_of(env)
    if task not in ENDS:
        raise ConfigError(
            f"--normalize published knows {', '.join(ENDS)}, and not {env}: name a TOML file with its low and high."
        )
    return Scale(*ENDS[task], ENDS_SOURCE)


def scales_in(path: str | Path, envs: list[str]) -> dict[str, Scale]:
    """Reads the scale of each environment from a TOML file: a table for each, with low and high."""
    data = read_toml(path)
    return in_file(path, lambda: {env: scale_of(env, data, str(path)) for env in envs})


def scale_of(env: str, data: Mapping[str, Any], path: str) -> Scale:
    """Returns the scale of one environment; refuses what is missing or no scale."""
    if env not in data:
        raise ConfigError(f'{env} is missing: it needs a table, as in ["{env}"] with low = 0 and high = 100.')
    own = data[env]
    if not isinstance(own, Mapping):
        raise ConfigError(f"{env} must be a table with low and high; got {brief(own)}.")
    for name in own:
        if name not in ("low", "high", "source"):
            raise ConfigError(f"{env} must have low, high and perhaps a source; got {brief(name)}.")
    ends = [number(own.get(name)) for name in ("low", "high")]
    for name, end in zip(("low", "high"), ends, strict=True):
        if end != end:
            raise ConfigError(f"{env}: {name} must be a finite number; got {brief(own.get(name))}.")
    if ends[0] == ends[1]:
        raise ConfigError(f"{env}: low and high must differ; got {brief(own['high'])} twice.")
    return Scale(ends[0], ends[1], one_line(str(own.get("source", path))))


def baseline_scale(env: str, setting: str, first: float, now: float) -> Scale:
    """Returns the scale on which the baseline's first evaluation is 0 and its score is 1."""
    if not first < now:
        raise ConfigError(
            f"--normalize baseline needs a baseline that improved since its first evaluation; {setting} went from "
            f"{first:,.1f} to {now:,.1f} on {env}: name a TOML file with low and high."
        )
    return Scale(first, now, f"0 is the mean first evaluation of {setting} and 1 its mean score in this comparison")
