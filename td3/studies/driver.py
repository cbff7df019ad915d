"""Trains the runs of a study, each in a process of its own, and a few of them at once.

A process is an ordinary `td3 train --run … --resume` with its standard input open: it saves and ends when that is
closed, which the system does when this process dies in whatever way.
"""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from td3.storage.study import is_locked
from td3.studies.spec import PlannedRun
from td3.studies.standing import Standing, newest_step
from td3.studies.study import Study

TICK = 0.05  # seconds between two looks at the processes
LOOK = 1.0  # seconds between two looks at the records of runs
LAST_LINES, LONGEST_LINE = 50, 10_000  # of what a process says
FINISHED, FAILED, STOPPED = "finished", "failed", "stopped"


class Began(NamedTuple):
    """A run was begun, or is continued from a step."""

    run: PlannedRun
    step: int


class Ended(NamedTuple):
    """The process of a run ended."""

    run: PlannedRun
    state: str  # finished, failed or stopped
    problem: str  # why it failed, one sentence
    standing: Standing
    seconds: float


class Waiting(NamedTuple):
    """A run that is left is written by another process."""

    run: PlannedRun


class Looked(NamedTuple):
    """How far the study is."""

    share: float  # of the steps that were left when it was started
    left: float | None  # seconds, as far as they can be known
    steps: dict[str, int]  # of the runs that train, by their names


StudyEvent = Began | Ended | Waiting | Looked


class Driver:
    """Keeps `jobs` runs of a study training until none is left."""

    def __init__(self, study: Study, jobs: int, words: Callable[[PlannedRun], list[str]]) -> None:
        """`words` are those of the command line that begins a run, and continues one that is begun."""
        self.study, self.jobs, self.words = study, jobs, words
        self.signals: list[int] = []  # that asked to stop; a handler may append to it at any moment
        self._passed_on = 0
        self._running: dict[str, _Process] = {}
        self._left: deque[PlannedRun] = deque()
        self._trained, self._all = 0, 1  # steps
        self._began = self._looked = 0.0

    def events(self) -> Iterator[StudyEvent]:
        """Begins and continues what is left; yields what happens. Whoever leaves early stops the processes."""
        self._left.extend(self.study.left())
        self._all = max(1, sum(map(self._steps_of, self._left)))
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
                for process in [one for one in self._running.values() if one.code is not None]:
                    yield self._end(process)
                if time.monotonic() - self._looked >= LOOK:
                    yield self._look()
                time.sleep(TICK)
        finally:
            for process in self._running.values():
                process.end()

    def _steps_of(self, run: PlannedRun) -> int:
        return max(0, run.config.steps - self.study.standing(run).step)

    def _next(self) -> PlannedRun | None:
        """Takes the first run that no other process writes."""
        for run in self._left:
            if not is_locked(self.study.path_of(run)):
                self._left.remove(run)
                return run
        return None

    def _begin(self, run: PlannedRun) -> Began:
        standing = self.study.standing(run)
        self._running[run.name] = _Process(run, self.words(run), standing.step)
        return Began(run, standing.step)

    def _end(self, process: "_Process") -> Ended:
        run = process.run
        del self._running[run.name]
        process.end()
        standing = self.study.standing(run)
        self._trained += max(0, standing.step - process.first)
        state = FINISHED if process.code == 0 else STOPPED if self.signals else FAILED
        if state == FAILED:
            self._all = max(1, self._all - max(0, run.config.steps - standing.step))
        problem = process.problem() if state == FAILED else ""
        return Ended(run, state, problem, standing, time.monotonic() - process.began)

    def _look(self) -> Looked:
        steps = {name: newest_step(self.study.path_of(one.run)) for name, one in self._running.items()}
        trained = self._trained + sum(max(0, steps[name] - one.first) for name, one in self._running.items())
        self._looked = now = time.monotonic()
        left = (self._all - trained) * (now - self._began) / trained if trained > 0 else None
        return Looked(min(1.0, trained / self._all), left and max(0.0, left), steps)

    def _pass_signals_on(self) -> None:
        """Stops the processes: the first signal lets them save, the second lets them leave, the third ends them."""
        if len(self.signals) > self._passed_on:
            self._passed_on = len(self.signals)
            for process in self._running.values():
                process.send(signal.SIGTERM if self._passed_on < 3 else signal.SIGKILL)


class _Process:
    """The process of one run, and the last lines that it said."""

    def __init__(self, run: PlannedRun, words: list[str], first: int) -> None:
        self.run, self.first, self.began = run, first, time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, *_without_files_here(), "-m", "td3.studies", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,  # a Ctrl-C is for us alone
        )
        self._asked = False
        self._lines: deque[bytes] = deque(maxlen=LAST_LINES)
        assert self._process.stderr
        self._reader = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(LONGEST_LINE):
                self._lines.append(line)

    @property
    def code(self) -> int | None:
        """Returns its exit code, once it has ended."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Sends it a signal, if it still runs."""
        self._asked = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def end(self) -> None:
        """Waits until it has saved and ended; asks for that unless it was asked before, for twice means at once."""
        assert self._process.stdin
        if not self._asked:
            self._process.stdin.close()
        self._process.wait()
        self._process.stdin.close()
        self._reader.join(timeout=1.0)  # what it started may live longer and hold the stream

    def problem(self) -> str:
        """Returns why it failed: its own sentence, else the last that it said, else how it ended."""
        code = self.code or 0
        if code < 0:
            return f"The process was ended by signal {-code}, {signal.strsignal(-code)}."
        lines = [line.decode(errors="replace").strip() for line in self._lines]
        own = [line.removeprefix("td3: ") for line in lines if line.startswith("td3: ")]
        said = [*filter(None, lines)][-1:]
        return [*said, *own][-1] if said else f"The process ended with code {code}."


def _without_files_here() -> list[str]:
    """Keeps a file of the user's from standing in for a library, as long as td3 itself is not in this folder."""
    return [] if Path(__file__).parents[2] == Path.cwd() else ["-P"]
