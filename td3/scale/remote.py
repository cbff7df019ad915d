"""A job of a study that trains on a node: placed, taken home piece by piece, and placed again if the node is lost."""

import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from td3.config import Config
from td3.errors import RunError, TD3Error
from td3.resuming import check_just_begun
from td3.scale.runner import Report
from td3.storage.home import HomeFolder, NotSaved

WAIT = 1.0  # seconds that a node waits for a run's end before it reports
ATTEMPTS = 5  # placements of a run without a new checkpoint in between
LONGEST = 60.0  # seconds between two of them, at most


class NodeLost(RunError):
    """A node that died, or from which no word came in time."""


class Node(Protocol):
    """A `Runner` on another machine. Each call may raise `NodeLost`."""

    def place(self) -> str: ...
    def put(self, place: str, data: bytes) -> None: ...
    def start(self, words: list[str], sources: Mapping[str, bytes], again: bool) -> None: ...
    def report(self, sent: Collection[str], seconds: float) -> Report: ...
    def read(self, place: str, start: int, size: int) -> bytes: ...
    def send(self, number: int) -> None: ...
    def leave(self) -> None: ...


class RemoteJob:
    """One run, on whatever node it is placed; its folder is here, and whole at every instant."""

    def __init__(
        self,
        home: Path,
        words: list[str],
        config: Config,
        place: Callable[["RemoteJob"], Node],
        sources: Mapping[str, bytes] | None = None,
    ) -> None:
        """Begins the run in the folder `home` with the words of `td3 train … --resume`, or continues it.

        `place` finds a node for it; it asks the job whether it is still wanted.
        """
        self._words, self._config, self._place, self._sources = words, config, place, sources or {}
        self._home = HomeFolder(home.absolute(), config.keep_last, config.keep_best)
        self._code: int | None = None
        self._problem = ""
        self._signals: deque[int] = deque()  # to be passed on
        self._asked = 0  # the first signal that asked it to end
        self._abandoned = False
        self._news: deque[str] = deque()
        self._said = ""
        self._changed = threading.Event()  # a signal came
        self._thread = threading.Thread(target=self._run, name=f"td3 {home.name}", daemon=True)
        self._thread.start()

    @property
    def code(self) -> int | None:
        """Returns its exit code, as `td3 train` has it, once it has ended."""
        return None if self._thread.is_alive() else self._code

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._abandoned

    @property
    def asked_to_end(self) -> bool:
        """Whether it was asked to save and end."""
        return bool(self._asked)

    def send(self, number: int) -> None:
        """Passes a signal on to the node; SIGKILL ends it without waiting for anything more to come home."""
        self._asked = self._asked or number
        self._abandoned = self._abandoned or number == signal.SIGKILL
        self._signals.append(number)
        self._changed.set()

    def end(self) -> None:
        """Waits until it has saved and ended; asks for that unless it was asked before."""
        if not self._asked:
            self.send(signal.SIGTERM)
        self._thread.join()

    def problem(self) -> str:
        """Returns why it failed, in one sentence."""
        return self._problem

    def news(self) -> list[str]:
        """Returns what happened to it since the last time, in words that follow on its name."""
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self._news.popleft())
        return found

    def say(self, text: str) -> None:
        """Adds to the news what is not the same as the last time."""
        if text != self._said:
            self._said = text
            self._news.append(text)

    def _run(self) -> None:
        try:
            self._code = self._attempts()
        except TD3Error as problem:
            self._problem, self._code = str(problem), 1
        except BaseException as problem:  # a mistake of ours: the other runs continue
            self._problem, self._code = f"{type(problem).__name__}: {problem}", 1
        finally:
            self._home.close()

    def _attempts(self) -> int:
        failures = 0
        while True:
            before = self._home.step
            try:
                return self._attempt()
            except NodeLost as problem:
                self._problem = str(problem)
                if self._asked:
                    return 128 + self._asked
                failures = 1 if self._home.step > before else failures + 1
                if failures >= ATTEMPTS:
                    self._problem = f"{problem} It was placed {failures} times without getting further."
                    return 1
                self.say(f"is placed again from step {self._home.step:,}: {problem}")
                self._changed.wait(min(LONGEST, 2.0 ** (failures - 1)))

    def _attempt(self) -> int:
        parts = self._home.begin(lambda folder: check_just_begun(folder, self._config))
        node = self._place(self)
        try:
            for part in parts:
                for piece in self._home.read(part):
                    node.put(part.place, piece)
            node.start(self._words, self._sources, bool(parts))
            return self._follow(node)
        finally:
            with contextlib.suppress(NodeLost):
                node.leave()

    def _follow(self, node: Node) -> int:
        """Takes in what a node reports until the run has ended there and all of it is home."""
        there, sent = node.place(), list[str]()
        while True:
            while self._signals:
                node.send(self._signals.popleft())
            self._changed.clear()
            if self._abandoned:
                return 128 + signal.SIGKILL
            report = node.report(sent, WAIT)
            sent = []
            try:
                sent = self._home.take(report.news, node.read)
            except NotSaved as problem:
                self.say(f"waits with what is new, for it cannot be saved: {problem}")
                if not self._asked:
                    self._changed.wait(WAIT)
                    continue
                self._problem = str(problem)  # it was asked to end, and the disk refuses: the checkpoint before stays
                return 1
            except NodeLost:
                raise
            except RunError as problem:
                raise NodeLost(str(problem)) from problem
            if report.code is None:
                continue
            if report.code < 0 and not self._asked:  # a process that was killed there may live elsewhere
                raise NodeLost(report.problem)
            self._problem = report.problem.replace(there, str(self._home.path))
            return report.code
