"""Trains and resumes: `train` and `resume` return the events of a run, one by one.

    for event in td3.train(td3.Config(env="Pendulum-v1")):
        ...

Nothing is printed, and reading the events changes nothing. Each event comes between two steps, with every transition
stored and its updates done: leaving the loop there loses nothing.
"""

from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

from td3.config import Config, checked
from td3.errors import ConfigError
from td3.events import Event
from td3.interfaces import MakeCollector, MakeNoise, MakeSampler
from td3.learner import Learner
from td3.loop import advance
from td3.parts import Parts
from td3.schedule import RESUMABLE, check_changeable
from td3.session import Session
from td3.wording import brief


def train(
    config: Config,
    run: str | Path | None = None,
    *,
    learner: type[Learner] | None = None,
    sampler: MakeSampler | None = None,
    noise: MakeNoise | None = None,
    collector: MakeCollector | None = None,
) -> "Training":
    """Trains to `config.steps`, saving the run in the new folder `run` if one is named.

    `learner`, `sampler`, `noise` and `collector` are parts of your own; see docs/extending.md.
    """
    if not isinstance(config, Config):
        raise ConfigError(f"config must be a td3.Config, as in td3.Config(env='Pendulum-v1'); got {brief(config)}.")
    parts = Parts.of(learner=learner, sampler=sampler, noise=noise, collector=collector)
    return Training(partial(Session, config, run, parts))


def resume(
    run: str | Path,
    steps: int | None = None,
    env: Any = None,
    trust: bool = False,
    engine: str | None = None,
    film: bool | None = None,
    without_memory: bool = False,
    *,
    learner: type[Learner] | None = None,
    sampler: MakeSampler | None = None,
    noise: MakeNoise | None = None,
    collector: MakeCollector | None = None,
    **settings: Any,
) -> "Training":
    """Continues a run to its goal, or to `steps`, bit for bit as if it had never stopped.

    An environment that is defined in Python code is imported only if it is passed as `env` or `trust` says so; parts of
    your own that it was trained with are passed again. Another `engine` starts from the same numbers, but rounds
    differently. `film` switches films off or on. `without_memory` continues where part of the replay memory is damaged,
    without the damaged rows. Other settings change by their names, as in `td3.resume(run, tau=0.01)`, and hold from
    then on. A run that stopped by itself trains on with another goal, or if the setting that stopped it is changed.
    """
    asked = {"steps": steps, "engine": engine, "film": film}
    check_changeable(settings, RESUMABLE)
    changes = settings | {name: value for name, value in asked.items() if value is not None}
    changes = {name: checked(name, value) for name, value in changes.items()}
    parts = Parts.of(learner=learner, sampler=sampler, noise=noise, collector=collector)
    return Training(partial(Session.resumed, run, changes, env, trust, without_memory, parts))


class Training(Generator[Event, None, None]):
    """The events of a run, one by one. Between two of them you may change settings, or stop.

        with td3.train(config) as training:
            for event in training:
                if event.step == 50_000:
                    training.change(actor_lr=1e-4)

    The run begins with the first event. Leaving the `with` block early, or `close()`, saves it; so does leaving a plain
    `for event in td3.train(config)`, of which nothing else has the `Training`.
    """

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._opened: list[Session] = []  # with the first event: one
        self._events = run_events(begin, self._opened)  # without a reference to this: the loop's end closes it

    @property
    def session(self) -> Session:
        """Everything that changes while the run trains."""
        if not self._opened:
            raise ConfigError("Training has not begun: it begins with its first event.")
        return self._opened[0]

    @property
    def config(self) -> Config:
        """The settings as they are now."""
        return self.session.config

    @property
    def learner(self) -> Learner:
        """The networks, the optimisers and the memory."""
        return self.session.learner

    def change(self, **settings: Any) -> None:
        """Changes settings from the next step on, in both engines; checkpoints hold them, so a resumed run has them."""
        self.session.change(**settings)

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *problem: object) -> None:
        """Saves and closes the run: inside `with`, `break` loses nothing."""
        self.close()

    def __next__(self) -> Event:
        return next(self._events)

    def send(self, value: None) -> Event:
        """Trains until the next event."""
        return self._events.send(value)

    def throw(self, *problem: Any) -> Event:
        """Ends the run with an exception, after saving it."""
        return self._events.throw(*problem)

    def __repr__(self) -> str:
        if not self._opened:
            return "<td3.Training that has not begun>"
        return repr(self.session).replace("Session", "Training")


def run_events(begin: Callable[[], Session], opened: list[Session]) -> Generator[Event, None, None]:
    """Opens a run, trains it to its goal, and closes it."""
    session = begin()
    opened.append(session)
    try:
        yield from advance(session, session.config.steps)
    finally:
        session.close()
