"""Parts of a run that a user may hand in: a learner, a sampler, noise, a collector."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from td3.collection import Collector
from td3.config import Config, name_of
from td3.errors import ConfigError
from td3.exploration import GaussianNoise
from td3.interfaces import AnyCollector, MakeCollector, MakeNoise, MakeSampler, Noise, Sampler, captured
from td3.learner import ALGORITHMS, Learner
from td3.replay import UniformSampler, sampler_of
from td3.wording import did_you_mean


class Parts(NamedTuple):
    """What a run is made of; each is a class, or a callable that makes one."""

    learner: type[Learner] = Learner
    sampler: MakeSampler = UniformSampler
    noise: MakeNoise = GaussianNoise
    collector: MakeCollector = Collector.of

    @classmethod
    def of(cls, **given: Any) -> "Parts":
        """Takes what is given, and td3's own parts for the rest; None means td3's own."""
        for name in given:
            if name not in cls._fields:
                known = ", ".join(cls._fields)
                raise ConfigError(f"{name} is no part of a run; these are: {known}.{did_you_mean(name, cls._fields)}")
        parts = cls(**{name: part for name, part in given.items() if part is not None})
        if not (isinstance(parts.learner, type) and issubclass(parts.learner, Learner)):
            raise ConfigError(f"learner must be a subclass of td3.Learner; got {parts.learner!r}.")
        if parts.learner.act is not Learner.act and parts.learner.policy is Learner.policy:
            raise ConfigError(f"learner {name_of(parts.learner)!r} must override policy, not act: act follows it.")
        if isinstance(parts.collector, type) and issubclass(parts.collector, Collector):
            parts = parts._replace(collector=parts.collector.of)
        for name, part in parts._asdict().items():
            if not callable(part):
                raise ConfigError(f"{name} must be a class or a callable that makes one; got {part!r}.")
        return parts

    def build(self, name: str, *arguments: Any) -> Any:
        """Makes a part; one of the user's own that cannot be made, or lacks a method, is refused by its name."""
        make = getattr(self, name)
        try:
            built = make(*arguments)
        except TypeError as problem:
            if make == getattr(USUAL, name):
                raise
            raise ConfigError(f"{name} {name_of(make)!r} cannot be made: {problem}.") from problem
        wanted = ASKED_OF.get(name)
        missing = [member for member in members(wanted) if not has(built, member)] if wanted else []
        if missing:
            close = getattr(built, "close", None)
            if callable(close):
                close()
            raise ConfigError(f"{name} {name_of(make)!r} must have {', '.join(missing)}; see td3/interfaces.py.")
        if name in ("noise", "sampler"):
            captured(built)  # what a checkpoint cannot hold is refused now, not at the first save
        return built

    def make_learner(self, config: Config) -> Callable[..., Learner]:
        """Returns what makes the learner: the user's own, or the algorithm that the config asks for."""
        asked = ALGORITHMS[config.algorithm]
        if self.learner is Learner:
            return asked
        if not issubclass(self.learner, asked):
            raise ConfigError(
                f"algorithm must be td3 with a learner that is no subclass of td3.{asked.__name__}, "
                f"{name_of(self.learner)!r}; got {config.algorithm!r}."
            )
        return partial(self.build, "learner")

    def make_sampler(self, config: Config) -> MakeSampler:
        """Returns what makes the sampler: the user's own, or the one that the config asks for."""
        if self.sampler is UniformSampler:
            return sampler_of(config)
        if config.sampling != "uniform":
            raise ConfigError(
                f"sampling must be uniform with a sampler of your own, {name_of(self.sampler)!r}; "
                f"got {config.sampling!r}."
            )
        return partial(self.build, "sampler")

    def names(self) -> dict[str, str]:
        """Names those that are the user's own, as 'module:Name'; a run keeps them, to ask for them again."""
        usual = USUAL._asdict()
        return {
            name: name_of(getattr(part, "__self__", part))
            for name, part in self._asdict().items()
            if part != usual[name]
        }


USUAL = Parts()
ASKED_OF = {"sampler": Sampler, "noise": Noise, "collector": AnyCollector}


def has(part: Any, member: str) -> bool:
    """Whether a part has such a member, without asking a property for its value."""
    return inspect.getattr_static(part, member, None) is not None or hasattr(type(part), "__getattr__")


def members(protocol: type) -> list[str]:
    """Returns the names that a protocol asks for."""
    names = {**vars(protocol), **vars(protocol).get("__annotations__", {})}
    return sorted(name for name in names if not name.startswith("_"))


def changed_parts(needed: Mapping[str, str], parts: Parts) -> set[str]:
    """Returns which parts are others than those that a run was trained with."""
    now = parts.names()
    return {name for name in {**needed, **now} if now.get(name) != needed.get(name)}


def check_parts(needed: Any, parts: Parts) -> list[str]:
    """Refuses to continue without a part that the run was trained with; returns a note for each that differs."""
    if not isinstance(needed, Mapping):
        raise ConfigError(f"parts must be names; the run has {type(needed).__name__}.")
    now = parts.names()
    for name, then in needed.items():
        if name not in Parts._fields:
            raise ConfigError(f"The run was trained with a {name} of its own, {then!r}, which td3 does not know.")
        if name not in now:
            raise ConfigError(
                f"{name} must be passed: the run was trained with {then!r}, which is not imported just because a run "
                f"names it ({name}=… in Python, --{name} MODULE:NAME)."
            )
    usual = "td3's own"
    return [
        f"{name} was {needed.get(name, usual)}, now it is {now.get(name, usual)}"
        f"{', which begins without a state' if name in ('noise', 'sampler') else ''}."
        for name in sorted(changed_parts(needed, parts))
    ]
