"""Trains the runs of a study, each as a job of its own, and a few of them at once."""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from td3.storage.study import is_locked
from td3.studies.spec import PlannedRun
from td3.studies.standing import Standing, newest_step

TICK = 0.05  # seconds between two looks at the jobs
LOOK = 1.0  # seconds between two looks at the records of runs
FINISHED, FAILED, STOPPED = "finished", "failed", "stopped"


class Job(Protocol):
    """A run that trains somewhere: in a process of this machine, or on another node."""

    @property
    def code(self) -> int | None:
        """Returns its exit code, as `td3 train` has it, once it has ended."""

    def send(self, number: int) -> None:
        """Stops it, if it still trains: SIGTERM lets it save, a second one lets it leave, SIGKILL ends it."""

    def end(self) -> None:
        """Waits until it has ended, and asks it to save and end unless it was asked before."""

    def problem(self) -> str:
        """Returns why it failed, in one sentence."""


class Plan(Protocol):
    """Runs to train, and their folders: a `Study`, or the trials of a search."""

    def left(self) -> list[PlannedRun]:
        """Returns the runs that are not done, in the order they are begun or continued."""

    def path_of(self, run: PlannedRun) -> Path:
        """Returns the folder of a run."""

    def standing(self, run: PlannedRun) -> Standing:
        """Reads how far a run is."""


class Began(NamedTuple):
    """A run was begun, or is continued from a step."""

    run: PlannedRun
    step: int


class Ended(NamedTuple):
    """The job of a run ended."""

    run: PlannedRun
    state: str  # finished, failed or stopped
    problem: str  # why it failed, one sentence
    standing: Standing
    seconds: float


class Waiting(NamedTuple):
    """A run that is left is written by another process."""

    run: PlannedRun


class Reported(NamedTuple):
    """Something happened to a run that trains elsewhere: it was placed again, or waits."""

    run: PlannedRun
    text: str  # follows on the run's name


class Looked(NamedTuple):
    """How far the study is."""

    share: float  # of the steps that were left when it was started
    left: float | None  # seconds, as far as they can be known
    steps: dict[str, int]  # of the runs that train, by their names


StudyEvent = Began | Ended | Waiting | Reported | Looked


class Driver:
    """Keeps `jobs` runs of a plan training until none is left."""

    def __init__(self, plan: Plan, jobs: int, start: Callable[[PlannedRun], Job]) -> None:
        """`start` begins a run, or continues it if it is begun."""
        self.plan, self.jobs, self.start = plan, jobs, start
        self.signals: list[int] = []  # that asked to stop; a handler may append to it at any moment
        self._passed_on = 0
        self._running: dict[str, _Running] = {}
        self._stopped: set[str] = set()  # names of runs that were stopped, and not by a signal
        self._left: deque[PlannedRun] = deque()
        self._trained, self._all = 0, 0  # steps
        self._began = self._looked = 0.0

    def add(self, runs: Iterable[PlannedRun]) -> None:
        """Puts more runs behind those that are left; for whoever has the events and knows what comes next."""
        for run in runs:
            self._left.append(run)
            self._all += self._steps_of(run)

    def stop(self, name: str) -> bool:
        """Lets one run save and end, or leaves it out if it is not begun; returns whether its `Ended` event comes."""
        self._left = deque(run for run in self._left if run.name != name)
        if name in self._running and name not in self._stopped:
            self._stopped.add(name)
            self._running[name].job.send(signal.SIGTERM)
        return name in self._running

    def events(self) -> Iterator[StudyEvent]:
        """Begins and continues what is left; yields what happens. Whoever leaves early stops the jobs."""
        self.add(self.plan.left())
        self._began = time.monotonic()
        waits: set[str] = set()
        try:
            while self._running or (self._left and not self.signals):
                self._pass_signals_on()
                if not self.signals and len(self._running) < self.jobs and (run := self._next()):
                    yield self._begin(run)
                    continue
                if not self._running and not self.signals and self._left[0].name not in waits:
                    waits.add(self._left[0].name)
                    yield Waiting(self._left[0])
                for running in list(self._running.values()):
                    ended = running.job.code is not None  # first: what it reports before its end is not lost
                    yield from self._reports(running)
                    if ended:
                        yield self._end(running)
                if time.monotonic() - self._looked >= LOOK:
                    yield self._look()
                time.sleep(TICK)
        finally:
            for running in self._running.values():
                running.job.end()

    def _steps_of(self, run: PlannedRun) -> int:
        return max(0, run.config.steps - self.plan.standing(run).step)

    def _next(self) -> PlannedRun | None:
        """Takes the first run that no other process writes."""
        for run in self._left:
            if not is_locked(self.plan.path_of(run)):
                self._left.remove(run)
                return run
        return None

    def _begin(self, run: PlannedRun) -> Began:
        step = self.plan.standing(run).step
        self._running[run.name] = _Running(run, self.start(run), step, time.monotonic())
        return Began(run, step)

    def _end(self, running: "_Running") -> Ended:
        run, job = running.run, running.job
        del self._running[run.name]
        job.end()
        standing = self.plan.standing(run)
        self._trained += max(0, standing.step - running.first)
        asked = bool(self.signals) or run.name in self._stopped
        state = FINISHED if job.code == 0 else STOPPED if asked else FAILED
        if state != FINISHED:
            self._all -= max(0, run.config.steps - standing.step)
        problem = job.problem() if state == FAILED else ""
        return Ended(run, state, problem, standing, time.monotonic() - running.began)

    @staticmethod
    def _reports(running: "_Running") -> Iterator[Reported]:
        """Yields what a job has to report; one of this machine has nothing, and need not have the method."""
        news: Callable[[], Iterable[str]] = getattr(running.job, "news", tuple)
        return (Reported(running.run, text) for text in news())

    def _look(self) -> Looked:
        steps = {name: newest_step(self.plan.path_of(one.run)) for name, one in self._running.items()}
        trained = self._trained + sum(max(0, steps[name] - one.first) for name, one in self._running.items())
        self._looked = now = time.monotonic()
        left = (self._all - trained) * (now - self._began) / trained if trained > 0 else None
        return Looked(min(1.0, trained / max(1, self._all)), left and max(0.0, left), steps)

    def _pass_signals_on(self) -> None:
        """Stops the jobs: the first signal lets them save, the second lets them leave, the third ends them."""
        if len(self.signals) > self._passed_on:
            self._passed_on = len(self.signals)
            for running in self._running.values():
                running.job.send(signal.SIGTERM if self._passed_on < 3 else signal.SIGKILL)


class _Running(NamedTuple):
    run: PlannedRun
    job: Job
    first: int  # the step it began from
    began: float
