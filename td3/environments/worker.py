"""Environments in worker processes: the child's side, `python -m td3.environments.worker FD PARENT TIED`.

A worker answers one message at a time and ends when the connection or its parent does: it never
outlives the run, not even one that was killed with no chance to say so.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from td3.environments.making import make_local
from td3.environments.worlds import told
from td3.errors import EnvironmentFailure, TD3Error


def main(descriptor: int, parent: int, tied: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    end_with(parent, bool(tied))
    connection: Connection[Any, Any] = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so are we
        serve(connection)


def serve(connection: "Connection[Any, Any]") -> None:
    path, name, first, count, view = connection.recv()
    sys.path[:] = path  # the user's modules are found where the parent found them
    try:
        worlds = make_local(name, cloudpickle.loads(connection.recv_bytes()), first, count, view)
        connection.send(("done", (worlds.observation.space, worlds.envs[0].action_space)))
        while True:
            call, arguments = connection.recv()
            connection.send(("done", getattr(worlds, call)(*arguments)))
    except TD3Error as problem:
        connection.send(("failed", _plain(problem)))
    except (EOFError, OSError):
        raise
    except Exception as problem:  # the callable cannot be rebuilt here, or its answer cannot be sent
        connection.send(("failed", EnvironmentFailure(f"Environment {first} ({name}): {told(problem)}.")))


def _plain(problem: TD3Error) -> TD3Error:
    """The same error without causes, which might not survive the journey."""
    return type(problem)(str(problem))


def end_with(parent: int, tied: bool) -> None:
    """End when the parent does: told by the kernel where it can, and watched for everywhere."""
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
