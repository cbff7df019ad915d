"""The training loop: collect, store, learn, evaluate, save; a generator of events.

Each event comes between two steps, with every transition stored and its updates done.
"""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from td3 import seeding
from td3.environments.actions import all_finite
from td3.errors import RunError, TrainingDiverged
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
from td3.learner import policy_of
from td3.progress import Pending
from td3.schedule import crossed, reports_due, updates_due
from td3.session import Session
from td3.types import Float32s, Rows

WithMetrics = TypeVar("WithMetrics", EpisodeEnded, Measured, Evaluated)


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
