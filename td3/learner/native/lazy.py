"""Batches and updates of the native engine, taken apart only when somebody looks at them."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from td3.learner.native import library
from td3.replay import AnyMemory
from td3.types import Batch, Float32s, Update


class MemoryBatch:
    """A batch of rows that are still in the memory; its columns are loaded when read, as the tensors of a `Batch`."""

    __slots__ = ("_loaded", "indices", "memory", "source")

    def __init__(self, memory: AnyMemory, source: library.Memory, indices: Any) -> None:
        self.memory, self.source, self.indices = memory, source, indices
        self._loaded: Batch | None = None

    @property
    def loaded(self) -> Batch:
        """The rows, copied when they are first asked for."""
        if self._loaded is None:
            self._loaded = self.memory.batch(self.indices)
        return self._loaded

    def __getattr__(self, name: str) -> Any:
        if name not in Batch._fields:
            raise AttributeError(name)
        return getattr(self.loaded, name)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.loaded)


class NativeUpdate:
    """What `Update` has, taken apart only when it is asked for: most updates are asked for their means alone."""

    __slots__ = ("_means", "_outputs", "_rows", "_whole", "delayed")

    def __init__(self, means: Tensor, outputs: Float32s, rows: int, delayed: bool) -> None:
        self._means, self._outputs, self._rows, self.delayed = means, outputs, rows, delayed
        self._whole: Update | None = None

    def means(self) -> Tensor:
        """Returns what a record keeps."""
        return self._means

    @property
    def whole(self) -> Update:
        """Everything, as tensors."""
        if self._whole is None:
            self._whole = self._take_apart()
        return self._whole

    def _take_apart(self) -> Update:
        next_action, next_q1, next_q2, target, q1, q2 = self._parts(5)
        return self._update([next_action, next_q1, next_q2, torch.minimum(next_q1, next_q2), target, q1, q2])

    def _parts(self, values: int) -> tuple[Tensor, ...]:
        """Splits the outputs into the next actions and so many values of each row."""
        actions = len(self._outputs) // self._rows - values
        first, *others = torch.from_numpy(self._outputs).split([self._rows * actions, *[self._rows] * values])
        return first.view(self._rows, actions), *others

    def _update(self, tensors: Iterable[Tensor]) -> Update:
        critic_loss, actor_loss = self._means[:2].float()
        return Update._make([*tensors, critic_loss, actor_loss if self.delayed else None])

    def __getattr__(self, name: str) -> Any:
        if name not in Update._fields:
            raise AttributeError(name)
        return getattr(self.whole, name)


class NativeTD7Update(NativeUpdate):
    """What an update of TD7 has, whose smaller next value was clipped."""

    __slots__ = ()

    def _take_apart(self) -> Update:
        return self._update(self._parts(6))
