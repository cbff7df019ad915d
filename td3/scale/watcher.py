"""Watches over a cluster that we started, and ends it when we do: `python -m td3.scale.watcher FOLDER`.

Ray's own processes notice within seconds that the one that started them was killed, but not all of them do. This one
waits until its standard input is closed, which the system does when we end in whatever way. Then it ends every process
that has the folder in its environment or a file in it open, and removes the folder.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from td3.scale.runner import FOLDER
from td3.storage.scratch import remove_folder

ROUNDS = 20  # looks for processes, each of which may find some that were started meanwhile


class Watcher:
    """The watching process. It must be started before the cluster is."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "td3.scale.watcher", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # a Ctrl-C is for us alone
        )

    def end(self) -> None:
        """Ends the cluster, and waits until nothing is left of it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def processes_of(folder: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """Finds this user's processes that have the folder in their environment or a file in it open, but for this one."""
    for path in proc.iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid() and belongs(path, folder):
            yield int(path.name)


def belongs(process: Path, folder: str) -> bool:
    """Whether a process is of the cluster in a folder; one that renames itself may overwrite its environment."""
    with contextlib.suppress(OSError):
        if f"{FOLDER}={folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
            return True
        for file in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(file.readlink()).startswith(f"{folder}/ray/"):
                    return True
    return False


def end_all(folder: str, spared: int = 0) -> None:
    """Ends the processes of a cluster, but for one, and removes its folder."""
    for _ in range(ROUNDS):
        found = [process for process in processes_of(folder) if process != spared]
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not found:
            break
        time.sleep(0.05)
    remove_folder(folder)


def main(folder: str) -> None:
    """Waits until standard input is closed, and ends the cluster."""
    parent = os.getppid()  # it may end the cluster and live on
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the end of our parent is what counts
    while os.read(0, 1_000):
        pass
    end_all(folder, parent)


if __name__ == "__main__":
    main(sys.argv[1])
