"""The recorder: observes an update now and then, and appends a line that says all about it."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from td3.config import Config
from td3.learner import Learner
from td3.learner.making import one_thread
from td3.recording.allowance import Allowance, Clock
from td3.recording.update import Before, record_update
from td3.storage.updates import UpdatesFile
from td3.types import Batch, Sample, Update

GROUP = 4  # updates at most, however long the actor waits
MOST = 1_000  # groups in a run of any length: the file stays small


class Recorder:
    """Observes an update now and then and writes down what happened; the update itself is not touched.

    Updates are recorded in groups, one after the other until one has moved the actor, too: both kinds can be watched.
    """

    def __init__(self, path: Path, config: Config, step: int, clock: Clock = time.perf_counter) -> None:
        """Opens the file; what it has of steps after `step` did not happen, as the run continues from there."""
        self.config = config  # which may change
        self._every = max(config.log_every, config.steps // MOST)
        self.allowance = Allowance(clock)  # the updates themselves count, too
        self.engine = ""  # that performs the updates, as it is written
        self._group: float | None = None  # the seconds of the group under way
        self._count_in_group = 0
        self.problem: str | None = None  # why an update could not be recorded
        self._last: int | None = None  # the step of the last group
        self._step, self._started = step, 0.0  # of the update under way
        self._before: tuple[Sample, Batch, Before] | None = None
        self._file = UpdatesFile(path, step)

    def due(self, step: int, updates: int) -> bool:
        """Returns whether the update after so many is to be recorded."""
        if not self._file.is_open or self._group is not None:
            return self._file.is_open
        delay = self.config.policy_delay
        return (
            (self._last is None or step - self._last >= self._every)
            and delay - updates % delay == min(delay, GROUP)  # it ends where the actor moves, too
            and self.allowance.due()
        )

    def observing(self, step: int, updates: int) -> "Recorder | None":
        """Returns itself, as the observer of the update after so many, if that one is to be recorded."""
        if not self.due(step, updates):
            return None
        self._step, self._started = step, self.allowance.clock()
        return self

    def before(self, learner: Learner, sample: Sample, batch: Batch) -> None:
        """Copies what will be gone after the update."""
        self._before = None
        with self._unharmed(), one_thread():
            self._before = sample, batch, Before.of(learner, batch)

    def after(self, learner: Learner, update: Update) -> None:
        """Writes a line."""
        if self._before is not None:
            with self._unharmed(), one_thread():
                row = {
                    "update": learner.updates,
                    "step": self._step,
                    "delayed": update.delayed,
                    "engine": self.engine,
                    **record_update(learner, *self._before, update),
                }
                self._file.append(msgspec.json.encode(row) + b"\n")
        self._before = None
        self._count_in_group += 1
        ended = update.delayed or self._count_in_group >= GROUP
        self._count(self.allowance.clock() - self._started, ended)

    def close(self) -> None:
        """Closes the file; nothing is recorded from here on."""
        self._file.close()

    def _count(self, seconds: float, ended: bool) -> None:
        self._group = (self._group or 0.0) + seconds
        if ended:
            self.allowance.spent(self._group)
            self._group, self._last, self._count_in_group = None, self._step, 0

    @contextlib.contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Keeps from the run whatever goes wrong here: no room for copies, or networks of another kind."""
        try:
            yield
        except Exception as problem:
            self.problem = f"An update could not be recorded: {type(problem).__name__}: {problem}."
