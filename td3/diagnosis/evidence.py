"""What a run's record says that a diagnosis needs, in little memory: rows go in, sums and the newest numbers stay.

A live run adds its rows as it writes them, `td3 doctor` reads them from the folder: both come to the same findings.
A record may be a stranger's, so every value is looked at before it is used.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.config import Config
from td3.metrics import CHANGED, FAILED
from td3.schedule import RESUMABLE

RECENT = 3  # measurements or evaluations in a row that make a finding certain
ONE_END = 0.95  # share of the actor's actions at one end of a dimension
VANISHED = 1e-12  # length of a gradient: Adam's steps hardly depend on it, and with 1e-8 healthy runs came back
LARGEST = 1e100  # a number that is believed: its square is a number, too
MOST_EVALUATIONS = 10_000  # of a record of any length: the newest ones
MOST_ROWS = 10**12
LONGEST_SENTENCE = 600  # characters
MOST_DIMENSIONS = 16  # of the action that are probed
NINE_TENTHS = 3.29  # standard deviations of a normal distribution that nine tenths of it lie within
MOST_VALUES = 1_000  # different lengths of episodes, or rewards, that are counted one by one

Row = Mapping[str, Any]


class Evaluated(NamedTuple):
    """An evaluation: mean and standard deviation of its returns, and how well its values were predicted."""

    step: int
    mean: float
    std: float
    episodes: int
    predicted: float | None  # discounted returns by the critic's word
    error: float | None  # mean of predicted minus obtained
    error_std: float | None  # of an episode's
    late: float | None  # share of the rewards' size in the last tenth
    length: float | None  # steps of an episode


class Rewards:
    """Statistics of all rewards that were measured."""

    def __init__(self) -> None:
        self.rows, self.size = 0, 0.0
        self._sum = self._squares = self._inner = self._inner_rows = 0.0
        self.low, self.high = math.inf, -math.inf
        self.frequent: Counter[float] = Counter()  # those that were the most frequent of some rows

    def add(self, row: Row) -> None:
        """Adds the rewards of some rows of the memory."""
        rows, mean, std, size = (number(row, f"health/{name}") for name in _REWARDS)
        mode = numbers(row, "health/reward_mode")
        if rows is None or mean is None or std is None or size is None or not 1 <= rows < MOST_ROWS:
            return
        self.rows += int(rows)
        self.size = max(self.size, size)
        self._sum += rows * mean
        self._squares += rows * (std**2 + mean**2)
        if mode is not None and len(mode) == 2 and len(self.frequent) < MOST_VALUES and 0 <= mode[1] <= rows:
            self.frequent[float(mode[0])] += int(mode[1])
        if (ends := numbers(row, "health/reward_ends")) is not None and len(ends) == 2:
            self.low, self.high = min(self.low, float(ends[0])), max(self.high, float(ends[1]))
        if (inner := numbers(row, "health/reward_range")) is not None and len(inner) == 2:
            self._inner += rows * float(inner[1] - inner[0])
            self._inner_rows += rows

    @property
    def mean(self) -> float:
        """The mean reward."""
        return self._sum / self.rows

    @property
    def std(self) -> float:
        """The standard deviation of the rewards."""
        return math.sqrt(max(0.0, self._squares / self.rows - self.mean**2))

    @property
    def usual_std(self) -> float:
        """The standard deviation by the middle nine tenths of the rewards: a few large ones do not count."""
        return self._inner / self._inner_rows / NINE_TENTHS if self._inner_rows else self.std


_REWARDS = ("rows", "reward_mean", "reward_std", "reward_size")


class Observations:
    """Statistics of each number of all observations that were measured."""

    def __init__(self) -> None:
        self.rows = 0
        self.parts: list[tuple[str, int]] = []
        self._sum = self._squares = self.low = self.high = np.zeros(0)
        self.image_change: float | None = None  # the largest

    def add(self, row: Row) -> None:
        """Adds the observations of some rows of the memory."""
        if (change := number(row, "health/image_change")) is not None:
            self.image_change = max(change, self.image_change or 0.0)
        rows = number(row, "health/rows")
        found = [numbers(row, f"health/observation_{name}") for name in ("mean", "std", "low", "high")]
        mean, std, low, high = found
        if rows is None or not 1 <= rows < MOST_ROWS or mean is None or std is None or low is None or high is None:
            return
        if len({len(mean), len(std), len(low), len(high), len(self.low) or len(mean)}) > 1:
            return
        if not self.rows:
            self._sum, self._squares = np.zeros((2, len(mean)))
            self.low, self.high = low, high
        self.rows += int(rows)
        self._sum = self._sum + rows * mean
        self._squares = self._squares + rows * (std**2 + mean**2)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.parts = parts_of(row)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean of each number."""
        return self._sum / max(self.rows, 1)

    @property
    def std(self) -> NDArray[np.float64]:
        """The standard deviation of each number."""
        std: NDArray[np.float64] = np.sqrt(np.maximum(0, self._squares / max(self.rows, 1) - self.mean**2))
        return std

    def name(self, index: int) -> str:
        """Writes a number of the observation as Python would: observation[3], observation['goal'][0]."""
        for part, size in self.parts:
            if index < size:
                return f"{part}[{index}]"
            index -= size
        return f"observation[{index}]"


