"""What a search is asked for: an environment, fixed settings, a space, a number of trials, and how they are chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from td3.config import Config, checked_settings
from td3.config.files import in_file, read_toml
from td3.errors import ConfigError
from td3.studies.space import Space, default_space, nearest, space_data, space_of
from td3.studies.spec import PlannedRun, env_checked, in_words, plain, toml_value, without_none
from td3.wording import brief, did_you_mean

SAMPLERS = ("tpe", "random")
PRUNERS = ("median", "hyperband", "none")
TRIALS, MOST_TRIALS, MOST_SEEDS = 30, 10_000, 100
STEPS = 20_000  # of a trial, where the task has no shorter goal: a search wants many short runs
EVALUATIONS = 10  # of a trial: each may end it early
OWN = ("trials", "seeds_per_trial", "seed", "sampler", "pruner", "settings", "space")


@dataclass(frozen=True)
class TuneSpec:
    """A search, checked."""

    env: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # of every trial; their number of steps among them
    space: Space = field(default_factory=dict)
    trials: int = TRIALS
    seeds_per_trial: int = 1
    seed: int = 0  # of the proposals, and the first one of each trial's runs
    sampler: str = SAMPLERS[0]
    pruner: str = PRUNERS[0]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "TuneSpec":
        """Makes one from plain data, as `tune.toml` has it; what is wrong is refused in one sentence."""
        for name in data:
            if name not in ("env", *OWN):
                raise ConfigError(f"{name} is no part of a search.{did_you_mean(name, ('env', *OWN))}")
        if "env" not in data:
            raise ConfigError("env is missing: name one environment.")
        env, given = env_checked(data["env"]), data.get("settings", {})
        if not isinstance(given, Mapping):
            raise ConfigError(f"settings must be a table; got {brief(given)}.")
        for name in ("env", "seed"):
            if name in given:
                raise ConfigError(f"settings has no {name}: it is set for the whole search; got {brief(given[name])}.")
        settings = without_none(checked_settings(given))
        settings.setdefault("steps", min(STEPS, Config(**{"env": env, **settings}).steps))
        spec = cls(
            env,
            settings,
            {},
            whole("trials", data.get("trials", TRIALS), 1, MOST_TRIALS),
            whole("seeds_per_trial", data.get("seeds_per_trial", 1), 1, MOST_SEEDS),
            int(in_words("seed", "seed", data.get("seed", 0))),
            choice("sampler", data.get("sampler", SAMPLERS[0]), SAMPLERS),
            choice("pruner", data.get("pruner", PRUNERS[0]), PRUNERS),
        )
        config = spec.config({}, 0)
        if not config.eval_every:
            raise ConfigError("eval_every must be above 0: a search compares evaluations; got 0.")
        space = space_of(data["space"]) if "space" in data else default_space(config, settings)
        for name in space:
            if name in settings:
                raise ConfigError(
                    f"{name} is fixed and in the space of the search: leave it out of one; got {brief(settings[name])}."
                )
        if not space:
            raise ConfigError("space has no setting left: all that are searched by default are fixed.")
        return replace(spec, space=space)

    def config(self, found: Mapping[str, Any], seed: int) -> Config:
        """Returns the config of a run with these settings of the space."""
        return Config(**self.given(found, seed))

    def given(self, found: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """Returns all settings that a run is given: of the search, of the trial, and what suits a short run."""
        short = {"eval_every": max(1, self.settings["steps"] // EVALUATIONS), "film": False, "threads": 1}
        return {"env": self.env, **short, **self.settings, **found, "seed": seed}

    @property
    def default(self) -> Config:
        """The settings as they are without a search."""
        return self.config({}, self.seed)

    def first(self) -> dict[str, Any]:
        """Returns the settings of the first trial: those there are now, as far as the space has them."""
        return nearest(self.space, self.default)

    def moved(self) -> dict[str, Any]:
        """Returns those settings of the first trial that are not as they are now, for the space does not have them."""
        return {name: value for name, value in self.first().items() if value != getattr(self.default, name)}

    def runs(self, place: str, found: Mapping[str, Any], seeds: range) -> list[PlannedRun]:
        """Returns runs with these settings, one for each seed, in folders below `place`."""
        return [
            PlannedRun(f"{place}/seed-{seed}", place, self.given(found, seed), self.config(found, seed))
            for seed in seeds
        ]

    def runs_of(self, number: int, found: Mapping[str, Any]) -> list[PlannedRun]:
        """Returns the runs of a trial, one for each of its seeds."""
        return self.runs(trial_name(number), found, range(self.seed, self.seed + self.seeds_per_trial))

    def to_data(self) -> dict[str, Any]:
        """Returns plain data, as `tune.toml` has it."""
        own = {name: getattr(self, name) for name in OWN[:-2]}
        return {"env": self.env, **own, "settings": plain(self.settings), "space": space_data(self.space)}

    def check_continues(self, before: "TuneSpec") -> None:
        """Refuses to continue a search with something else than more or fewer trials."""
        now, then = flat(self.to_data()), flat(before.to_data())
        for name in dict.fromkeys([*now, *then]):
            if name != "trials" and now.get(name) != then.get(name):
                raise ConfigError(
                    f"{name.removeprefix('settings.')} cannot change from {brief(then.get(name))} in a search that is "
                    f"begun: name another folder with --tune; got {brief(now.get(name))}."
                )


def trial_name(number: int) -> str:
    """Names the folder of a trial."""
    return f"trial-{number:04d}"


def read_tune_spec(path: str | Path) -> TuneSpec:
    """Reads the spec of a search; each refusal begins with the file's name."""
    data = read_toml(path)
    return in_file(path, lambda: TuneSpec.of(data))


def read_space(path: str | Path) -> dict[str, Any]:
    """Reads a file with a space, checked; each refusal begins with the file's name."""
    data = read_toml(path)
    return in_file(path, lambda: space_data(space_of(data)))


def flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns each entry of a spec under a name of its own: settings.tau, space.tau."""
    tables = {f"{table}.{name}": value for table in OWN[-2:] for name, value in data[table].items()}
    return {**{name: value for name, value in data.items() if name not in OWN[-2:]}, **tables}


def whole(name: str, value: Any, at_least: int, at_most: int) -> int:
    """Returns a whole number in its limits."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= at_most:
        raise ConfigError(f"{name} must be a whole number from {at_least} to {at_most:,}; got {brief(value)}.")
    return value


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Returns one of the words that are allowed."""
    if value not in allowed:
        near = did_you_mean(value, allowed) if isinstance(value, str) else ""
        raise ConfigError(f"{name} must be one of {', '.join(allowed)}; got {brief(value)}.{near}")
    return str(value)


def toml_of_search(spec: TuneSpec) -> bytes:
    """Writes a search as TOML that reads the same."""
    data = spec.to_data()
    lines = [f"{name} = {toml_value(value)}" for name, value in data.items() if name not in OWN[-2:]]
    for table in OWN[-2:]:
        lines += ["", f"[{table}]", *(f"{name} = {toml_value(value)}" for name, value in data[table].items())]
    return ("\n".join(lines) + "\n").encode()
