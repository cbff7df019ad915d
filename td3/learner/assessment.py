"""Numbers that TD7 keeps beside its networks: the range of its targets, and how the current policy fares.

They are buffers of modules, so they are saved and restored as networks are.
"""

import torch
from torch import Tensor, nn

UNSEEN = 1e300  # minus or plus this: what has not been seen yet, as a number that a checkpoint may hold


class TargetRange(nn.Module):
    """The smallest and the largest target so far, and the two that next values are clipped to until the next copy."""

    low: Tensor
    high: Tensor
    smallest: Tensor
    largest: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name, value in (("low", 0.0), ("high", 0.0), ("smallest", UNSEEN), ("largest", -UNSEEN)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    def clip(self, values: Tensor) -> Tensor:
        """Returns the values within the range; before the first copy all are 0, so that targets are rewards alone."""
        return values.clamp(self.low.to(values), self.high.to(values))

    def widen(self, target: Tensor) -> None:
        """Takes note of targets."""
        self.smallest.copy_(torch.minimum(self.smallest, target.min()))
        self.largest.copy_(torch.maximum(self.largest, target.max()))

    def take_over(self) -> None:
        """Clips to all that was seen, from now on."""
        self.low.copy_(self.smallest)
        self.high.copy_(self.largest)


class Assessment(nn.Module):
    """Plays a policy for some episodes before it learns on; the best smallest return so far is the checkpoint's."""

    best: Tensor
    smallest: Tensor
    counts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("best", torch.tensor(-UNSEEN, dtype=torch.float64))  # smallest return of the checkpoint
        self.register_buffer("smallest", torch.tensor(UNSEEN, dtype=torch.float64))  # of the policy that plays now
        self.register_buffer("counts", torch.tensor([0, 0, 1]))  # its episodes, their steps, and episodes at most

    @property
    def has_checkpoint(self) -> bool:
        """Whether any policy has passed."""
        return self.best.item() > -UNSEEN

    def add(self, episode_return: float, length: int) -> str:
        """Adds an episode; returns "failed" below the best, "passed" where it was the last one, else nothing."""
        self.counts[0] += 1
        self.counts[1] += length
        self.smallest.clamp_(max=episode_return)
        if self.smallest < self.best:
            return "failed"
        return "passed" if self.counts[0] >= self.counts[2] else ""

    def end(self, passed: bool) -> int:
        """Begins with the next policy; returns the steps that the last one played."""
        if passed:
            self.best.copy_(self.smallest)
        self.smallest.fill_(UNSEEN)
        steps = int(self.counts[1])
        self.counts[:2] = 0
        return steps

    def lengthen(self, episodes: int) -> None:
        """Asks for more episodes from now on, of which the smallest return counts, and lowers the bar by a tenth."""
        if self.has_checkpoint:
            self.best.sub_(0.1 * self.best.abs())  # times 0.9 would raise a negative one
        self.counts[2] = episodes
