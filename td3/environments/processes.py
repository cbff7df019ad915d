"""Environments in worker processes: the parent's side.

Each worker is a fresh interpreter that runs `td3.environments.worker` and plays its share with
`SerialEnvs`, so that processes give the same rows, bit for bit, as no processes. The parent never waits
without a deadline and never without watching whether the worker is alive.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle
import numpy as np

from td3.environments.actions import ActionMap
from td3.environments.envs import patience
from td3.environments.faults import STOPPED, describe_exception
from td3.environments.observations import ObservationMap
from td3.environments.wrappers import Wrappers
from td3.errors import ConfigError, EnvironmentFailure, TD3Error
from td3.types import Episode, Float32s, Rows, StepResult

START_TIMEOUT = 120.0  # importing a simulator on a busy machine is slow, and happens once


class ProcessEnvs:
    """Environments in worker processes, each of which steps its share."""

    def __init__(
        self, name: str, make: Callable[[], Any], num_envs: int, workers: int, timeout: float, wrappers: Wrappers
    ) -> None:
        self.name, self.num_envs, self.timeout = name, num_envs, timeout
        shares = np.array_split(np.arange(num_envs), workers)
        self._shares = [slice(int(share[0]), int(share[-1]) + 1) for share in shares]
        self._steps = 0
        self._failed = False
        self._pending = ""  # the call that still has answers to be read
        self._read: dict[_Worker, Any] = {}  # those of them that have been
        self._workers: list[_Worker] = []
        try:
            by_value = pickled(name, make)
            for share in self._shares:
                self._workers.append(_Worker(name, by_value, share.start, share.stop - share.start, wrappers))
            spaces = self._answers("start", max(timeout, START_TIMEOUT))[0]
            self.observation: ObservationMap = wrappers.map_of(spaces[0])
            self.action: ActionMap = ActionMap(spaces[1])
        except BaseException:
            self.close()
            raise

    @property
    def steps(self) -> list[int]:
        """Returns the steps that each environment has played since the run began."""
        return [self._steps] * self.num_envs

    def reset(self, seeds: Sequence[int], steps: Sequence[int] = ()) -> Rows:
        """Resets all environments with these seeds."""
        self._steps = max(steps, default=0)
        self._ask("reset", [(list(seeds[share]), list(steps[share])) for share in self._shares])
        return np.concatenate(self._answers("reset", self.timeout))

    def step(self, actions: Float32s) -> StepResult:
        """Executes one action in each environment, all workers at once."""
        self._steps += 1
        try:
            self._ask("step", [(actions[share],) for share in self._shares])
            results = self._answers("step", self.timeout)
        except BaseException:
            self._steps -= 1  # a step that failed half way does not count
            raise
        return StepResult(*(np.concatenate(column) for column in zip(*results, strict=True)))

    def capture(self) -> list[Episode]:
        """Returns how each episode under way began, and the actions since."""
        self._ask("capture", [()] * len(self._workers))
        return [episode for share in self._answers("capture", self.timeout) for episode in share]

    def restore(
        self, episodes: Sequence[Episode], observations: Rows, seeds: Sequence[int], steps: Sequence[int]
    ) -> tuple[Rows, list[str]]:
        """Replays every episode in its worker, or begins another from its seed."""
        self._steps = max(steps)
        shares = [(episodes[share], observations[share], seeds[share], steps[share]) for share in self._shares]
        self._ask("restore", shares)
        # Playing a whole episode again takes as long as its steps do, and each of them has the usual time.
        longest = max((len(episode.actions) for episode in episodes), default=0)
        answers = self._answers("restore", self.timeout * (2 + longest / 100))
        return np.concatenate([rows for rows, _ in answers]), [why for _, failures in answers for why in failures]

    def _ask(self, call: str, arguments: Sequence[Any]) -> None:
        if self._failed:
            raise EnvironmentFailure(f"The workers of {self.name} have failed already.")
        if self._pending:  # an interrupted call left its answers unread: they are not the answers to this one
            self._answers(self._pending, self.timeout)
        self._pending = call
        for worker, argument in zip(self._workers, arguments, strict=True):
            with contextlib.suppress(OSError):  # a dead worker is reported when its answer is awaited
                worker.connection.send((call, argument))

    def _answers(self, call: str, timeout: float) -> list[Any]:
        """One answer per worker, in order; the first failure ends the wait for the others, and every later call."""
        try:
            return self._all_answers(call, timeout)
        except TD3Error:
            self._failed = True
            raise

    def _all_answers(self, call: str, timeout: float) -> list[Any]:
        left = patience(timeout)
        waiting = {worker.connection: worker for worker in self._workers if worker not in self._read}
        answers = self._read  # kept, should this wait be interrupted half way
        while waiting:
            ready = wait(list(waiting), left())
            if not ready:
                late = next(iter(waiting.values()))
                raise EnvironmentFailure(f"{self._who(late)}: {call} did not answer within {timeout:g} s.")
            for connection in ready:
                worker = waiting.pop(connection)  # type: ignore[call-overload]
                try:
                    kind, answers[worker] = worker.connection.recv()
                except (EOFError, OSError):
                    raise EnvironmentFailure(f"{self._who(worker)}: its process {worker.ended()}.") from None
                except Exception as problem:
                    raise EnvironmentFailure(
                        f"{self._who(worker)}: its answer raised {describe_exception(problem)}."
                    ) from problem
                if kind == "failed":
                    raise answers[worker]
        self._pending, self._read = "", {}
        return [answers[worker] for worker in self._workers]

    def _who(self, worker: "_Worker") -> str:
        numbers = range(worker.first, worker.first + worker.count)
        plural = "s" if worker.count > 1 else ""
        return f"Environment{plural} {', '.join(map(str, numbers))} ({self.name}), step {self._steps}"

    def close(self) -> None:
        """Ends every worker."""
        for worker in self._workers:
            worker.stop()
        self._workers = []


def pickled(name: str, make: Callable[[], Any]) -> bytes:
    """Pickles a callable by value: it may be a lambda or live in a script's __main__, which no worker imports."""
    try:
        data: bytes = cloudpickle.dumps(make)
        return data
    except (*STOPPED, TD3Error):
        raise
    except BaseException as problem:
        raise ConfigError(
            f"env {name!r} cannot be sent to worker processes: {describe_exception(problem)}."
        ) from problem


