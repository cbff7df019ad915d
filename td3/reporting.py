"""What a step of training reports: its metrics, an evaluation, a checkpoint, a film."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from td3 import seeding
from td3.diagnosis import news, sickness
from td3.environments.limits import time_limit
from td3.errors import RunError
from td3.evaluation import LONGEST, EndlessEpisode, play_episodes
from td3.events import EpisodeEnded, Evaluated, Event, Examined, Found, Measured, Noted, Saved, SaveFailed
from td3.health import measure_health
from td3.learner import policy_of
from td3.metrics import STOPPED
from td3.probing import TooSlow, probe
from td3.progress import Pending
from td3.schedule import crossed, health_due
from td3.session import Session
from td3.stopping import why_stop

EVALUATION = "evaluation environments"  # their stream of seeds
WithMetrics = TypeVar("WithMetrics", EpisodeEnded, Measured, Evaluated, Examined, Found)


def report(session: Session, pending: Pending, goal: int) -> Iterator[Event]:
    """Records, evaluates and saves what is due after a step."""
    config, progress, output = session.config, session.progress, session.output
    step, before = session.step, pending.before
    last = step >= goal
    if not pending.reported:
        for episode in pending.ended:
            yield recorded(session, EpisodeEnded(step, *episode))
        yield from restarted(session, pending.failures)
        if crossed(config.log_every, before, step) or last:
            yield measure(session)
        if config.diagnose and health_due(before, step):
            yield from examine(session)
        progress.pending = pending._replace(reported=True)
    evaluated = None
    if session.eval_envs and (crossed(config.eval_every, before, step) or last):
        if config.diagnose and progress.last_evaluation is None and not session.evidence.probe:
            yield from probed(session)
        yield (evaluated := evaluate(session))
        failures = evaluated.evaluation.failures + (evaluated.checkpoint.failures if evaluated.checkpoint else ())
        yield from restarted(session, session.restarts.notes(failures))
        yield from findings(session)
    if not last:
        progress.stopped = stop = why_stop(config, progress, step)
        if stop and output:
            output.record.write(step, {STOPPED: stop.reason})
        last = stop is not None
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
    session.evidence.add({"step": event.step, **event.metrics})
    return event


def restarted(session: Session, failures: Sequence[tuple[int, str]]) -> Iterator[Noted]:
    """Records and reports environments that failed and were made anew."""
    for number, note in failures:
        if session.output:
            session.output.record.write(session.step, {"rollout/failures": number})
        yield Noted(session.step, note)


def measure(session: Session) -> Measured:
    """Returns the means over the updates since the last row, and the speeds."""
    speeds = session.clock.speeds(session.step, session.learner.updates)
    measured = recorded(session, Measured(session.step, {**session.progress.means.take(), **speeds}))
    if not all(map(np.isfinite, measured.metrics.values())):
        raise session.diverged()
    return measured


def examine(session: Session) -> Iterator[Event]:
    """Measures the health of the run, with statistics of its newest rows, and yields what is found."""
    if not session.measurable:
        return
    memory, progress = session.learner.memory, session.progress
    try:
        health = measure_health(session.learner, memory.written - progress.measured)
    except Exception as problem:  # networks of another kind
        session.measurable = False
        yield Noted(session.step, f"The run's health cannot be measured: {type(problem).__name__}: {problem}.")
        return
    progress.measured = memory.written
    yield recorded(session, Examined(session.step, health))
    yield from findings(session)


def probed(session: Session) -> Iterator[Event]:
    """Asks the evaluation environment, before its first evaluation, whether actions matter and seeds hold."""
    assert session.eval_envs is not None
    envs, config, failures_before = session.eval_envs, session.config, session.restarts.used
    answers: dict[str, Any] = {}
    try:
        with set_aside(session), contextlib.suppress(TooSlow):
            answers = probe(envs, eval_seeds(session)[0]).metrics
        failed = session.restarts.used > failures_before
    finally:
        session.restarts.used = failures_before  # as if it had not been tried
    if answers and not failed:  # one that failed has answered nothing
        limit = time_limit(envs, config.env, config.action_repeat)
        known = {"probe/time_limit": limit} if limit else {}
        yield recorded(session, Examined(session.step, {**answers, **known}))


def findings(session: Session) -> Iterator[Event]:
    """Yields what the diagnosis is certain of now and was not before."""
    if session.config.diagnose:
        for finding in news(session.evidence):
            yield recorded(session, Found(session.step, finding))
        session.progress.sick = sickness(session.evidence)


def evaluate(session: Session) -> Evaluated:
    """Plays episodes without noise, and compares the critic's first prediction with what followed."""
    assert session.eval_envs is not None
    with set_aside(session):
        seeds, value, config = eval_seeds(session), session.learner.value, session.config
        spare = seeding.further_seeds(config.seed, EVALUATION, len(seeds), session.step)
        failures_before = session.restarts.used
        try:
            evaluation = play_episodes(session.eval_envs, session.act, seeds, config.gamma, value, spare)
            kept = session.learner.checkpoint_policy()
            checkpoint = play_episodes(session.eval_envs, kept, seeds, config.gamma, spare=spare) if kept else None
        except BaseException as problem:
            session.restarts.used = failures_before  # as if it had not been tried: a resumed run repeats it
            if isinstance(problem, EndlessEpisode):
                recorded(session, Examined(session.step, {"eval/unfinished": LONGEST}))
            raise
    best = session.progress.evaluated(session.step, evaluation.mean)
    return recorded(session, Evaluated(session.step, evaluation, best, checkpoint))


def eval_seeds(session: Session) -> list[int]:
    """Returns fresh seeds each time, which follow from the step alone: no score is tuned to its starts."""
    config = session.config
    return seeding.environment_seeds(config.seed, EVALUATION, config.eval_episodes, session.step)


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
