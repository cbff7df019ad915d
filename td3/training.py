"""The training loop: collect, store, learn, evaluate, save; a generator of events.

    for event in td3.train(td3.Config(env="Pendulum-v1")):
        ...

Nothing is printed, and reading the events changes nothing. Each event comes between two steps, with every transition
stored and its updates done: leaving the loop there loses nothing.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from td3 import seeding
from td3.config import Config, env_name
from td3.environments.actions import all_finite
from td3.errors import ConfigError, RunError, TrainingDiverged
from td3.evaluation import play_episodes
from td3.events import (
    EpisodeEnded,
    Evaluated,
    Event,
    Finished,
    Measured,
    Resumed,
    Saved,
    SaveFailed,
    Started,
    Stepped,
)
from td3.interrupts import deferred
from td3.learner import Learner, policy_of
from td3.parts import Parts
from td3.progress import Pending
from td3.schedule import crossed, reports_due, updates_due
from td3.session import Session
from td3.types import Float32s, Rows

WithMetrics = TypeVar("WithMetrics", EpisodeEnded, Measured, Evaluated)


def train(config: Config, run: str | Path | None = None, **parts: Any) -> "Training":
    """Trains to `config.steps`, saving the run in the new folder `run` if one is named.

    `learner`, `sampler`, `noise` and `collector` are parts of your own; see docs/extending.md.
    """
    return Training(partial(Session, config, run, Parts.of(**parts)))


def resume(
    run: str | Path,
    steps: int | None = None,
    env: Any = None,
    trust: bool = False,
    engine: str | None = None,
    film: bool | None = None,
    without_memory: bool = False,
    **parts: Any,
) -> "Training":
    """Continues a run to its goal, or to `steps`, bit for bit as if it had never stopped.

    An environment that lives in Python code is imported only if it is passed as `env` or `trust` says so; parts of your
    own that it was trained with are passed again. Another `engine` starts from the same numbers, but rounds in its own
    way. `film` switches films off or on. `without_memory` continues where part of the replay memory is damaged,
    without the damaged rows.
    """
    asked = {"steps": steps, "engine": engine, "film": film}
    changes = {name: value for name, value in asked.items() if value is not None}
    return Training(partial(Session.resumed, run, changes, env, trust, without_memory, Parts.of(**parts)))


class Training(Generator[Event, None, None]):
    """The events of a run, one by one. Between two of them you may change settings, or stop by leaving the loop.

        for event in (training := td3.train(config)):
            if event.step == 50_000:
                training.change(actor_lr=1e-4)

    The run begins with the first event.
    """

    def __init__(self, begin: Callable[[], Session]) -> None:
        self._opened: list[Session] = []  # with the first event: one
        self._events = run_events(begin, self._opened)  # knows no more of this object, so it is closed as soon as left

    @property
    def session(self) -> Session:
        """Everything that changes while the run trains."""
        if not self._opened:
            raise ConfigError("This run has not begun: it begins with its first event.")
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

    def send(self, value: None) -> Event:
        """Trains until the next event."""
        return self._events.send(value)

    def throw(self, *problem: Any) -> Event:
        """Ends the run with an exception, after saving it."""
        return self._events.throw(*problem)

    def __repr__(self) -> str:
        if not self._opened:
            return "<td3.Training that has not begun>"
        session = self.session
        return f"<td3.Training of {env_name(session.config.env)}, step {session.step:,} of {session.config.steps:,}>"


def run_events(begin: Callable[[], Session], opened: list[Session]) -> Generator[Event, None, None]:
    """Opens a run, trains it to its goal, and closes it."""
    session = begin()
    opened.append(session)
    try:
        yield from advance(session, session.config.steps)
    finally:
        session.close()


def advance(session: Session, goal: int) -> Iterator[Event]:
    """Trains until `goal` steps are reached. With n environments the last step may go up to n − 1 beyond.

    Whatever ends it early, the run is saved first.
    """
    session.clock.start(session.step, session.learner.updates)
    with deferred(session.save) as interrupt:
        session.interrupt = interrupt
        try:
            for event in events(session, goal):
                if interrupt.asked and isinstance(event, Stepped):
                    raise KeyboardInterrupt
                interrupt.idle = True
                yield event
                interrupt.idle = False
            if interrupt.asked:
                raise KeyboardInterrupt
        except BaseException as problem:
            interrupt.idle = interrupt.asked = False  # a Ctrl-C from here on waits for the save
            save_because_of(session, problem)
            if interrupt.asked:
                raise KeyboardInterrupt from None
            raise
        finally:
            session.interrupt = None
            session.clock.stop()


def events(session: Session, goal: int) -> Iterator[Event]:
    """The loop itself: one step, its updates, and what is to be reported; again until the goal."""
    progress = session.progress
    yield Started(session.step, session.config, session.summary(), session.notes(goal))
    if session.resumed_notes is not None:
        yield Resumed(session.step, session.resumed_notes)
    while progress.pending or session.step < goal:
        if progress.pending is None:
            collect(session)
        learn(session)
        pending = progress.pending
        assert pending is not None
        if pending.ended or reports_due(session.config, pending.before, session.step, goal):
            yield from list(report(session, pending, goal))  # all is done before any of it is yielded
        progress.pending = None
        yield Stepped(session.step, session.learner.updates)
    last = progress.last_evaluation[1] if progress.last_evaluation else None
    yield Finished(session.step, session.learner.updates, session.clock.seconds, progress.best, last)


def collect(session: Session) -> None:
    """Plays one step and stores it; what it owes is pending from then on."""
    before, progress = session.step, session.progress
    transitions, episodes = session.collector.collect(partial(act, session))
    progress.unfinished = "storing a step"
    session.learner.store(transitions)
    progress.pending = Pending(before, episodes)
    ended = sum(length for _, _, length in episodes)
    progress.due = updates_due(session.config, progress.due, session.step, ended)
    progress.unfinished = ""


def act(session: Session, observations: Rows) -> Float32s:
    """Acts as the actor does; an action that is no number is the networks' fault, not the environment's."""
    actions = session.learner.act(observations)
    if not all_finite(actions):
        raise session.diverged()
    return actions


def learn(session: Session) -> None:
    """Performs as many updates as are owed."""
    learner, progress = session.learner, session.progress
    recorder = session.output.recorder if session.output else None
    while learner.updates + 1 <= progress.due + 1e-9:
        progress.unfinished = "an update"
        observer = recorder.observing(session.step, learner.updates) if recorder else None
        update = learner.learn(session.replay_rng, session.smoothing_rng, observer)
        progress.means.add(update.means(), update.delayed)
        progress.unfinished = ""


def report(session: Session, pending: Pending, goal: int) -> Iterator[Event]:
    """Records, evaluates and saves what is due after a step."""
    config, step, before, progress, output = (
        session.config,
        session.step,
        pending.before,
        session.progress,
        session.output,
    )
    last = step >= goal
    if not pending.reported:
        for env, episode_return, length in pending.ended:
            yield recorded(session, EpisodeEnded(step, env, episode_return, length))
        if crossed(config.log_every, before, step) or last:
            yield measure(session)
        progress.pending = pending._replace(reported=True)
    evaluated = None
    if session.eval_envs and (crossed(config.eval_every, before, step) or last):
        yield (evaluated := evaluate(session))
    progress.pending = None
    due = crossed(config.checkpoint_every, before, step) or progress.best_at(step) or last
    if due and output:
        try:
            yield Saved(step, str(session.save()))
            yield from output.save_problems(step)
        except RunError as problem:  # training continues: the checkpoints before are whole
            yield SaveFailed(step, str(problem))
    if evaluated and due and output:
        film(session, evaluated, last)
    if output:
        yield from output.problems(step)


def recorded(session: Session, event: WithMetrics) -> WithMetrics:
    """Writes an event's metrics, and returns it."""
    if session.output:
        session.output.record.write(event.step, event.metrics)
    return event