def how_it_ended(code: int) -> str:
    """Describes the end of a process by its exit code."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def environment_for_children() -> dict[str, str]:
    """Returns the environment variables with which a new interpreter finds the same td3."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def is_tied() -> bool:
    """Returns whether a child may ask the kernel to end it when we end.

    That notice is about the thread that started the child: only the main thread is sure to live as long as the run.
    """
    return threading.current_thread() is threading.main_thread()


class _Worker:
    """One child process and the socket to it."""

    def __init__(self, name: str, make: bytes, first: int, count: int, wrappers: Wrappers) -> None:
        self.first, self.count = first, count
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = (theirs.fileno(), os.getpid(), int(is_tied()))
            self.process = subprocess.Popen(
                [sys.executable, "-m", "td3.environments.worker", *map(str, arguments)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment_for_children(),
                stdout=2,  # what an environment prints must not end up in a command's answer
            )
        self.connection: Connection[Any, Any] = Connection(ours.detach())
        with contextlib.suppress(OSError):  # one that is dead already is reported when its answer is awaited
            self.connection.send((sys.path, name, first, count, wrappers))
            self.connection.send_bytes(make)

    def ended(self) -> str:
        """Returns how the process ended."""
        try:
            return how_it_ended(self.process.wait(timeout=5))
        except subprocess.TimeoutExpired:
            return "closed its connection"

    def stop(self) -> None:
        """Stops the worker: it ends when its connection closes, and is killed when it does not."""
        self.connection.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
