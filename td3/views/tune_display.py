"""Shows a search: a line for each trial, a panel with the runs that train in a terminal, and what was found."""

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from td3.config.values import in_words
from td3.studies import Began, Driver, Ended, PlannedRun, Waiting
from td3.studies.driver import FAILED as RUN_FAILED
from td3.studies.driver import FINISHED, Looked, StudyEvent
from td3.studies.tune_results import DEFAULT, Confirmation, Confirmed
from td3.studies.tune_spec import trial_name
from td3.studies.tuner import Asked, TrialEnded, TuneEvent, Tuner
from td3.studies.tuning import COMPLETE, ENOUGH, FAILED, PRUNED, RUNNING, TrialRecord, best_of, ranked
from td3.views.speaking import console, rich_text, say
from td3.views.terminal import clock, number
from td3.views.times import duration
from td3.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN = 10  # trials in the table


class PlainSearch:
    """A line for each trial that begins or ends."""

    def __init__(self, tuner: Tuner, driver: Driver, quiet: bool) -> None:
        self.tuner, self.driver, self.quiet = tuner, driver, quiet
        self.running: dict[str, PlannedRun] = {}
        self.looked = Looked(0.0, None, {})
        self.began = time.monotonic()
        self.best = best_of(tuner.search.trials())
        self.ended = self.before = sum(trial.state != RUNNING for trial in tuner.search.trials())

    def __enter__(self) -> Self:
        spec = self.tuner.spec
        done = f", {self.before} of them done" if self.before else ""
        jobs = f"; {counted(self.driver.jobs, 'run')} at once" if self.driver.jobs > 1 else ""
        each = f" × {spec.seeds_per_trial} seeds" if spec.seeds_per_trial > 1 else ""
        if not self.quiet:
            self.lines(
                f"{counted(spec.trials, 'trial')}{each} of {spec.settings['steps']:,} steps in {self.tuner.path}{done}"
                f"{jobs}.",
                f"Searching {', '.join(f'{name} ({known.words})' for name, known in spec.space.items())}.",
            )
            if moved := spec.moved():
                now = ", ".join(f"{name} {in_words(getattr(spec.default, name))}" for name in moved)
                self.lines(f"Trial 0 has the default settings but {in_line(moved)}: the space has no {now}.")
        return self

    def __exit__(self, *problem: Any) -> None: ...

    def lines(self, *lines: str) -> None:
        """Writes lines."""
        say(*lines)

    def show(self, event: TuneEvent) -> None:
        """Takes in one event, and writes a line if it is worth one."""
        if isinstance(event, Looked):
            self.looked = event
        elif isinstance(event, Began):
            self.running[event.run.name] = event.run
            if event.step and not self.quiet:
                self.lines(f"{event.run.name} continues from step {event.step:,}")
        elif isinstance(event, Ended):
            self.running.pop(event.run.name, None)
        elif isinstance(event, Waiting):
            self.lines(f"{event.run.name} is written by another process: waiting for it")
        elif isinstance(event, Asked):
            if not self.quiet:
                what = "the default settings" if self.is_default(event.trial) else in_line(event.trial.settings)
                self.lines(f"{trial_name(event.trial.number)} begins: {what}")
        elif isinstance(event, TrialEnded):
            self._ended(event)

    def is_default(self, trial: TrialRecord) -> bool:
        """Whether a trial has the settings there were before the search."""
        return trial.number == 0 and not self.tuner.spec.moved()

    def _ended(self, event: TrialEnded) -> None:
        trial = event.trial
        self.ended += 1
        left = self.tuner.spec.trials - self.ended
        behind = f"; {counted(max(0, left), 'trial')} left{self.time_left()}"
        if trial.state == FAILED:
            self.lines(f"{trial_name(trial.number)} failed: {trial.problem}")
        elif trial.state == PRUNED and not self.quiet:
            step = max(trial.reports, default=0)
            self.lines(f"{trial_name(trial.number)} is pruned at step {step:,}, return {number(trial.value)}{behind}")
        elif trial.state == COMPLETE:
            best = best_of(self.tuner.search.trials())
            new = " (the best so far)" if best and best.number == trial.number and trial.number else ""
            self.best = best
            if not self.quiet:
                self.lines(f"{trial_name(trial.number)} is done: return {number(trial.value)}{new}{behind}")

    def time_left(self) -> str:
        """Returns the time left for the search, if it can be known."""
        ended, left = self.ended - self.before, self.tuner.spec.trials - self.ended
        if ended < 3 or left <= 0:
            return ""
        return f", about {duration((time.monotonic() - self.began) * left / ended)}"

    def show_confirming(self, event: StudyEvent) -> None:
        """Writes a line for each run that confirms the best settings, when it ends."""
        if isinstance(event, Ended):
            if event.state == RUN_FAILED:
                self.lines(f"{event.run.name} failed: {event.problem}")
            elif event.state == FINISHED and not self.quiet:
                self.lines(f"{event.run.name} is done: return {number(event.standing.last)}")

    def ending(self) -> list[str]:
        """Returns how the trials ended, their table, and which settings mattered."""
        trials = self.tuner.search.trials()
        counts = [f"{sum(trial.state == state for trial in trials)} {state}" for state in (COMPLETE, PRUNED, FAILED)]
        took = f", in {clock(time.monotonic() - self.began)}" if self.ended > self.before else ""
        head = f"{counted(self.ended, 'trial')}: {', '.join(counts)}{took}."
        lines = [head, *table(self.tuner, trials)]
        if self.tuner.hopeless:
            lines.append("The first trials all failed, which settings do not explain: the search is stopped.")
        importance = self.tuner.search.importance()
        if importance:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in importance.items())
            lines.append(f"Share of each setting in what makes a trial one of the better half (PED-ANOVA): {shares}.")
        else:
            complete = sum(trial.state == COMPLETE for trial in trials)
            lines.append(f"Too few trials to say which settings matter: {complete} complete, {ENOUGH} needed.")
        return lines

    def results(self, report: dict[str, Any], shown: bool) -> list[str]:
        """Returns the last lines: the table unless it is `shown`, and what fresh seeds say."""
        lines = [] if shown else self.ending()
        if report["confirmed"]:
            seeds = ", ".join(map(str, report["confirm_seeds"]))
            lines.append(f"With fresh seeds ({seeds}), the last evaluation, ± standard deviation over seeds:")
            lines += [f"  {one['name']:<12} {confirmed_words(one)}" for one in report["confirmed"]]
            lines += verdict(report["confirmed"])
        elif self.best is not None and not report["confirmed"]:
            lines.append("The best of many trials looks better than it is: --confirm N compares it with fresh seeds.")
        return lines


