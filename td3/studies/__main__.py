"""Trains one run of a study: the command `td3`, which ends when the process that started it does."""

import os
import signal
import sys
import threading

from td3.views.cli import entry


def end_with_driver() -> None:
    """Asks this process to save and end, as a person would, when its standard input is closed."""
    while os.read(0, 1_000):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=end_with_driver, daemon=True).start()
    sys.exit(entry())
