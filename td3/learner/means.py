"""Means over updates, for a row of metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from td3.errors import ConfigError
from td3.metrics import DELAYED, MEANS


class Means:
    """Running means of update metrics; saving in between does not change the sums."""

    def __init__(self, names: Sequence[str] = MEANS, delayed: Sequence[str] = DELAYED) -> None:
        """`delayed` are those of `names` that count only in updates that moved the actor."""
        self.names, self._delayed_names = [f"train/{name}" for name in names], {f"train/{name}" for name in delayed}
        self._recent: list[Tensor] = []  # added up every 1,000 updates: that is cheaper
        self._delayed: list[bool] = []
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, means: Tensor, delayed: bool) -> None:
        """Adds one update; `delayed` says whether it moved the actor too."""
        self._recent.append(means)
        self._delayed.append(delayed)
        if len(self._recent) >= 1_000:
            self._add_up()

    def take(self) -> dict[str, float]:
        """Returns the means, nothing where there were no updates, and starts again."""
        self._add_up()
        means = {name: self._sums[name] / self._counts[name] for name in self.names if name in self._sums}
        self._sums, self._counts = {}, {}
        return means

    def capture(self) -> dict[str, Any]:
        """Returns the sums and counts as plain data."""
        self._add_up()
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def restore(self, data: dict[str, Any]) -> None:
        """Restores what `capture` returned."""
        self._sums = {name: float(data["sums"][name]) for name in self.names if name in data["sums"]}
        self._counts = {name: int(data["counts"][name]) for name in self._sums}

    def _add_up(self) -> None:
        if not self._recent:
            return
        columns, delayed = torch.stack(self._recent).cpu().numpy().T, np.array(self._delayed)
        if len(columns) != len(self.names):
            raise ConfigError(
                f"MEANS of the learner must name what its updates' means() returns: {len(self.names)} names, "
                f"{len(columns)} numbers."
            )
        self._recent, self._delayed = [], []
        for name, column in zip(self.names, columns, strict=True):
            for mean in (column[delayed] if name in self._delayed_names else column).tolist():
                self._sums[name] = self._sums.get(name, 0.0) + mean
                self._counts[name] = self._counts.get(name, 0) + 1
