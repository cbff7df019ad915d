"""Restarts of environments that failed: how many a run allows, how many it had, and their seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

from td3 import seeding
from td3.errors import EnvironmentFailure


@dataclass
class Restarts:
    """The restarts of one run, shared by the environments that train and those that evaluate."""

    allowed: int = 0
    seed: int = 0  # the run's own
    used: int = 0

    def count(self, failures: Sequence[EnvironmentFailure]) -> None:
        """Counts failures, or raises the first that is one too many; then none of them counts."""
        left = self.allowed - self.used
        if len(failures) > left:
            problem = failures[max(0, left)]
            if not self.allowed:
                raise problem
            raise EnvironmentFailure(
                f"{problem} It is failure {self.allowed + 1:,} of this run; restart_failed is {self.allowed:,}."
            ) from problem
        self.used += len(failures)

    def seed_for(self, env: int, step: int, attempt: int = 0) -> int:
        """Returns the seed of the episode that begins after a failure; it depends on nothing but these numbers."""
        return seeding.environment_seeds(self.seed, "restarts", 1, env, step, attempt)[0]

    def notes(self, failures: Sequence[str]) -> list[tuple[int, str]]:
        """Returns the failures that were counted last, each with its number in the run, and what became of it."""
        numbers = range(self.used - len(failures) + 1, self.used + 1)
        return [
            (number, f"{failure} A new one was made: failure {number:,} of the {self.allowed:,} that are allowed.")
            for number, failure in zip(numbers, failures, strict=True)
        ]
