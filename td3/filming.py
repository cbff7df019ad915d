"""Films an evaluated episode now and then, for whoever watches; where nothing can be rendered there is no film.

It is replayed in a process of its own (`td3.film_worker`), while training continues: no graphics driver can take
the run with it, and no bit of the run depends on whether there is a film.
"""

import contextlib
import math
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch

from td3.config import env_name
from td3.environments import Wrappers, maker_to_render
from td3.environments.factory import NONE
from td3.environments.processes import environment_for_children, how_it_ended, is_tied
from td3.film_worker import NO_FILM, SIZE, Job
from td3.recording import Allowance, Clock
from td3.types import Policy

EXPECTED = 3.0  # seconds of a processor that a film may cost: the first waits until that is little, or for the end
MEANWHILE = 600.0  # seconds a film may take while training continues, for it has to wait for what training leaves
AT_THE_END = 60.0  # and when training waits for it
LOW = 10  # priority, as `nice` counts: a tenth of what training gets, where they compete
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LP_NUM_THREADS"), "1"
)  # the last is of Mesa, which renders where there is no graphics card


class Film:
    """`film.webp` of one run. After the first failure of any kind nothing is tried again."""

    def __init__(
        self,
        path: Path,
        env: Any,
        eval_envs: Sequence[Any],
        clock: Clock = time.perf_counter,
        wrappers: Wrappers | None = None,
        env_args: Mapping[str, Any] = NONE,
        at_the_end: float = AT_THE_END,
    ) -> None:
        """`eval_envs` are the environments that evaluate; their metadata says whether they can be rendered."""
        self._path, self._env, self._env_args, self._wrappers = path, env, env_args, wrappers or Wrappers()
        self._at_the_end = at_the_end
        self._possible = any("rgb_array" in render_modes(env) for env in eval_envs)
        self._child: subprocess.Popen[bytes] | None = None
        self._until = 0.0  # when it has to be done, as `time.monotonic` counts
        self.allowance = Allowance(clock, EXPECTED)
        self.problem: str | None = None  # a sentence for the user, once

    def offer(self, policy: Callable[[], Policy], seed: int, length: int, last: bool) -> None:
        """Films an episode of `length` steps that was evaluated just now, if it is time for it; the last one always."""
        if last:
            self.close()  # of an older film: this one is wanted
        self._look()
        if not self._possible or self._child or not (last or self.allowance.due()):
            return
        clock = self.allowance.clock
        began = clock()
        seconds = self._at_the_end if last else MEANWHILE
        try:
            with undisturbed():
                make = maker_to_render(self._env, SIZE, self._wrappers, self._env_args)
                job = Job(self._path, env_name(self._env), make, self._wrappers, policy(), seed, length)
                self._child = started(job, seconds, 0 if last else LOW)
        except (Exception, SystemExit):  # it cannot be sent, or there is no room for another process
            self._possible = False
        self._until = time.monotonic() + seconds
        self.allowance.spent(clock() - began)
        if last and self._child:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
            self._look()

    def _look(self) -> None:
        """Looks whether the film is ready, or will never be."""
        if self._child is None:
            return
        before = seconds_of_children()
        code = self._child.poll()
        if code is None and time.monotonic() < self._until:
            return
        self.close()
        self.allowance.spent(seconds_of_children() - before)
        self._possible = code == 0
        if code not in (0, NO_FILM):
            how = "did not end in time" if code is None else how_it_ended(code)
            self.problem = f"The process that draws films {how}: there will be no more films of this run."

    def close(self) -> None:
        """Ends a film under way, and whatever it has started."""
        if self._child is not None:
            if self._child.poll() is None:
                with contextlib.suppress(OSError):
                    os.killpg(self._child.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):  # a driver may hang even the kernel
                    self._child.wait(5)
            self._child = None


def started(job: Job, seconds: float, priority: int) -> "subprocess.Popen[bytes]":
    """Starts the child that films it. The job goes through a file: a pipe would make us wait until it is read."""
    arguments = (os.getpid(), int(is_tied()), math.ceil(seconds) + 5, priority)  # we are the first to notice
    with tempfile.TemporaryFile() as file:
        pickle.dump(sys.path, file)
        cloudpickle.dump(job, file)
        file.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", "td3.film_worker", *map(str, arguments)],
            stdin=file,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment_for_children(), **ONE_THREAD},
            # Not a session of its own: the kernel would grant it the same share as ours, whatever its priority.
            process_group=0,
        )


def seconds_of_children() -> float:
    """Returns the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def render_modes(env: Any) -> Any:
    """Returns the render modes in an environment's metadata."""
    metadata = getattr(env, "metadata", None)
    return (metadata.get("render_modes") if isinstance(metadata, dict) else None) or ()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Restores all global random states, and hides warnings: when there is a film depends on the clock."""
    streams = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(streams[0])
        np.random.set_state(streams[1])
        torch.set_rng_state(streams[2])
