"""What happened, as the numbers a record keeps: names as the ecosystem has them."""

from typing import Any, ClassVar

import numpy as np
import torch

from td3.types import Evaluation, Update


class Means:
    """Means over the updates since the last row, added up in the same order however often one looks."""

    FIELDS: ClassVar = {
        "train/critic_loss": "critic_loss",
        "train/actor_loss": "actor_loss",
        "train/q1_mean": "q1",
        "train/q2_mean": "q2",
        "train/target_mean": "target",
    }

    def __init__(self) -> None:
        self._recent: list[Update] = []  # tensors, looked at only now and then: that is cheaper
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, update: Update) -> None:
        self._recent.append(update)
        if len(self._recent) >= 1_000:
            self._fold()

    def take(self) -> dict[str, float]:
        """The means, nothing where there were no updates; then from the beginning."""
        self._fold()
        means = {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums, self._counts = {}, {}
        return means

    def capture(self) -> dict[str, Any]:
        self._fold()
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def restore(self, data: dict[str, Any]) -> None:
        self._sums = {name: float(data["sums"][name]) for name in self.FIELDS if name in data["sums"]}
        self._counts = {name: int(data["counts"][name]) for name in self._sums}

    def _fold(self) -> None:
        for name, field in self.FIELDS.items():
            tensors = [value for update in self._recent if (value := getattr(update, field)) is not None]
            if tensors:
                rows = torch.stack(tensors).cpu().numpy().reshape(len(tensors), -1)
                for mean in rows.mean(axis=1, dtype=np.float64).tolist():
                    self._sums[name] = self._sums.get(name, 0.0) + mean
                    self._counts[name] = self._counts.get(name, 0) + 1
        self._recent.clear()


def evaluation_metrics(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "eval/mean_return": evaluation.mean,
        "eval/std_return": evaluation.std,
        "eval/returns": evaluation.returns,
        "eval/lengths": evaluation.lengths,
    }
