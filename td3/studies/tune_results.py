"""What a search found: the table of its trials as CSV, the best settings as TOML, and runs that confirm them."""

import csv
import io
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from td3.config.values import in_words
from td3.studies.spec import PlannedRun, plain, toml_value
from td3.studies.standing import Standing, standing_of
from td3.studies.tune_spec import TuneSpec, trial_name
from td3.studies.tuner import CONFIRM, Tuner
from td3.studies.tuning import TrialRecord

DEFAULT = "default"


def csv_of(spec: TuneSpec, trials: list[TrialRecord]) -> bytes:
    """Writes every trial as a row: its state, its value, the step it reached, its settings, and why it failed."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["trial", "state", "value", "step", *spec.space, "problem"])
    for trial in trials:
        value = "" if trial.value is None else trial.value
        settings = [in_words(trial.settings[name]) for name in spec.space]
        table.writerow([trial.number, trial.state, value, max(trial.reports, default=0), *settings, trial.problem])
    return text.getvalue().encode()


def best_toml(spec: TuneSpec, best: TrialRecord) -> bytes:
    """Writes the settings of a trial as a file for `td3 train --config` and `td3 study`."""
    steps = spec.settings["steps"]
    mean = f"the mean over {spec.seeds_per_trial} seeds of " if spec.seeds_per_trial > 1 else ""
    lines = [
        f"# Trial {best.number} of {spec.trials}: {mean}the last evaluation (step {steps:,}) is {best.value:.1f}.",
        "# The best of many trials looks better than it is: other seeds will show what it is worth.",
        f"env = {toml_value(spec.env)}",
    ]
    lines += [f"{name} = {toml_value(value)}" for name, value in plain({**spec.settings, **best.settings}).items()]
    return ("\n".join(lines) + "\n").encode()


class Confirmed(NamedTuple):
    """What settings reach with seeds that the search did not use."""

    name: str
    settings: dict[str, Any]
    values: list[float]  # the last evaluation of each run that is done

    @property
    def mean(self) -> float | None:
        """The mean over the seeds."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


class Confirmation:
    """Runs of the best settings and of the default, with seeds that the search did not use."""

    def __init__(self, tuner: Tuner, best: TrialRecord, seeds: int) -> None:
        self.path, self.spec = tuner.path, tuner.spec
        first = tuner.spec.seed + tuner.spec.seeds_per_trial
        self.seeds = range(first, first + seeds)
        self.groups: dict[str, dict[str, Any]] = {trial_name(best.number): best.settings, DEFAULT: {}}
        if tuner.spec.moved() and best.number != 0:
            self.groups[trial_name(0)] = tuner.spec.first()
        if best.number == 0 and not tuner.spec.moved():
            del self.groups[trial_name(0)]  # it is the default
        self._runs = {name: self.spec.runs(f"{CONFIRM}/{name}", own, self.seeds) for name, own in self.groups.items()}
        rows = list(self._runs.values())
        self.runs: list[PlannedRun] = [group[place] for place in range(seeds) for group in rows]  # seeds first

    def left(self) -> list[PlannedRun]:
        """Returns the runs that are not done."""
        return [run for run in self.runs if not self.standing(run).done(run.config.steps)]

    def path_of(self, run: PlannedRun) -> Path:
        """Returns the folder of a run."""
        return self.path / run.name

    def standing(self, run: PlannedRun) -> Standing:
        """Reads how far a run is."""
        return standing_of(self.path_of(run))

    def results(self) -> list[Confirmed]:
        """Returns what each of the settings reached, as far as its runs are done."""
        return [
            Confirmed(name, self.groups[name], [self.standing(run).last or 0.0 for run in runs if self._is_done(run)])
            for name, runs in self._runs.items()
        ]

    def _is_done(self, run: PlannedRun) -> bool:
        standing = self.standing(run)
        return standing.last is not None and standing.done(run.config.steps)
