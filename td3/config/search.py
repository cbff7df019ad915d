"""Where `td3 tune` looks for the value of a setting: from low to high, or among a few values."""

from dataclasses import dataclass
from typing import Any

from td3.config.values import in_words


@dataclass(frozen=True)
class Range:
    """Every number from `low` to `high`, or those a `step` apart; `log`: as many from 1 to 10 as from 10 to 100."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def words(self) -> str:
        """The range in words: '0.0001 to 0.005, log'."""
        step = "" if self.step is None else f", step {self.step:g}"
        return f"{self.low:,g} to {self.high:,g}{', log' if self.log else step}"


@dataclass(frozen=True)
class Choices:
    """One of these values, in no order."""

    values: tuple[Any, ...]

    @property
    def words(self) -> str:
        """The values in words: '1, 3 or 5'."""
        words = [str(value).lower() if isinstance(value, bool) else in_words(value) for value in self.values]
        return " or ".join([", ".join(words[:-1]), words[-1]] if not any("," in word for word in words) else words)
