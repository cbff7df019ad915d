"""An environment that waits for a file at one of its steps, so that a test decides when a run continues."""

import time
from pathlib import Path

from example_envs import Drifting


class Waiting(Drifting):
    """Drifts; at step 1,000 of its process it waits until a file is there."""

    steps = 0  # of all environments in this process

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = Path(file)

    def step(self, action):
        """Takes a step, the one in question only when the file is there."""
        Waiting.steps += 1
        while Waiting.steps == 1_000 and not self.file.exists():
            time.sleep(0.01)
        return super().step(action)
