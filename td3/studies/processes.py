"""A run of a study in a process of its own on this machine: an ordinary `td3 train --run … --resume`.

Its standard input is open: it saves and ends when that is closed, which the system does when this process dies in
whatever way.
"""

import contextlib
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO

LAST_LINES, LONGEST_LINE = 50, 10_000  # of what a process says


class ProcessJob:
    """The process of one run, and the last lines that it said."""

    def __init__(
        self,
        words: list[str],
        module: str = "td3.studies",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Starts `td3` with these words, which begin a run or continue one that is begun.

        `module` starts it and says what happens when we die; `env` are its environment variables, and `folder` is where
        it works, if not here.
        """
        self._process = subprocess.Popen(
            [sys.executable, *_without_files_in(folder or Path.cwd()), "-m", module, *words],
            env=env,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            process_group=0,  # a Ctrl-C is for us alone
        )
        self._asked = False
        self._lines: deque[bytes] = deque(maxlen=LAST_LINES)
        assert self._process.stderr
        self._reader = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._reader.start()

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(LONGEST_LINE):
                self._lines.append(line)

    @property
    def code(self) -> int | None:
        """Returns its exit code, once it has ended."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Waits until it has ended, but not longer than so many seconds; returns its exit code if it has."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.code

    def kill(self) -> None:
        """Ends it at once, whatever it does."""
        self.send(signal.SIGKILL)
        self.end()

    def send(self, number: int) -> None:
        """Sends it a signal, if it still runs."""
        self._asked = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def end(self) -> None:
        """Waits until it has saved and ended; asks for that unless it was asked before, for twice means at once."""
        assert self._process.stdin
        if not self._asked:
            self._process.stdin.close()
        self._process.wait()
        self._process.stdin.close()
        self._reader.join(timeout=1.0)  # what it started may live longer and hold the stream

    def problem(self) -> str:
        """Returns why it failed: its own sentence, else the last that it said, else how it ended."""
        code = self.code or 0
        if code < 0:
            return f"The process was ended by signal {-code}, {signal.strsignal(-code)}."
        lines = [line.decode(errors="replace").strip() for line in self._lines]
        own = [line.removeprefix("td3: ") for line in lines if line.startswith("td3: ")]
        said = [*filter(None, lines)][-1:]
        return [*said, *own][-1] if said else f"The process ended with code {code}."


def _without_files_in(folder: Path) -> list[str]:
    """Keeps a file of the user's from standing in for a library, as long as td3 itself is not in this folder."""
    return [] if Path(__file__).parents[2] == folder else ["-P"]
