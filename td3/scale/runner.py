"""A run on a node: trained by a process of its own in a temporary folder, and read from there piece by piece."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from td3.scale.versions import Setup, setup
from td3.storage.scratch import News, Scratch
from td3.studies.processes import ProcessJob

FOLDER = "TD3_LOCAL_CLUSTER"  # the environment variable that names the folder of a cluster that we started


class Report(NamedTuple):
    """How a run is doing: what is new, and how it ended if it has."""

    news: News
    code: int | None  # the exit code of its process
    problem: str


class Runner:
    """Trains one run. All calls are short, and none depends on an earlier one having been answered."""

    def __init__(self) -> None:
        parent = os.environ.get(FOLDER)
        self._scratch = Scratch(Path(parent) if parent else None)
        self._job: ProcessJob | None = None

    def hello(self) -> Setup:
        """Returns the versions of this node."""
        return setup()

    def place(self) -> str:
        """Returns the path of the run's folder here."""
        return str(self._scratch.run)

    def put(self, place: str, data: bytes) -> None:
        """Takes a piece of a file from which the run continues."""
        self._scratch.put(place, data)

    def start(self, words: list[str], sources: Mapping[str, bytes], again: bool) -> None:
        """Starts `td3` with these words and the user's own modules; `again` if the run is begun."""
        self._scratch.write_code(sources)
        if again:
            self._scratch.begin_again()
        # Ray sets a number of threads for its own processes; the words say how many this one has.
        env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
        words = [str(self._scratch.path), *words, "--run", str(self._scratch.run)]
        self._job = ProcessJob(words, "td3.scale", env, self._scratch.code)

    def report(self, sent: Collection[str], seconds: float) -> Report:
        """Waits until the process has ended, but not longer than so many seconds; returns what is new."""
        assert self._job is not None
        code = self._job.wait(seconds)  # first: once it has ended, nothing comes after what is found now
        if code is not None:
            self._job.end()  # so that all it said is read
        news = self._scratch.news(sent)
        return Report(news, code, self._job.problem() if code else "")

    def read(self, place: str, start: int, size: int) -> bytes:
        """Reads a piece of a file of the run."""
        return self._scratch.read(place, start, size)

    def send(self, number: int) -> None:
        """Sends the process a signal."""
        if self._job is not None:
            self._job.send(number)

    def leave(self) -> None:
        """Ends the process, if it still runs, and removes the folder."""
        if self._job is not None:
            self._job.kill()
        self._scratch.remove()
