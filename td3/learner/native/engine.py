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
from td3.types import MEANS, Batch, Float32s, Update


class NativeLearner(Learner):
    """Learns as its parent does, faster. Parameters, Adam's memory and the replay memory stay where they are."""

    def __init__(self, observation_size: int, action_size: int, config: Config, seed: int) -> None:
        super().__init__(observation_size, action_size, config, seed)
        self.prepare()

    def prepare(self) -> None:
        """Makes the library ready for this learner's config, memory and tensors."""
        config = self.config
        self._settings = library.Settings(*(getattr(config, name) for name in library.SETTINGS))
        self._columns = library.Memory(*map(address, self.memory.columns))
        networks = (self.actor, self.actor_target, self.critics, self.critic_targets)
        self._watched = [tensor for network in networks for tensor in network.parameters()]
        self._watched_actor = list(self.actor.parameters())
        self._make(config.batch_size)

    def learn(self, replay: np.random.Generator, smoothing: np.random.Generator) -> Tensor:
        """As on the page, but the rows are gathered by the library, from the memory's own arrays."""
        picked, noise = self.draw(replay, smoothing)
        return self._perform(self._columns, picked, noise, None)

    def update(self, batch: Batch, noise: Tensor) -> Update:
        *columns, terminated = (column.contiguous().numpy() for column in batch)
        columns.append(terminated.astype(np.bool_))
        rows, actions = batch.action.shape
        if rows != self._rows:
            self._make(rows)
        told = torch.empty(rows * (actions + 5))
        memory = library.Memory(*map(address, columns))
        means = self._perform(memory, np.arange(rows), noise.contiguous(), told.data_ptr()).float()
        next_action, next_q1, next_q2, target, q1, q2 = told.split([rows * actions, *[rows] * 5])
        actor_loss = None if self.updates % self.config.policy_delay else means[1]
        next_action = next_action.view(rows, actions)
        return Update(next_action, next_q1, next_q2, target, q1, q2, means[0], actor_loss)

    def act(self, observations: Float32s) -> Float32s:
        if self._seen_actor != [tensor._version for tensor in self._watched_actor]:
            self._look()
        return self.engine.act(observations)

    def _perform(self, memory: library.Memory, picked: Any, noise: Tensor, told: int | None) -> Tensor:
        if not self.critics_optimizer.state:
            remember(self.actor_optimizer)
            remember(self.critics_optimizer)
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
        memory = self.memory.columns
        observations, actions = memory.observation.shape[1], memory.action.shape[1]
        self.engine = Engine(observations, actions, self.config.hidden, rows, torch.get_num_threads())
        self._rows = rows
        self._seen: list[int] = []
        self._seen_actor: list[int] = []

    def _look(self) -> None:
        """The library is told where all tensors are, again whenever someone else has written to them."""
        optimizers = self.actor_optimizer, self.critics_optimizer
        seen = [tensor._version for tensor in self._watched]
        seen += [number for optimizer in optimizers for number in (id(optimizer.state), len(optimizer.state))]
        if seen != self._seen:
            actor, critics = optimizers
            self.engine.bind(
                described(self.actor, self.actor_target, actor), described(self.critics, self.critic_targets, critics)
            )
            self._seen, self._seen_actor = seen, [tensor._version for tensor in self._watched_actor]


class NativePolicy:
    """An actor alone: float32 rows → actions in [−1, 1]. Several threads may call it at once."""

    def __init__(self, actor: Actor) -> None:
        layers = [layer for layer in actor.layers if isinstance(layer, nn.Linear)]
        hidden = [layer.out_features for layer in layers[:-1]]
        self._engine = Engine(layers[0].in_features, layers[-1].out_features, hidden, rows=0, threads=1)
        self._actor, self._watched = actor, list(actor.parameters())
        self._seen: list[int] = []

    def __call__(self, observations: Float32s) -> Float32s:
        seen = [tensor._version for tensor in self._watched]
        if seen != self._seen:
            self._engine.bind(described(self._actor))
            self._seen = seen
        return self._engine.act(observations)


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
        self.functions.td3_act(self.handle, address(observations), rows, address(actions))
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
