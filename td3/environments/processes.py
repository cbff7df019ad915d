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
from td3.environments.restarts import Restarts
from td3.environments.wrappers import Wrappers
from td3.errors import ConfigError, EnvironmentFailure, TD3Error
from td3.types import Episode, Float32s, Rows, StepResult

START_TIMEOUT = 120.0  # importing a simulator on a busy machine is slow, and happens once


class ProcessEnvs:
    """Environments in worker processes, each of which steps its share."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Any],
        num_envs: int,
        workers: int,
        timeout: float,
        wrappers: Wrappers,
        restarts: Restarts | None = None,
    ) -> None:
        self.name, self.num_envs, self.timeout = name, num_envs, timeout
        self._wrappers, self._restarts = wrappers, restarts or Restarts()
        shares = np.array_split(np.arange(num_envs), workers)
        self._shares = [slice(int(share[0]), int(share[-1]) + 1) for share in shares]
        self._steps = 0
        self._failed = False
        self._pending = ""  # the call that still has answers to be read
        self._read: dict[_Worker, Any] = {}  # those of them that have been
        self._workers: list[_Worker] = []
        try:
            self._by_value = pickled(name, make)
            for share in self._shares:
                self._workers.append(self._worker(share))
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
            failures = [failure for result in results for failure in self._failures_in(result)]
            self._count(failures)
            results = [
                self._begin_another(place, result) if isinstance(result, EnvironmentFailure) else result
                for place, result in enumerate(results)
            ]
        except BaseException:
            self._steps -= 1  # a step that failed half way does not count
            raise
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(result, name) for result in results]) for name in StepResult._fields[:-1]
        }
        return StepResult(**columns, failures=tuple(map(str, failures)))

    @staticmethod
    def _failures_in(answer: Any) -> Sequence[EnvironmentFailure]:
        """Returns the failures of a worker's step: of its environments, or its own end."""
        return [answer] if isinstance(answer, EnvironmentFailure) else list(map(EnvironmentFailure, answer.failures))

    def _count(self, failures: Sequence[EnvironmentFailure]) -> None:
        """Counts failures of all workers together: each of them counts its own alone."""
        try:
            self._restarts.count(failures)
        except EnvironmentFailure:
            self._failed = True
            raise

    def _begin_another(self, place: int, problem: EnvironmentFailure) -> StepResult:
        """Starts a new process in place of one that died or hung; none of its environments has made this step."""
        share = self._shares[place]
        numbers = range(share.start, share.stop)
        seeds = [self._restarts.seed_for(number, self._steps) for number in numbers]
        self._workers[place].process.kill()  # a hung one would not end by itself
        self._workers[place].stop()
        self._failed = True  # should this be interrupted: the new one would have answers to be read
        worker = self._workers[place] = self._worker(share)
        self._answers("start", max(self.timeout, START_TIMEOUT), [worker])
        worker.connection.send(("reset", (seeds, [self._steps] * len(numbers))))
        rows = self._answers("reset", self.timeout, [worker])[0]
        self._failed = False
        nothing, no, yes = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        return StepResult(rows, nothing, no, yes, no, rows, (str(problem),))

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

    def _answers(self, call: str, timeout: float, workers: "Sequence[_Worker] | None" = None) -> list[Any]:
        """One answer per worker, in order; the first failure ends the wait for the others, and every later call.

        Where restarts are allowed, a worker that died or hung in a step is answered for by its failure.
        """
        try:
            return self._all_answers(call, timeout, self._workers if workers is None else workers)
        except TD3Error:
            self._failed = True
            raise

    def _all_answers(self, call: str, timeout: float, workers: "Sequence[_Worker]") -> list[Any]:
        left = patience(timeout)
        waiting = {worker.connection: worker for worker in workers if worker not in self._read}
        answers = self._read  # kept, should this wait be interrupted half way
        while waiting:
            ready = wait(list(waiting), left())
            if not ready:
                for late in waiting.values():
                    why = f"{call} did not answer within {timeout:g} s"
                    answers[late] = self._lost(call, EnvironmentFailure(f"{self._who(late)}: {why}."))
                break
            for connection in ready:
                worker = waiting.pop(connection)  # type: ignore[call-overload]
                try:
                    kind, answers[worker] = worker.connection.recv()
                except (EOFError, OSError):
                    why = f"its process {worker.ended()}"
                    answers[worker] = self._lost(call, EnvironmentFailure(f"{self._who(worker)}: {why}."))
                    continue
                except Exception as problem:
                    raise EnvironmentFailure(
                        f"{self._who(worker)}: its answer raised {describe_exception(problem)}."
                    ) from problem
                if kind == "failed":
                    raise answers[worker]
        self._pending, self._read = "", {}
        return [answers[worker] for worker in workers]

    def _lost(self, call: str, problem: EnvironmentFailure) -> EnvironmentFailure:
        """Returns the failure of a worker that can be started anew; raises any other."""
        if call != "step" or not self._restarts.allowed:
            raise problem
        return problem

    def _worker(self, share: slice) -> "_Worker":
        allowed = Restarts(self._restarts.allowed, self._restarts.seed)
        return _Worker(self.name, self._by_value, share.start, share.stop - share.start, self._wrappers, allowed)

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

    def __init__(self, name: str, make: bytes, first: int, count: int, wrappers: Wrappers, restarts: Restarts) -> None:
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
            self.connection.send((sys.path, name, first, count, wrappers, restarts))
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
