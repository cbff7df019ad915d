"""Limits what a side job may cost: a hundredth of the time."""

from collections.abc import Callable

SHARE = 100  # one part in so many of the time

Clock = Callable[[], float]


class Allowance:
    """Allows at most a hundredth of the time: after each expense the next has to wait for a hundred times as long.

    And for so long that all together, one more like the last included, is no more than a hundredth of the time since
    the beginning. The first waits for as long as it is expected to cost.
    """

    def __init__(self, clock: Clock, expected: float = 0.0) -> None:
        self.clock, self.seconds = clock, 0.0  # all that was spent
        self._began = clock()
        self._again = self._began + SHARE * expected

    def due(self) -> bool:
        """Returns whether there is time for another expense."""
        return self.clock() >= self._again

    def spent(self, seconds: float) -> None:
        """Counts an expense."""
        self.seconds += seconds
        self._again = max(self.clock() + SHARE * seconds, self._began + SHARE * (self.seconds + seconds))
