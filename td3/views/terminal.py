"""Two ways to show a run's events: a live panel in a terminal, and plain lines elsewhere."""

import itertools
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from td3.config import Config, env_name
from td3.events import EpisodeEnded, Evaluated, Event, Found, Measured, Noted, Resumed, SaveFailed, Started
from td3.views.findings import lines_about
from td3.views.speaking import console, rich_text, say
from td3.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType


class Display(Protocol):
    """Shows the events of a run."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, event: Event) -> None:
        """Shows one event."""


class PlainView:
    """A few lines in all: how it began, each evaluation, or every tenth of the way where there is none."""

    def __init__(self, folder: Path, quiet: bool) -> None:
        self.config, self.folder, self.quiet = Config(), folder, quiet
        self._tenth = 0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, event: Event) -> None:
        """Writes a line if the event is worth one."""
        if self.quiet:
            return
        if isinstance(event, Started):
            self.config = event.config
            say(*beginning(event, self.folder))
        elif isinstance(event, Resumed | SaveFailed | Noted):
            say(*noteworthy(event))
        elif isinstance(event, Found):
            say(*found(event, self.folder, self.config))
        elif isinstance(event, Evaluated):
            kept = f", checkpoint {event.checkpoint.mean:.1f}" if event.checkpoint else ""
            self._line(event.step, f"return {event.evaluation.mean:9.1f} ± {event.evaluation.std:.1f}{kept}")
        elif isinstance(event, Measured) and not self.config.eval_every:
            tenth = 10 * event.step // self.config.steps
            if tenth > self._tenth:
                self._tenth = tenth
                self._line(event.step, f"{event.metrics['time/steps_per_second']:,.0f} steps/s")

    def _line(self, step: int, text: str) -> None:
        width = len(f"{self.config.steps:,}")
        elapsed = clock(time.monotonic() - self._began)
        say(f"step {step:>{width},}  {text}  ({elapsed})")


class LiveView:
    """Progress, time left, returns, losses, values and speed, redrawn four times a second."""

    def __init__(self, folder: Path) -> None:
        from rich.live import Live

        self.config, self.folder = Config(), folder
        self.step = 0
        self.metrics: dict[str, float] = {}
        self.returns: deque[float] = deque(maxlen=20)
        self.episodes = 0
        self.evaluations: list[float] = []
        self._began = time.monotonic()
        self._live = Live(console=console(), get_renderable=self._panel, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, problem, trace)

    def show(self, event: Event) -> None:
        """Takes in one event; the panel shows it at its next refresh."""
        self.step = event.step
        if isinstance(event, Started):
            self.config = event.config
            self._lines(beginning(event, self.folder))
        elif isinstance(event, Resumed | SaveFailed | Noted):
            self._lines(noteworthy(event))
        elif isinstance(event, Found):
            self._lines(found(event, self.folder, self.config))
        elif isinstance(event, EpisodeEnded):
            self.episodes += 1
            self.returns.append(event.episode_return)
        elif isinstance(event, Measured):
            self.metrics = event.metrics
        elif isinstance(event, Evaluated):
            self.evaluations.append(event.evaluation.mean)

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self._live.console.print(rich_text(line), soft_wrap=True)

    def _panel(self) -> "RenderableType":
        from rich.console import Group
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        goal = self.config.steps
        table = Table.grid(padding=(0, 3), expand=False)
        for row in self._rows():
            table.add_row(*(rich_text(name, "dim").append(f" {value}", "not dim") for name, value in row))
        bar = Table.grid(expand=True)  # a bar alone would not end its line
        bar.add_row(ProgressBar(total=goal, completed=min(self.step, goal)))
        parts: list[Any] = [bar, table]
        if len(self.evaluations) > 1:
            curve = sparkline(self.evaluations, 60)
            parts.append(rich_text("evaluations", "dim").append(f" {curve}", "not dim"))
        title = rich_text(f"{env_name(self.config.env)} · seed {self.config.seed} · {self._phase()}")
        return Panel(Group(*parts), title=title, title_align="left", border_style="cyan")

    def _phase(self) -> str:
        return "warming up" if self.step < self.config.warmup_steps else "learning"

    def _rows(self) -> list[list[tuple[str, str]]]:
        metrics = self.metrics
        speed = metrics.get("time/steps_per_second", 0.0)
        elapsed = time.monotonic() - self._began
        learning = self._phase() == "learning" and speed > 0 and "train/critic_loss" in metrics
        left = clock((self.config.steps - self.step) / speed) if learning else "…"
        mean = sum(self.returns) / len(self.returns) if self.returns else None
        last = self.evaluations[-1] if self.evaluations else None
        best = max(self.evaluations) if self.evaluations else None

        def of(name: str) -> str:
            return number(metrics.get(name))

        return [
            [("step", f"{self.step:,} of {self.config.steps:,}"), ("time", clock(elapsed)), ("left", left)],
            [
                ("return", f"{number(mean)} (last {len(self.returns)} of {counted(self.episodes, 'episode')})"),
                ("evaluated", number(last)),
                ("best", number(best)),
            ],
            [
                ("critic loss", of("train/critic_loss")),
                ("actor loss", of("train/actor_loss")),
                ("speed", f"{speed:,.0f} steps/s"),
            ],
            [
                ("Q1", of("train/q1_mean")),
                ("Q2", of("train/q2_mean")),
                ("target", of("train/target_mean")),
            ],
        ]


def noteworthy(event: Resumed | SaveFailed | Noted) -> list[str]:
    """Returns the lines for an event that the user should notice."""
    if isinstance(event, Noted):
        return [f"Note: {event.note}"]
    if isinstance(event, SaveFailed):
        return [f"Not saved at step {event.step:,}, training continues: {event.reason}"]
    return [f"Continuing from step {event.step:,}.", *(f"Note: {note}" for note in event.notes)]


def found(event: Found, folder: Path, config: Config) -> list[str]:
    """Returns the lines for a finding."""
    seen, *more = lines_about(event.finding, folder, config)
    return [f"Found at step {event.step:,}: {seen}", *(f"  {line}" for line in more)]


def beginning(started: Started, folder: Path) -> list[str]:
    """What is about to happen, in two lines, and what is odd about it."""
    config, summary = started.config, started.summary
    several = f"{summary['num_envs']} × " if summary["num_envs"] > 1 else ""
    where = f" in {counted(summary['workers'], 'process')}" if summary["workers"] else ""
    return [
        f"Training {several}{summary['env']}{where} for {counted(config.steps, 'step')}, seed {config.seed}, "
        f"preset {config.preset}: {summary['sees']}, {counted(summary['action_size'], 'action')} in "
        f"{summary['action_bounds']}.",
        f"Memory {summary['memory']} ({summary['bytes_per_transition']:,} bytes each); engine {summary['engine']} on "
        f"{summary['device']}, {counted(summary['threads'], 'thread')}; run in {folder}",
        *(f"Note: {note}" for note in started.notes),
    ]


def number(value: float | None) -> str:
    """Formats a number, or a dash if there is none."""
    if value is None:
        return "–"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3f}"


def sparkline(values: list[float], width: int) -> str:
    """Eight heights of block; many values are averaged into `width` columns."""
    if len(values) > width:
        edges = [round(place * len(values) / width) for place in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]
    low, high = min(values), max(values)
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * (value - low) / ((high - low) or 1)))] for value in values)


def clock(seconds: float) -> str:
    """Writes a time as people do: 1 h 05 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
