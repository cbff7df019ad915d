"""A search and its folder: asks for trials, trains their runs, and reports what each evaluation says of them."""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from td3.errors import RunError
from td3.storage.journal import BEST, JOURNAL, RESULTS, Journal
from td3.storage.record import read_metrics
from td3.storage.study import StudyFolder
from td3.studies.driver import FAILED, Driver, Ended, Looked, StudyEvent
from td3.studies.spec import PlannedRun
from td3.studies.standing import Standing, standing_of
from td3.studies.tune_spec import TuneSpec, read_tune_spec, toml_of_search, trial_name
from td3.studies.tuning import FAILED as TRIAL_FAILED
from td3.studies.tuning import RUNNING, Search, TrialRecord

CONFIRM = "confirm"  # the folder of the runs that compare the best settings with the default
HOPELESS = 3  # trials from the first that fail: then it is not the settings that are wrong


class Asked(NamedTuple):
    """A trial was begun."""

    trial: TrialRecord


class TrialEnded(NamedTuple):
    """A trial is complete, pruned or failed."""

    trial: TrialRecord


TuneEvent = StudyEvent | Asked | TrialEnded


class Tuner:
    """The trials of a spec in a folder; used as a context, it is locked and its journal open."""

    def __init__(self, path: str | Path, spec: TuneSpec) -> None:
        self.folder, self.spec = StudyFolder(path, "tune"), spec
        self._open: dict[str, int] = {}  # the trial of each run that is queued or trains, by the run's name
        self._journal: Journal | None = None
        self._before = 0  # trials that there were when it was opened
        self.search: Search

    @property
    def path(self) -> Path:
        """Returns the path of its folder."""
        return self.folder.path

    def path_of(self, run: PlannedRun) -> Path:
        """Returns the folder of a run."""
        return self.path / run.name

    def standing(self, run: PlannedRun) -> Standing:
        """Reads how far a run is."""
        return standing_of(self.path_of(run))

    def runs_of(self, trial: TrialRecord) -> list[PlannedRun]:
        """Returns the runs of a trial."""
        return self.spec.runs_of(trial.number, trial.settings)

    def left(self) -> list[PlannedRun]:
        """Returns the runs of trials that have not ended, as far as they are not done."""
        running = [run for trial in self._running() for run in self.runs_of(trial)]
        return [run for run in running if not self._done(run)]

    def check(self) -> None:
        """Refuses a folder of something else, and a spec that is not the one of this folder."""
        trials = {trial_name(number) for number in range(self.spec.trials)}
        self.folder.check({JOURNAL, RESULTS, BEST, f".{RESULTS}", f".{BEST}", CONFIRM} | trials)
        if self.folder.spec.is_file():
            self.spec.check_continues(read_tune_spec(self.folder.spec))

    def __enter__(self) -> Self:
        self.check()
        self.folder.open()
        try:
            self.check()  # again, now that no other process trains it
            self.folder.write(toml_of_search(self.spec))
            self._journal = self.folder.journal()
            self.search = Search(self._journal, self.spec)
            self._before = len(self.search.trials())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self.folder.close()

    @property
    def hopeless(self) -> bool:
        """Whether the first trials since the search was started or continued all failed, and none before was better."""
        trials = self.search.trials()
        first = trials[self._before :][:HOPELESS]
        known = trials[: self._before] + first
        return len(first) == HOPELESS and all(trial.state == TRIAL_FAILED for trial in known)

    def events(self, driver: Driver) -> Iterator[TuneEvent]:
        """Trains until all trials have ended or a signal comes; yields the driver's events and those of trials."""
        yield from self._begin(driver)
        for event in driver.events():
            yield event
            if isinstance(event, Ended):
                number = self._open.pop(event.run.name)
                if event.state == FAILED and self.search.trial(number).state == RUNNING:
                    yield self._fail(number, event.problem, driver)
            if isinstance(event, Ended | Looked):
                for trial in self._running():
                    yield from self._take_in(trial, driver)
            if isinstance(event, Ended):
                for trial in self._ask(driver):
                    yield Asked(trial)
                    driver.add(self.runs_of(trial))

    def _begin(self, driver: Driver) -> Iterator[Asked | TrialEnded]:
        """Takes in what a killed driver had no time to report, and asks for trials until a run is left to train."""
        new: list[TrialRecord] = []
        while True:
            for trial in self._running():
                yield from self._take_in(trial, driver)
            self._open = {run.name: trial.number for trial in self._running() for run in self._left_of(trial)}
            if new and self._open:
                return
            new = self._ask(driver)
            yield from map(Asked, new)
            if not new:
                return

    def _running(self) -> list[TrialRecord]:
        return [trial for trial in self.search.trials() if trial.state == RUNNING]

    def _left_of(self, trial: TrialRecord) -> list[PlannedRun]:
        return [run for run in self.runs_of(trial) if not self._done(run)]

    def _done(self, run: PlannedRun) -> bool:
        return self.standing(run).done(run.config.steps)

    def _ask(self, driver: Driver) -> list[TrialRecord]:
        """Begins trials as long as there are fewer runs than jobs; with one job, when all before have ended."""
        new = []
        while (
            not driver.signals
            and len(self._open) < driver.jobs
            and len(self.search.trials()) < self.spec.trials
            and not self.hopeless
        ):
            trial = self.search.ask()
            self._open |= {run.name: trial.number for run in self.runs_of(trial)}
            new.append(trial)
        return new

    def _take_in(self, trial: TrialRecord, driver: Driver) -> Iterator[TrialEnded]:
        """Reports the evaluations that all runs of a trial have, in their order, and ends it where that is due.

        What is decided at an evaluation depends on the evaluations up to it, and not on when they are read.
        """
        runs = self.runs_of(trial)
        done = all(map(self._done, runs))  # before the records are read: then they are whole
        curves = [evaluations(self.path_of(run)) for run in runs]
        last = max(trial.reports, default=0)
        for step in sorted(set.intersection(*map(set, curves))):
            mean = sum(curve[step] for curve in curves) / len(curves)
            if not math.isfinite(mean):
                continue
            if step not in trial.reports:
                self.search.report(trial.number, step, mean)
            if last <= step < runs[0].config.steps and self.search.should_prune(trial.number):
                self.search.prune(trial.number)
                yield self._ended(trial.number, driver)
                return
        if done:
            value = sum(curve[max(curve)] if curve else math.nan for curve in curves) / len(curves)
            if math.isfinite(value):
                self.search.complete(trial.number, value)
                yield self._ended(trial.number, driver)
            else:
                yield self._fail(trial.number, "Its last evaluation is no number.", driver)

    def _fail(self, number: int, problem: str, driver: Driver) -> TrialEnded:
        self.search.fail(number, problem)
        return self._ended(number, driver)

    def _ended(self, number: int, driver: Driver) -> TrialEnded:
        for name, trial in list(self._open.items()):
            if trial == number and not driver.stop(name):
                del self._open[name]
        return TrialEnded(self.search.trial(number))


def evaluations(run: Path) -> dict[int, float]:
    """Reads the mean return of each evaluation in the record of a run, by its step."""
    found: dict[int, float] = {}
    with contextlib.suppress(RunError):  # it is not begun
        for row in read_metrics(run / "metrics.jsonl"):
            step, value = row.get("step"), row.get("eval/mean_return")
            if isinstance(step, int) and "eval/mean_return" in row:
                found[step] = float(value) if isinstance(value, int | float) else math.nan
    return found
