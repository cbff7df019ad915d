"""The training loop: collect, store, learn, report; a generator of events.

Each event comes between two steps, with every transition stored and its updates done.
"""

from collections.abc import Iterator

from td3.errors import EnvironmentFailure, TrainingDiverged
from td3.events import Event, Finished, Noted, Resumed, Started, Stepped
from td3.interrupts import deferred
from td3.progress import Pending, plain_episode
from td3.reporting import report
from td3.schedule import reports_due, updates_due
from td3.session import Session


def advance(session: Session, goal: int) -> Iterator[Event]:
    """Trains until `goal` steps are reached, or the run stops by itself.

    With n environments the last step may go up to n − 1 beyond. Whatever ends it early, the run is saved first.
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
            if session.changed:  # after the last checkpoint
                session.save()
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
    yield from (Noted(session.step, note) for note in session.change_notes)
    while progress.pending or (session.step < goal and not progress.stopped):
        if progress.pending is None:
            collect(session)
        learn(session)
        pending = progress.pending
        assert pending is not None
        if pending.ended or pending.failures or reports_due(session.config, pending.before, session.step, goal):
            yield from list(report(session, pending, goal))  # all is done before any of it is yielded
        progress.pending = None
        yield Stepped(session.step, session.learner.updates)
    last = progress.last_evaluation[1] if progress.last_evaluation else None
    by, reason = progress.stopped or ("", "")
    yield Finished(session.step, session.learner.updates, session.clock.seconds, progress.best, last, reason, by)


def collect(session: Session) -> None:
    """Plays one step and stores it; what it owes is pending from then on."""
    before, progress = session.step, session.progress
    collected = session.collector.collect(session.act)
    progress.unfinished = "storing a step"
    session.learner.store(collected[0])
    ended = [plain_episode(*episode) for episode in collected[1]] if collected[1] else []
    failures = collected[2] if len(collected) > 2 else ()  # a collector of one's own may leave them out
    progress.pending = Pending(before, ended, False, failures)
    steps = session.learner.ended(ended, session.step) if ended else 0
    progress.due = updates_due(session.config, progress.due, session.step, steps)
    progress.unfinished = ""


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


def save_because_of(session: Session, problem: BaseException) -> None:
    """Saves what there is; the exception says where, or why not."""
    if isinstance(problem, TrainingDiverged):
        session.record_failure(problem)
        return  # what was saved before is better than this
    try:
        saved = session.save()
        if isinstance(problem, EnvironmentFailure):
            session.record_failure(problem)
    except Exception as failure:
        if isinstance(problem, GeneratorExit):
            raise
        problem.save_problem = str(failure)  # type: ignore[attr-defined]
        problem.add_note(f"The run could not be saved at step {session.step:,}: {failure}")
    else:
        if saved is not None:
            problem.saved = saved  # type: ignore[attr-defined]
            problem.add_note(f"The run was saved at step {session.step:,}: {saved}")