class LiveSearch(PlainSearch):
    """The same lines, and below them a bar, the time left, and the runs that train."""

    def __init__(self, tuner: Tuner, driver: Driver) -> None:
        from rich.live import Live

        super().__init__(tuner, driver, quiet=False)
        self._live = Live(console=console(), get_renderable=self._panel, refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self._live.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._live.__exit__(*problem)

    def lines(self, *lines: str) -> None:
        """Writes lines above the panel."""
        for line in lines:
            self._live.console.print(rich_text(line), soft_wrap=True)

    def _panel(self) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        trials, best = self.tuner.spec.trials, self.best
        bar = Table.grid(expand=True)  # a bar alone would not end its line
        bar.add_row(ProgressBar(total=trials, completed=min(trials, self.ended)))
        value = "" if best is None else f"  ·  best {number(best.value)} (trial {best.number})"
        elapsed, left = clock(time.monotonic() - self.began), self.time_left()
        head = rich_text(f"{self.ended} of {counted(trials, 'trial')}{value}  ·  {elapsed}{left and f'{left} left'}")
        runs = Table.grid(padding=(0, 3))
        for name, run in list(self.running.items()):
            step = self.looked.steps.get(name, 0)
            runs.add_row(rich_text(name), rich_text(f"{step:,} of {run.config.steps:,}", "dim"))
        title = rich_text(str(self.tuner.path))
        return Panel(Group(bar, head, runs), title=title, title_align="left", border_style="cyan")


def in_line(settings: Mapping[str, Any]) -> str:
    """Writes settings in one line: 'actor_lr 0.001, gamma 0.98'."""
    return ", ".join(f"{name} {in_words(value)}" for name, value in settings.items())


def table(tuner: Tuner, trials: list[TrialRecord]) -> list[str]:
    """Returns the best trials as a table, and the first one below them if it is not among them."""
    order = ranked(trials)
    shown = order[:SHOWN] + [trial for trial in order[SHOWN:] if trial.number == 0]
    if not shown:
        return []
    names = list(tuner.spec.space)
    rows = [["trial", "return", "state", *names]]
    for trial in shown:
        mark = " (default)" if trial.number == 0 and not tuner.spec.moved() else ""
        values = [in_words(trial.settings[name]) for name in names]
        rows.append([f"{trial.number}{mark}", number(trial.value), trial.state, *values])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return [f"  {'  '.join(row).rstrip()}" for row in padded]


def confirmed_words(one: Mapping[str, Any]) -> str:
    """Writes what fresh seeds reached: '-152.3 ± 20.1 (5 seeds)'."""
    spread = "" if one["deviation"] is None else f" ± {number(one['deviation'])}"
    return f"{number(one['mean'])}{spread} ({counted(len(one['values']), 'seed')})"


def verdict(confirmed: list[dict[str, Any]]) -> list[str]:
    """Returns a sentence each on whether fresh seeds show the best settings, the first, to be better than others."""
    best, *others = confirmed
    return [compared(best, other) for other in others if best["mean"] is not None and other["mean"] is not None]


def compared(best: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Writes how much better some settings are than others, and how sure that is."""
    name = "the default" if other["name"] == DEFAULT else other["name"]
    gain = best["mean"] - other["mean"]
    if gain <= 0:
        return f"They do not confirm {best['name']}: on average {name} is better by {number(-gain)}."
    if best["deviation"] is None or other["deviation"] is None:
        return f"{best['name']} is better than {name} by {number(gain)}, which one seed cannot confirm."
    error = math.sqrt(sum(one["deviation"] ** 2 / len(one["values"]) for one in (best, other)))
    sure = "" if gain > 2 * error else ": too little to be sure of"
    return f"{best['name']} is better than {name} by {number(gain)} ± {number(error)} (standard error){sure}."


def report_of(tuner: Tuner, confirmation: Confirmation | None) -> dict[str, Any]:
    """Returns all that is known of a search as plain data."""
    trials = tuner.search.trials()
    best = best_of(trials)
    rows = [
        {
            "trial": trial.number,
            "state": trial.state,
            "value": trial.value,
            "step": max(trial.reports, default=0),
            "settings": trial.settings,
            "problem": trial.problem or None,
            "runs": [str(tuner.path_of(run)) for run in tuner.runs_of(trial)],
        }
        for trial in trials
    ]
    return {
        "tune": str(tuner.path),
        "env": tuner.spec.env,
        "steps": tuner.spec.settings["steps"],
        "best": None if best is None else best.number,
        "default": None if tuner.spec.moved() else 0,
        "importance": tuner.search.importance(),
        "confirm_seeds": [] if confirmation is None else list(confirmation.seeds),
        "confirmed": [] if confirmation is None else [data_of(one) for one in confirmation.results()],
        "trials": rows,
    }


def data_of(one: Confirmed) -> dict[str, Any]:
    """Returns what fresh seeds reached as plain data."""
    return {**one._asdict(), "mean": one.mean, "deviation": one.deviation}
