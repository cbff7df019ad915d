"""The native engine: the page's update and its actor, performed by the compiled library on the page's own tensors."""

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from td3.config import Config
from td3.learner.native import library
from td3.learner.networks import Actor
from td3.learner.td3 import Learner
from td3.types import MEANS, Batch, Float32s, Layout, Rows, Update

COLUMNS = (
    "observation",
    "action",
    "reward",
    "next_observation",
    "terminated",
)  # of the memory, as the library knows it


class NativeLearner(Learner):
    """Learns as its parent does, faster. Parameters, Adam's memory and the replay memory stay where they are.

    Whoever writes to the networks in place, or loads the optimisers, is noticed; PyTorch's fused Adam leaves no trace,
    so a learner that changes its engine is made anew (`switched`).
    """

    OWN = ("engine", "_settings", "_columns", "_watched", "_first", "_rows", "_seen", "_seen_actor", "_states")

    def __init__(self, layout: Layout, action_size: int, config: Config, seed: int) -> None:
        super().__init__(layout, action_size, config, seed)
        self.prepare()

    def prepare(self) -> None:
        """Makes the library ready for this learner's config, memory and tensors."""
        config = self.config
        self._settings = library.Settings(*(getattr(config, name) for name in library.SETTINGS))
        columns = (address(self.memory.columns[name]) for name in COLUMNS)
        self._columns = library.Memory(*columns, discount=None)  # a step ahead: γ itself
        networks = (self.actor, self.actor_target, self.critics, self.critic_targets)
        self._watched = [tensor for network in networks for tensor in network.parameters()]
        self._first = [next(network.parameters()) for network in networks]  # a network moves as a whole
        self._make(config.batch_size)

    def __getstate__(self) -> dict[str, Any]:
        """All but what belongs to this process."""
        return {name: value for name, value in vars(self).items() if name not in self.OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.prepare()

    def learn(self, replay: np.random.Generator, smoothing: np.random.Generator) -> Tensor:
        """As on the page, but the rows are gathered by the library, from the memory's own arrays, if that is all."""
        if self.normalizer or self.config.n_step > 1:
            return super().learn(replay, smoothing)
        drawn = self.draw(replay, smoothing)
        return self._perform(self._columns, drawn.places, drawn.noise, None)

    def update(self, batch: Batch, noise: Tensor) -> Update:
        rows, actions = batch.action.shape
        assert all(one.dtype == torch.float32 for one in (*batch, noise))  # the library believes what it is told
        assert all(len(one) == rows for one in batch)
        assert noise.shape == batch.action.shape
        columns = {name: column.contiguous().numpy() for name, column in batch._asdict().items()}
        columns["terminated"] = columns["terminated"].astype(np.bool_)
        told = torch.empty(rows * (actions + 5))
        memory = library.Memory(*(address(columns[name]) for name in (*COLUMNS, "discount")))
        means = self._perform(memory, np.arange(rows), noise.contiguous(), told.data_ptr())
        next_action, next_q1, next_q2, target, q1, q2 = told.split([rows * actions, *[rows] * 5])
        critic_loss, actor_loss = means[:2].float()
        waited = self.updates % self.config.policy_delay > 0
        next_action = next_action.view(rows, actions)
        losses = (critic_loss, None if waited else actor_loss)
        return Update(next_action, next_q1, next_q2, target, q1, q2, *losses, told=means)

    def act(self, observations: Rows) -> Float32s:
        if self._seen_actor != versions(self._watched[: len(self._seen_actor)]):
            self._look()
        return self.engine.act(self.read(observations))

    def _perform(self, memory: library.Memory, picked: Any, noise: Tensor, told: int | None) -> Tensor:
        if len(picked) != self._rows:
            self._make(len(picked))
        for optimizer in (self.actor_optimizer, self.critics_optimizer):
            if not optimizer.state:
                remember(optimizer)
        self._look()
        self.updates += 1
        means = torch.empty(len(MEANS), dtype=torch.float64)
        self.engine.functions.td3_update(
            self.engine.handle,
            ctypes.addressof(self._settings),
            ctypes.addressof(memory),
            address(picked),
            noise.data_ptr(),
            self.updates % self.config.policy_delay == 0,
            means.data_ptr(),
            told,
        )
        return means

    def _make(self, rows: int) -> None:
        sizes = self.layout.numbers, self.action_size
        self.engine = Engine(*sizes, self.config.hidden, rows, torch.get_num_threads())
        self._rows = rows
        self._seen: list[int] = []
        self._seen_actor = [-1]  # looks at once
        self._states: list[Any] = []

    def _look(self) -> None:
        """The library is told where all tensors are, again whenever someone else has written to or moved them."""
        states = [self.actor_optimizer.state, self.critics_optimizer.state]
        seen = versions(self._watched)
        seen += [tensor.data_ptr() for tensor in self._first]
        seen += [len(state) for state in states]
        if seen == self._seen and all(now is then for now, then in zip(states, self._states, strict=True)):
            return
        self.engine.bind(
            described(self.actor, self.actor_target, self.actor_optimizer),
            described(self.critics, self.critic_targets, self.critics_optimizer),
        )
        self._seen, self._states = seen, states
        self._seen_actor = seen[: len(list(self.actor.parameters()))]


class NativePolicy:
    """An actor alone: float32 rows → actions in [−1, 1]. Several threads may call it at once."""

    def __init__(self, actor: Actor) -> None:
        layers = [layer for layer in actor.layers if isinstance(layer, nn.Linear)]
        hidden = [layer.out_features for layer in layers[:-1]]
        self._engine = Engine(layers[0].in_features, layers[-1].out_features, hidden, rows=0, threads=1)
        self._actor, self._watched = actor, list(actor.parameters())
        self._seen: list[int] = []

    def __call__(self, observations: Float32s) -> Float32s:
        seen = versions(self._watched)
        if seen != self._seen:
            self._engine.bind(described(self._actor))
            self._seen = seen
        return self._engine.act(observations)

    def __reduce__(self) -> tuple[Any, ...]:
        return NativePolicy, (self._actor,)


class Engine:
    """One engine of the library; freed with this object."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int], rows: int, threads: int) -> None:
        self.functions = library.library()
        self.observations, self.actions = observations, actions
        widths = (ctypes.c_int64 * len(hidden))(*hidden)
        shape = library.Shape(observations, actions, len(hidden) + 1, widths)
        self.handle = self.functions.td3_new(library.kernels().encode(), ctypes.byref(shape), rows, threads)
        if not self.handle:
            raise MemoryError(f"alloc of a native engine for {rows} rows failed")
        weakref.finalize(self, self.functions.td3_free, self.handle)

    def bind(self, actor: list[library.Tensor], critics: Sequence[library.Tensor] = ()) -> None:
        self.functions.td3_bind(self.handle, *((library.Tensor * len(one))(*one) for one in (actor, critics)))
        self.functions.td3_refresh(self.handle)

    def act(self, observations: Float32s) -> Float32s:
        observations = np.ascontiguousarray(observations, np.float32)
        rows = len(observations)
        assert observations.shape == (rows, self.observations), observations.shape
        actions = np.empty((rows, self.actions), np.float32)
        if not self.functions.td3_act(self.handle, address(observations), rows, address(actions)):
            raise MemoryError(f"acting on {rows} rows needs more memory than there is")
        return actions


def described(
    network: nn.Module, target: nn.Module | None = None, optimizer: Adam | None = None
) -> list[library.Tensor]:
    """Where each weight and bias is, and what belongs to it; zero where there is nothing yet."""
    found = []
    targets = list(target.parameters()) if target else []
    for place, value in enumerate(network.parameters()):
        assert value.is_contiguous()
        assert (value.dtype, value.device.type) == (torch.float32, "cpu")
        state = optimizer.state.get(value, {}) if optimizer else {}
        pointers = (state[name].data_ptr() if state else 0 for name in ("exp_avg", "exp_avg_sq", "step"))
        found.append(library.Tensor(value.data_ptr(), *pointers, targets[place].data_ptr() if targets else 0))
    return found


def versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each was written to; tensors of `torch.inference_mode` do not count it."""
    try:
        return [tensor._version for tensor in tensors]
    except RuntimeError:
        return [0 if tensor.is_inference() else tensor._version for tensor in tensors]


def remember(optimizer: Adam) -> None:
    """What Adam remembers before its first step, as PyTorch itself would begin it."""
    for parameter in optimizer.param_groups[0]["params"]:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }


def address(array: Any) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
