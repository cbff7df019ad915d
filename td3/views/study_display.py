"""Shows a study that trains: a panel with all that train in a terminal, and a line for each run elsewhere."""

import time
from typing import TYPE_CHECKING, Any, Self

from td3.studies import Began, Driver, Ended, PlannedRun, Reported, Study, Waiting
from td3.studies.driver import FAILED, FINISHED, Looked, StudyEvent
from td3.views.speaking import console, rich_text, say
from td3.views.terminal import clock, number
from td3.views.times import duration
from td3.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType


class PlainStudy:
    """A line for each run that begins or ends, and one for every tenth of the way."""

    def __init__(self, study: Study, driver: Driver, quiet: bool) -> None:
        self.study, self.driver, self.quiet = study, driver, quiet
        self.failed: dict[str, str] = {}  # the problem of each run that failed, by its name
        self.running: dict[str, PlannedRun] = {}
        self.looked = Looked(0.0, None, {})
        self.began, self.all = time.monotonic(), len(study.runs)
        self.left = len(study.left())
        self._tenth = 0

    def __enter__(self) -> Self:
        done = f", {self.all - self.left} of them done" if self.left < self.all else ""
        jobs = f"; {self.driver.jobs} at once" if self.driver.jobs > 1 else ""
        if not self.quiet:
            self.lines(f"{counted(self.all, 'run')} in {self.study.path}{done}{jobs}.")
        return self

    def __exit__(self, *problem: Any) -> None: ...

    def lines(self, *lines: str) -> None:
        """Writes lines."""
        say(*lines)

    def show(self, event: StudyEvent) -> None:
        """Takes in one event, and writes a line if it is worth one."""
        if isinstance(event, Looked):
            self.looked = event
            tenth = min(9, int(10 * event.share))
            if tenth > self._tenth and self.running:
                self._tenth = tenth
                self.progress()
            return
        if isinstance(event, Began):
            self.running[event.run.name] = event.run
            text = f"continues from step {event.step:,}" if event.step else "begins"
        elif isinstance(event, Waiting):
            text = "is written by another process: waiting for it"
        elif isinstance(event, Reported):
            text = event.text
        else:
            del self.running[event.run.name]
            text = self._ended(event)
        if not self.quiet or event.run.name in self.failed or isinstance(event, Reported):
            self.lines(f"{event.run.name} {text}")

    def progress(self) -> None:
        """Writes how far the whole is."""
        if not self.quiet:
            self.lines(f"{10 * self._tenth} % of the steps{self.time_left()}")

    def time_left(self) -> str:
        """Returns the time left for the whole, if it can be known."""
        return "" if self.looked.left is None else f", about {duration(self.looked.left)} left"

    def _ended(self, event: Ended) -> str:
        step, last, best = event.standing.step, event.standing.last, event.standing.best
        if event.state == FAILED:
            self.failed[event.run.name] = event.problem
            return f"failed at step {step:,}: {event.problem}"
        if event.state != FINISHED:
            return f"is stopped at step {step:,}"
        self.left -= 1
        score = "" if last is None else f", return {number(last)} (best {number(best)})"
        return f"is done: {counted(step, 'step')}{score}, in {clock(event.seconds)}; {counted(self.left, 'run')} left"

    def ending(self, report: dict[str, Any]) -> list[str]:
        """Returns the last lines: how many runs are done, and how long it took."""
        failed = f", {counted(len(self.failed), 'run')} failed" if self.failed else ""
        took = f" in {clock(time.monotonic() - self.began)}" if self.all else ""
        head = f"{report['finished']} of {counted(self.all, 'run')} done{failed}{took}."
        return [head, *(f"  {name}: {problem}" for name, problem in self.failed.items())]


class LiveStudy(PlainStudy):
    """The same lines, and below them a bar, the time left, and the runs that train."""

    def __init__(self, study: Study, driver: Driver) -> None:
        from rich.live import Live

        super().__init__(study, driver, quiet=False)
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

    def progress(self) -> None:
        """Writes nothing: the panel shows it."""

    def _panel(self) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        bar = Table.grid(expand=True)  # a bar alone would not end its line
        bar.add_row(ProgressBar(total=1.0, completed=self.looked.share))
        counts = f"{self.all - self.left} of {counted(self.all, 'run')} done, {len(self.failed)} failed"
        elapsed = clock(time.monotonic() - self.began)
        table = Table.grid(padding=(0, 3))
        for name, run in list(self.running.items()):
            step = self.looked.steps.get(name, 0)
            table.add_row(rich_text(name), rich_text(f"{step:,} of {run.config.steps:,}", "dim"))
        head = rich_text(f"{counts}  ·  {elapsed}{self.time_left()}")
        title = rich_text(str(self.study.path))
        return Panel(Group(bar, head, table), title=title, title_align="left", border_style="cyan")


def summary(study: Study, failed: dict[str, str]) -> dict[str, Any]:
    """Returns how far each run is, as plain data."""
    rows = [row_of(study, run, failed.get(run.name)) for run in study.runs]
    finished = sum(row["state"] == "finished" for row in rows)
    return {"study": str(study.path), "finished": finished, "failed": len(failed), "runs": rows}


def row_of(study: Study, run: PlannedRun, problem: str | None) -> dict[str, Any]:
    """Returns one run as plain data."""
    standing = study.standing(run)
    done = standing.done(run.config.steps)
    state = "failed" if problem is not None else "finished" if done else "stopped" if standing.begun else "not begun"
    return {
        "run": str(study.path_of(run)),
        "env": str(run.config.env),
        "setting": run.setting,
        "seed": run.config.seed,
        "state": state,
        "step": standing.step,
        "goal": max(run.config.steps, standing.goal or 0),
        "last": standing.last,
        "best": standing.best,
        "problem": problem,
    }