class Ends:
    """Since when the actor has played one end of each dimension in nearly all remembered states, or has not moved."""

    def __init__(self) -> None:
        self.since: dict[int, tuple[str, int]] = {}  # by dimension: which end, and the step it was first seen at
        self.share: dict[int, float] = {}  # of the remembered states, by dimension
        self.dimensions, self.step = 0, 0
        self.saturated = 0.0  # share of all actions that are at one end or the other
        self.gradient: float | None = None
        self.vanished: int | None = None  # the step since when the actor has had no gradient

    def add(self, row: Row, step: int) -> None:
        """Adds a measurement of the actor."""
        low, high, gradient = (
            numbers(row, "health/low_end"),
            numbers(row, "health/high_end"),
            number(row, "health/actor_gradient"),
        )
        if low is None or high is None or len(low) != len(high):
            return
        self.dimensions, self.step = len(low), step
        before, self.since, self.share = self.since, {}, {}
        for dimension, shares in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
            if max(shares) >= ONE_END:
                end = "lower" if shares[0] > shares[1] else "upper"
                then = before.get(dimension, ("", step))
                self.since[dimension] = then if then[0] == end else (end, step)
                self.share[dimension] = max(shares)
        self.saturated = float((low + high).mean()) if len(low) else 0.0
        self.gradient = gradient
        if gradient is None or gradient >= VANISHED:
            self.vanished = None
        elif self.vanished is None:
            self.vanished = step

    def longest(self, dimensions: int = 1) -> tuple[int, int]:
        """Returns for how many steps so many dimensions have been at one end, and the one that has been longest."""
        if len(self.since) < dimensions:
            return 0, 0
        order = sorted(self.since, key=lambda dimension: self.since[dimension][1])
        return self.step - self.since[order[dimensions - 1]][1], order[0]


