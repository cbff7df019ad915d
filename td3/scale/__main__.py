"""Trains a run on a node: `td3` in a temporary folder, which is removed if the process that started it dies.

python -m td3.scale FOLDER train …
"""

import os
import sys
import threading

from td3.storage.scratch import end_and_remove
from td3.views.cli import entry


def end_with_runner(folder: str) -> None:
    """Ends this process when its standard input is closed: nobody is left to take home what it would save."""
    while os.read(0, 1_000):
        pass
    end_and_remove(folder)


if __name__ == "__main__":
    threading.Thread(target=end_with_runner, args=(sys.argv.pop(1),), daemon=True).start()
    sys.exit(entry())
