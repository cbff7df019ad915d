"""What happened, as the numbers a record keeps: names as the ecosystem has them."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from td3.types import MEANS, Evaluation


class Means:
    """Means over the updates since the last row, added up in the same order however often one looks."""

    NAMES: ClassVar = tuple(f"train/{name}" for name in MEANS)

    def __init__(self) -> None:
        self._recent: list[Tensor] = []  # looked at only now and then: that is cheaper
        self._delayed: list[bool] = []
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, means: Tensor, delayed: bool) -> None:
        """`delayed` tells whether the actor moved too: if not, there is no loss of it."""
        self._recent.append(means)
        self._delayed.append(delayed)
        if len(self._recent) >= 1_000:
            self._fold()

    def take(self) -> dict[str, float]:
        """The means, nothing where there were no updates; then from the beginning.

        In an order of their own: a row has the same bytes however often it was captured on its way.
        """
        self._fold()
        means = {name: self._sums[name] / self._counts[name] for name in self.NAMES if name in self._sums}
        self._sums, self._counts = {}, {}
        return means

    def capture(self) -> dict[str, Any]:
        self._fold()
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def restore(self, data: dict[str, Any]) -> None:
        self._sums = {name: float(data["sums"][name]) for name in self.NAMES if name in data["sums"]}
        self._counts = {name: int(data["counts"][name]) for name in self._sums}

    def _fold(self) -> None:
        if not self._recent:
            return
        columns, delayed = torch.stack(self._recent).cpu().numpy().T, np.array(self._delayed)
        self._recent, self._delayed = [], []
        for name, column in zip(self.NAMES, columns, strict=True):
            for mean in (column[delayed] if name == "train/actor_loss" else column).tolist():
                self._sums[name] = self._sums.get(name, 0.0) + mean
                self._counts[name] = self._counts.get(name, 0) + 1


def evaluation_metrics(evaluation: Evaluation) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "eval/mean_return": evaluation.mean,
        "eval/std_return": evaluation.std,
        "eval/returns": evaluation.returns,
        "eval/lengths": evaluation.lengths,
    }
    if evaluation.predicted:  # of the same episodes: what the critic promised, and what came of it
        metrics["eval/predicted_q"] = float(np.mean(evaluation.predicted))
        metrics["eval/discounted_return"] = float(np.mean(evaluation.discounted))
    return metrics
