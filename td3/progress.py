"""How far a run is: what it still owes, what it has reached, and how long it has trained."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from td3.interfaces import EndedEpisode
from td3.learner.means import Means
from td3.wording import brief


def text_in(value: Any) -> str:
    """Returns a value that is text; any other is a ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{brief(value)} is no text")
    return value


class Pending(NamedTuple):
    """A step that is stored but not finished: its updates, its rows of metrics, or its evaluation are owed."""

    before: int  # the step before it
    ended: list[EndedEpisode]  # the episodes that ended with it
    reported: bool = False  # whether its rows of metrics are written: what is left is the evaluation
    failures: Sequence[tuple[int, str]] = ()  # as in `Collected`

    @classmethod
    def of(cls, data: Any) -> "Pending | None":
        """Reads plain data, as a checkpoint has it."""
        if data is None:
            return None
        before, ended, reported, failures = (*data, ())[:4]  # older checkpoints have no failures
        return cls(
            int(before),
            [plain_episode(*episode) for episode in ended],
            bool(reported),
            [(int(number), str(note)) for number, note in failures],
        )


def plain_episode(env: Any, total: Any, length: Any, terminated: Any = None) -> EndedEpisode:
    """Returns an ended episode as numbers; collectors of older runs do not say how it ended."""
    return EndedEpisode(int(env), float(total), int(length), None if terminated is None else bool(terminated))


class Stop(NamedTuple):
    """Why a run stopped by itself."""

    setting: str  # that asked for it
    reason: str  # one sentence

    @classmethod
    def of(cls, data: Any) -> "Stop | None":
        """Reads plain data, as a checkpoint has it."""
        if data is None:
            return None
        setting, reason = data
        return cls(text_in(setting), text_in(reason))


class Progress:
    """The counters of a run; every checkpoint holds them."""

    def __init__(self, means: Sequence[str], delayed: Sequence[str]) -> None:
        self.due = 0.0  # updates the schedule has asked for so far
        self.pending: Pending | None = None
        self.measured = 0  # rows of the memory that its health was measured on
        self.unfinished = ""  # what is half done at this moment: a checkpoint made then does not resume exactly
        self.best: float | None = None  # mean return of the best evaluation
        self.last_evaluation: tuple[int, float] | None = None  # step and mean return
        self.without_best = 0  # evaluations since the best one
        self.sick = ""  # why the run cannot recover, one sentence: set by a diagnosis, read by `why_stop`
        self.stopped: Stop | None = None  # while it is, the run does not train
        self.means = Means(means, delayed)  # what the next row of metrics is made of

    def capture(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "due": self.due,
            "best": self.best,
            "judged": self.last_evaluation,
            "without_best": self.without_best,
            "sick": self.sick,
            "stopped": self.stopped,
            "pending": self.pending,
            "torn": self.unfinished,
            "measured": self.measured,
            "means": self.means.capture(),
        }

    def restore(self, data: dict[str, Any]) -> None:
        """Becomes what was captured."""
        self.due = float(data["due"])
        self.best = None if data["best"] is None else float(data["best"])
        last = data["judged"]
        self.last_evaluation = (int(last[0]), float(last[1])) if last else None
        self.without_best = int(data.get("without_best", 0))
        self.sick = text_in(data.get("sick", ""))
        self.stopped = Stop.of(data.get("stopped"))
        self.means.restore(data["means"])
        self.measured = int(data.get("measured", 0))
        self.pending = Pending.of(data.get("pending"))

    def check(self, step: int, updates: int, updates_per_step: float) -> None:
        """Raises ValueError for counters that no run has: a forged one could owe updates for ever."""
        owed = self.due - updates
        most = step * updates_per_step if self.pending else 1
        if not owed < most + 1:
            raise ValueError(f"{owed:g} updates are owed, more than any run owes at step {step:,}")

    def best_at(self, step: int) -> bool:
        """Whether the best evaluation so far is the one at this step."""
        return self.last_evaluation is not None and self.last_evaluation == (step, self.best)

    def evaluated(self, step: int, mean: float) -> bool:
        """Takes note of an evaluation; returns whether it is the best so far."""
        improved = self.best is None or mean > self.best
        self.best = mean if improved else self.best
        self.without_best = 0 if improved else self.without_best + 1
        self.last_evaluation = (step, mean)
        return improved

    def train_on(self) -> None:
        """Forgets that the run stopped by itself, and begins to count anew towards the next stop."""
        if self.stopped:
            self.stopped, self.without_best, self.sick = None, 0, ""


class Clock:
    """Measures how long a run has trained, over all its sessions, and how fast."""

    def __init__(self) -> None:
        self._before = 0.0  # seconds of earlier sessions
        self._began: float | None = None  # while it trains: since when
        self._row = (time.perf_counter(), 0, 0)  # the last row of metrics: time, step, updates

    @property
    def seconds(self) -> float:
        """Returns the seconds of training so far."""
        return self._before + (time.perf_counter() - self._began if self._began is not None else 0.0)

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        """Sets the seconds of training so far."""
        self._before = seconds

    def start(self, step: int, updates: int) -> None:
        """Counts from now on."""
        self._began = time.perf_counter()
        self._row = (self._began, step, updates)

    def stop(self) -> None:
        """Stops the clock."""
        self._before, self._began = self.seconds, None

    def speeds(self, step: int, updates: int) -> dict[str, float]:
        """Returns steps and updates per second since the last row."""
        now = time.perf_counter()
        then, old_step, old_updates = self._row
        self._row = (now, step, updates)
        elapsed = max(now - then, 1e-9)
        return {
            "time/steps_per_second": (step - old_step) / elapsed,
            "time/updates_per_second": (updates - old_updates) / elapsed,
        }

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves evaluating and filming out of the speeds."""
        began = time.perf_counter()
        yield
        then, step, updates = self._row
        self._row = (then + time.perf_counter() - began, step, updates)