def measure(session: Session) -> Measured:
    """Returns the means over the updates since the last row, and the speeds."""
    speeds = session.clock.speeds(session.step, session.learner.updates)
    measured = recorded(session, Measured(session.step, {**session.progress.means.take(), **speeds}))
    if not all(map(np.isfinite, measured.metrics.values())):
        raise session.diverged()
    return measured


def evaluate(session: Session) -> Evaluated:
    """Plays episodes without noise, and compares the critic's first prediction with what followed."""
    assert session.eval_envs is not None
    with set_aside(session):
        seeds, value = eval_seeds(session), session.learner.value
        evaluation = play_episodes(session.eval_envs, partial(act, session), seeds, session.config.gamma, value)
    best = session.progress.evaluated(session.step, evaluation.mean)
    return recorded(session, Evaluated(session.step, evaluation, best))


def eval_seeds(session: Session) -> list[int]:
    """Returns fresh seeds each time, which follow from the step alone: no score is tuned to its starts."""
    config = session.config
    return seeding.environment_seeds(config.seed, "evaluation environments", config.eval_episodes, session.step)


def film(session: Session, evaluated: Evaluated, last: bool) -> None:
    """Films the first episode of an evaluation again, in a process of its own."""
    assert session.output is not None
    with set_aside(session):
        policy, seed = partial(policy_of, session.learner), eval_seeds(session)[0]
        session.output.film_episode(policy, seed, evaluated.evaluation.lengths[0], last)


@contextlib.contextmanager
def set_aside(session: Session) -> Iterator[None]:
    """Evaluates or films: it does not count as training time, and Ctrl-C need not wait, for nothing is half done."""
    interrupt = session.interrupt
    with session.clock.paused(), interrupt.raised_at_once() if interrupt else contextlib.nullcontext():
        yield


def save_because_of(session: Session, problem: BaseException) -> None:
    """Saves what there is; the exception says where, or why not."""
    if isinstance(problem, TrainingDiverged):
        return  # what was saved before is better than this
    try:
        saved = session.save()
    except Exception as failure:
        if isinstance(problem, GeneratorExit):
            raise
        problem.save_problem = str(failure)  # type: ignore[attr-defined]
        problem.add_note(f"The run could not be saved at step {session.step:,}: {failure}")
    else:
        if saved is not None:
            problem.saved = saved  # type: ignore[attr-defined]
            problem.add_note(f"The run was saved at step {session.step:,}: {saved}")
