"""Environments in worker processes: the child's side, `python -m td3.environments.worker FD PARENT TIED`.

A worker answers one message at a time and ends when the connection or its parent does: it never
outlives the run, not even one that was killed before it could say so.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import cloudpickle

from td3.environments.factory import make_local
from td3.environments.faults import describe_exception
from td3.environments.serial import SerialEnvs
from td3.errors import EnvironmentFailure, TD3Error


def main(descriptor: int, parent: int, tied: int) -> None:
    """Serves the connection with this descriptor until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    end_with(parent, bool(tied))
    connection: Connection[Any, Any] = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so are we
        serve(connection)


def serve(connection: "Connection[Any, Any]") -> None:
    """Makes the environments that the parent asks for, and answers its calls."""
    path, name, first, count, wrappers, restarts = connection.recv()
    sys.path[:] = path  # the user's modules are found where the parent found them
    by_value = connection.recv_bytes()
    envs: list[SerialEnvs] = []

    def start() -> tuple[Any, Any]:
        """Makes the environments, and returns their spaces."""
        envs.append(make_local(name, cloudpickle.loads(by_value), first, count, wrappers, restarts))
        return envs[0].observation.space, envs[0].action.space

    who = f"Environment {first} ({name})"
    fine = _answer(connection, who, start)
    while fine:
        call, arguments = connection.recv()
        fine = _answer(connection, who, getattr(envs[0], call), *arguments)


def _answer(connection: "Connection[Any, Any]", who: str, function: Callable[..., Any], *arguments: Any) -> bool:
    """Sends what the function returns or, whatever it raises, why not; returns whether it returned."""
    try:
        reply, fine = ForkingPickler.dumps(("done", function(*arguments))), True
    except TD3Error as problem:  # without its causes, which might not survive the journey
        reply, fine = ForkingPickler.dumps(("failed", type(problem)(str(problem)))), False
    except BaseException as problem:  # the callable cannot be rebuilt here, or its answer cannot be sent
        reply, fine = (
            ForkingPickler.dumps(("failed", EnvironmentFailure(f"{who}: {describe_exception(problem)}."))),
            False,
        )
    connection.send_bytes(reply)
    return fine


def end_with(parent: int, tied: bool) -> None:
    """Ends this process when the parent ends: the kernel signals it where it can, and it is watched for everywhere."""
    if tied and sys.platform == "linux":
        set_parent_death_signal = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
