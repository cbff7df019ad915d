"""Learns from a dataset alone: a collector that plays nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from td3.config import Config
from td3.environments import ObservationMap, Wrappers, make_envs
from td3.environments.faults import BadValue
from td3.errors import ConfigError
from td3.interfaces import Collected, MakeNoise
from td3.types import Bools, Policy, Rows, Transitions

COLUMNS = ("observation", "action", "reward", "next_observation", "terminated")


class Dataset:
    """Hands out all transitions of a dataset before the first update, and nothing more: a step only counts.

    td3.train(config, collector=partial(td3.Dataset, columns))

    `columns` are arrays by the names in `COLUMNS`, a row for each transition, in the environment's own units and in the
    order they were played. The environment of the config says what the columns mean, and is what evaluations play.
    With `history`, numbers are those of single observations: they are joined here.
    """

    def __init__(self, columns: Mapping[str, Any], config: Config, _make_noise: MakeNoise) -> None:
        self._columns, self.num_envs, self.steps, self._handed_out = columns, 1, 0, False
        envs = make_envs(config.env, wrappers=Wrappers.of(config), env_args=config.env_args)
        self.observation_map, self.action_map = envs.observation, envs.action
        self._single_map = ObservationMap(envs.observation.space, config.frame_stack)
        envs.close()
        if missing := [name for name in COLUMNS if name not in columns]:
            raise ConfigError(f"The dataset has no {missing[0]}; it needs {', '.join(COLUMNS)}.")
        self._rows = len(columns["reward"])
        if not self._rows:
            raise ConfigError("The dataset must have at least one row; its reward has 0.")
        if self._rows > config.buffer_size:
            raise ConfigError(
                f"buffer_size must be at least {self._rows:,}, the rows of the dataset; got {config.buffer_size:,}."
            )
        if config.update_schedule != "step":
            raise ConfigError(f"update_schedule must be 'step' with a dataset; got {config.update_schedule!r}.")

    def start(self) -> None:
        """Does nothing: there is no episode to begin."""

    def configure(self, config: Config) -> None:
        """Does nothing: no setting changes what is in a dataset."""

    def collect(self, _policy: Policy) -> Collected:
        """Counts a step; the first one brings the whole dataset."""
        rows = self._empty() if self._handed_out else self._transitions()
        self._handed_out = True
        self.steps += 1
        return Collected(rows, [])

    def begin_anew(self) -> None:
        """Hands the dataset out once more: what came of it was lost."""
        self._handed_out = False

    @property
    def most_bytes(self) -> int:
        """An upper bound for the bytes of `capture`'s arrays."""
        return 0

    def capture(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns how far it is; the rows are in the memory."""
        return {"steps": self.steps, "handed_out": self._handed_out}, {}

    def restore(self, data: dict[str, Any], _arrays: dict[str, Any], _seeds: list[int]) -> list[str]:
        """Continues where `capture` was."""
        self.steps, self._handed_out = int(data["steps"]), bool(data["handed_out"])
        return []

    def local_envs(self) -> list[Any]:
        """Returns none: nothing is played."""
        return []

    def close(self) -> None:
        """Does nothing: no environment is open."""

    def _transitions(self) -> Transitions:
        columns = {name: self._column(name) for name in COLUMNS}
        observation, next_observation = columns["observation"], columns["next_observation"]
        first = np.ones(self._rows, np.bool_)  # an episode begins where a row does not follow on the one before it
        first[1:] = columns["terminated"][:-1] | (next_observation[:-1] != observation[1:]).any(axis=1)
        if self.observation_map.layout.history > 1:
            columns["observation"], columns["next_observation"] = self._joined(observation, next_observation, first)
        return Transitions(**columns, env=np.zeros(self._rows, np.int32), first=first)

    def _joined(self, observation: Rows, next_observation: Rows, first: Bools) -> tuple[Rows, Rows]:
        """Joins each row's numbers with those before it in its episode; the first stands for those there were not."""
        single, layout = self._single_map.layout, self.observation_map.layout
        row = np.arange(self._rows)
        began = np.maximum.accumulate(np.where(first, row, 0))
        numbers, next_numbers = single.vectors(observation), single.vectors(next_observation)
        before = [numbers[np.maximum(row - back, began)] for back in reversed(range(layout.history))]
        return (
            layout.joined(layout.frames(observation), np.concatenate(before, axis=1)),
            layout.joined(layout.frames(next_observation), np.concatenate([*before[1:], next_numbers], axis=1)),
        )

    def _empty(self) -> Transitions:
        observation = np.zeros((0, self.observation_map.size), self.observation_map.layout.dtype)
        action, reward = np.zeros((0, self.action_map.size), np.float32), np.zeros(0, np.float32)
        return Transitions.in_a_row(observation, action, reward, observation, np.zeros(0, np.bool_))

    def _column(self, name: str) -> Any:
        values = self._columns[name]
        try:
            if name.endswith("observation"):
                column = self._single_map.flatten(values, self._rows)
            elif name == "action":
                column = self.action_map.from_env(values)
            elif name == "reward":
                column = np.asarray(values, np.float32)
                if not np.isfinite(column).all():
                    raise ValueError(f"row {int(np.argmin(np.isfinite(column))):,} has no finite number")
            else:
                flags = np.asarray(values)
                if not np.isin(flags, (0, 1)).all():
                    raise ValueError("it has values that are neither true nor false")
                column = flags.astype(np.bool_)
        except (BadValue, ValueError, TypeError) as problem:
            raise ConfigError(f"The dataset's {name} cannot be used: {problem}.") from None
        if len(column) != self._rows or column.ndim != 1 + (name not in ("reward", "terminated")):
            raise ConfigError(
                f"The dataset's {name} must have {self._rows:,} rows, a number each for reward and terminated; "
                f"got the shape {np.shape(values)}."
            )
        return column