class Evidence:
    """All that a run has shown so far."""

    def __init__(self, config: Config, before: bool = False, limit: int = 0) -> None:
        """Begins with nothing; `before`: random steps before a run will be added; `limit`: the time limit, if known."""
        self.config = config  # the settings as they are now
        self.before, self.limit = before, limit
        self.step = 0
        self.episodes, self.steps_in_episodes = 0, 0
        self.random_lengths: Counter[int] = Counter()  # of episodes that ended in the warm-up
        self.collecting = True  # whether the memory still gets new rows: a dataset is all there at the beginning
        self.terminated = self.truncated = 0
        self.lengths: Counter[int] = Counter()
        self.evaluations: deque[Evaluated] = deque(maxlen=MOST_EVALUATIONS)
        self.best: Evaluated | None = None
        self.first: Evaluated | None = None
        self.lowest: Evaluated | None = None
        self.unfinished = 0  # steps after which an evaluation was given up
        self.rewards, self.observations = Rewards(), Observations()
        self.recent: deque[Row] = deque(maxlen=RECENT)  # the newest measurements of the networks
        self.ends = Ends()
        self.probe: dict[str, Any] = {}
        self.announced: set[str] = set()  # findings that stand in the record already
        self.changed: dict[str, Any] = {}  # settings that changed on the way, as they are now
        self.failed = ""  # why the run ended
        self.diverged = False  # whether the networks' numbers stopped being numbers

    def add(self, row: Row) -> None:
        """Adds a row of the record."""
        step = number(row, "step")
        if step is None or not 0 <= step < 2**53:
            return
        self.step = max(self.step, int(step))
        if "rollout/ep_length" in row:
            self._add_episode(row)
        elif "health/rows" in row:
            self.collecting = number(row, "health/rows") != 0
            self.rewards.add(row)
            self.observations.add(row)
            if "health/residual_variance" in row:
                self.recent.append(row)
                self.ends.add(row, int(step))
        elif "eval/mean_return" in row:
            self._add_evaluation(row)
        elif "probe/reproducible" in row:
            self._add_probe(row)
        elif isinstance(changes := row.get(CHANGED), Mapping):
            pairs = {name: pair for name, pair in changes.items() if isinstance(pair, list | tuple) and len(pair) == 2}
            self.changed.update({name: new for name, (_, new) in pairs.items() if name in RESUMABLE})
        elif isinstance(failed := row.get(FAILED), str):
            self.failed = failed[:LONGEST_SENTENCE]
        elif "train/critic_loss" in row:
            self.diverged = number(row, "train/critic_loss") is None
        elif (unfinished := number(row, "eval/unfinished")) is not None:
            self.unfinished = int(unfinished)
        elif isinstance(found := row.get("finding"), Mapping) and isinstance(found.get("name"), str):
            self.announced.add(found["name"])

    def _add_probe(self, row: Row) -> None:
        """Adds what an environment answered; a list of dimensions only if it is one."""
        self.probe = {"reproducible": row["probe/reproducible"], "actions_matter": row.get("probe/actions_matter")}
        for name in ("ignored", "narrow"):
            found = row.get(f"probe/{name}")
            dimensions = found if isinstance(found, list | tuple) and len(found) <= MOST_DIMENSIONS else []
            self.probe[name] = [one for one in dimensions if type(one) is int and 0 <= one < MOST_VALUES]
        limit = number(row, "probe/time_limit")
        self.limit = int(limit) if limit is not None and 0 < limit < MOST_ROWS else self.limit

    def _add_episode(self, row: Row) -> None:
        length = number(row, "rollout/ep_length")
        if length is None or not 0 <= length < MOST_ROWS:
            return
        self.episodes += 1
        self.steps_in_episodes += int(length)
        if len(self.lengths) < MOST_VALUES or int(length) in self.lengths:
            self.lengths[int(length)] += 1
            self.random_lengths[int(length)] += self.before or self.step <= self.config.warmup_steps
        if isinstance(terminated := row.get("rollout/terminated"), bool):
            self.terminated += terminated
            self.truncated += not terminated

    def _add_evaluation(self, row: Row) -> None:
        step, mean, std = number(row, "step"), number(row, "eval/mean_return"), number(row, "eval/std_return")
        returns, lengths = numbers(row, "eval/returns"), numbers(row, "eval/lengths")
        if step is None or mean is None or std is None or returns is None or not len(returns):
            return
        errors = numbers(row, "eval/value_errors")
        spread = float(errors.std(ddof=1)) if errors is not None and len(errors) > 1 else None
        seen = Evaluated(
            int(step),
            mean,
            std,
            len(returns),
            number(row, "eval/predicted_q"),
            number(row, "eval/value_error"),
            spread,
            number(row, "eval/late_share"),
            float(lengths.mean()) if lengths is not None and len(lengths) and lengths.min() >= 1 else None,
        )
        self.evaluations.append(seen)
        self.first = self.first or seen
        if self.lowest is None or mean < self.lowest.mean:
            self.lowest = seen
        if self.best is None or mean > self.best.mean:
            self.best = seen

    @property
    def longest(self) -> int:
        """Steps of the longest episode; where a time limit is known, of the longest there can be."""
        return max(self.limit, *self.lengths, 0)

    @property
    def usual_length(self) -> float:
        """Steps of an episode on average; the time limit where none has ended; 0 where nothing is known."""
        return self.steps_in_episodes / self.episodes if self.episodes else float(self.limit)

    @property
    def usual(self) -> tuple[int, float]:
        """The most frequent length of an episode, and which share of the episodes has it."""
        length, count = self.lengths.most_common(1)[0]
        return length, count / self.episodes

    @property
    def median_length(self) -> int:
        """Half of the episodes are no longer, of those at random if there are any: an actor may learn to fall."""
        lengths = self.random_lengths if self.random_lengths.total() else self.lengths
        counted = 0
        for length in sorted(lengths):
            counted += lengths[length]
            if 2 * counted >= lengths.total():
                return length
        return 0

    def recently(self, name: str, count: int = RECENT) -> list[float]:
        """Returns the newest values of a metric of the networks, or nothing where there are not enough of them."""
        values = [number(row, name) for row in list(self.recent)[-count:]]
        found = [value for value in values if value is not None]
        return found if len(found) == count else []

    def recent_lists(self, name: str, count: int = RECENT) -> NDArray[np.float64] | None:
        """Returns the newest lists of a metric, (count, n); None where they are fewer, or of different lengths."""
        lists = [values for row in list(self.recent)[-count:] if (values := numbers(row, name)) is not None]
        return np.array(lists) if len(lists) == count and len({len(values) for values in lists}) == 1 else None


def number(row: Row, name: str) -> float | None:
    """Returns a finite number of a row; None where there is none."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST < value < LARGEST:
        return None
    return float(value)


def numbers(row: Row, name: str) -> NDArray[np.float64] | None:
    """Returns a list of finite numbers of a row; None where there is none."""
    values = row.get(name)
    if not isinstance(values, list | tuple):
        return None
    found = [number({name: value}, name) for value in values]
    return None if None in found else np.array(found, np.float64)


def parts_of(row: Row) -> list[tuple[str, int]]:
    """Returns name and size of each part of the observation, as far as they can be."""
    parts = row.get("health/observation_parts")
    if not isinstance(parts, list | tuple):
        return []
    return [
        (part[0], part[1])
        for part in parts
        if isinstance(part, list | tuple) and len(part) == 2
        if isinstance(part[0], str) and isinstance(part[1], int)
    ]
