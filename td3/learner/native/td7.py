"""The native engine of TD7: steps 4½ to 15 of td7.py in C++, on PyTorch's own tensors."""

import ctypes
import weakref
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from td3.learner.native import library
from td3.learner.native.engine import LOOK_EVERY, Native, Source, floor_of, refused
from td3.learner.native.lazy import NativeTD7Update
from td3.learner.native.supported import check_embedded_actor, check_embedding, check_td7_learner, tensors_of
from td3.learner.native.tensors import address, addresses_of, begin, pointers, same_group, versions
from td3.learner.td7 import TD7Learner
from td3.types import Float32s, Update


class NativeTD7Learner(Native, TD7Learner):
    """Performs TD7. Which transitions are sampled, the targets' range and the checkpoints stay the page's."""

    def check(self) -> None:
        """Raises Unsupported where the library cannot work on the networks and optimisers."""
        check_td7_learner(self)

    def make_engine(self, rows: int) -> None:
        """Makes the engine for batches of so many rows; nothing is bound to it yet."""
        config = self.config
        hidden = (config.embedding_hidden, config.actor_layers, config.critic_layers)
        sizes = (self.layout.numbers, self.action_size, config.embedding_size)
        self.engine = TD7Engine(sizes, hidden, rows, torch.get_num_threads())
        self._rows, self._bindings = rows, None

    def bind(self) -> "TD7Bindings":
        """Gives the library the addresses of all tensors, again whenever someone else has written to or moved them."""
        with refused(self.config.engine):
            self.check()
        for optimizer in self.optimizers().values():
            optimizer._opt_called = True  # type: ignore[attr-defined]  # a learning-rate scheduler asks for it
        assert self.embedding is not None
        self.engine.bind(
            addresses_of(self.embedding, None, self.embedding_optimizer),
            addresses_of(self.critics.encoder, self.critic_targets.encoder),
            addresses_of(self.actor, self.actor_target, self.actor_optimizer),
            addresses_of(self.critics, self.critic_targets, self.critics_optimizer),
        )
        self._bindings = bindings = TD7Bindings(self)
        return bindings

    def perform(self, source: library.Memory, indices: Any, noise: Tensor) -> Update:
        """Performs one update on these rows."""
        rows = len(indices)
        if rows != self._rows:
            self.make_engine(rows)
        for optimizer in (self.actor_optimizer, self.critics_optimizer, self.embedding_optimizer):
            if not optimizer.state:
                begin(optimizer)
        bindings = self._bindings
        if bindings is None or not bindings.hold_for(self):
            bindings = self.bind()
        self.updates += 1
        config, settings, bounds = self.config, bindings.settings, self.target_range
        delayed, copied = self.updates % config.policy_delay == 0, self.copies_now
        settings.low, settings.high = bounds.low.item(), bounds.high.item()
        means = torch.empty(len(self.MEANS), dtype=torch.float64)
        outputs = np.empty(rows * (self.action_size + 6), np.float32)
        self.engine.functions.td7_update(
            self.engine.handle,
            ctypes.addressof(settings),
            ctypes.addressof(source),
            address(indices),
            noise.data_ptr(),
            delayed,
            copied,
            means.data_ptr(),
            address(outputs),
        )
        if config.clip_targets:
            bounds.widen(means[6:])  # the smallest and the largest target
            if copied:
                bounds.take_over()
        means[6], means[7] = bounds.low, bounds.high
        return cast(Update, NativeTD7Update(means, outputs, rows, delayed))


class TD7Bindings:
    """What the library was given of a learner, and how to notice that it is no longer so."""

    def __init__(self, learner: NativeTD7Learner) -> None:
        self.parts = parts_of(learner)
        networks, optimizers = self.parts[1:8], self.parts[8:]
        self.source = Source(learner)
        self.groups = [optimizer.param_groups[0].copy() for optimizer in optimizers]  # its values may change
        actor_lr, critic_lr, embedding_lr = (group["lr"] for group in self.groups)
        config = learner.config
        self.settings = library.TD7Settings(
            gamma=learner.memory.gamma,
            rate=1.0 if config.target_every else config.tau,
            target_noise=config.target_noise,
            noise_clip=config.noise_clip,
            actor_lr=actor_lr,
            critic_lr=critic_lr,
            loss_floor=floor_of(config),
            embedding_lr=embedding_lr,
            clip_targets=config.clip_targets,
            both_critics=config.actor_loss == "both",
        )
        self.states = [optimizer.state for optimizer in optimizers]
        self.lengths = [len(state) for state in self.states]
        tensors = [tensors_of(network) for network in networks]
        self.first = [network[0] for network in tensors]  # a network moves as a whole
        self.pointers = pointers(self.first)
        # Adam's own step leaves its trace in nothing but the count of its steps.
        counts = [next(iter(state.values()))["step"] for state in self.states if state]
        self.watched = [*chain(*tensors), *counts]
        self.versions = versions(self.watched)
        self.actor = [*tensors_of(learner.actor), *tensors_of(learner.critics.encoder)]
        self.actor_versions, self.actor_pointers = versions(self.actor), pointers(self.actor)
        # Keeps alive what the library has the address of, even if all others let it go.
        adams = [tensor for state in self.states for part in state.values() for tensor in part.values()]
        self.held = [tensor.detach() for tensor in (*chain(*tensors), *adams)]
        self.until = learner.updates + LOOK_EVERY

    def hold_for(self, learner: NativeTD7Learner) -> bool:
        """Whether all is as it was; cheap, for it is asked before every update."""
        parts = parts_of(learner)
        optimizers = parts[8:]
        return (
            learner.updates < self.until
            and self.parts == parts
            and all(before is now.state for before, now in zip(self.states, optimizers, strict=True))
            and self.lengths == [len(optimizer.state) for optimizer in optimizers]
            and all(same_group(one, now.param_groups[0]) for one, now in zip(self.groups, optimizers, strict=True))
            and self.versions == versions(self.watched)
            and self.pointers == pointers(self.first)
        )

    def hold_for_actor(self, learner: NativeTD7Learner) -> bool:
        """Returns whether actor, embedding and their tensors are those that the library was given."""
        return (
            self.parts[1] is learner.actor
            and self.parts[5] is learner.critics.encoder
            and self.actor_versions == versions(self.actor)
            and self.actor_pointers == pointers(self.actor)
        )


def parts_of(learner: TD7Learner) -> tuple[Any, ...]:
    """Returns the config, the seven networks, and the three optimisers that the library works for."""
    return (
        learner.config,
        learner.actor,
        learner.actor_target,
        learner.critics,
        learner.critic_targets,
        learner.critics.encoder,
        learner.critic_targets.encoder,
        learner.embedding,
        learner.actor_optimizer,
        learner.critics_optimizer,
        learner.embedding_optimizer,
    )


class NativeTD7Policy:
    """An actor and its embedding alone: float32 rows → actions in [−1, 1]. Several threads may call it at once."""

    def __init__(self, actor: Any, embedding: Any) -> None:
        self._actor, self._embedding = actor, embedding
        with refused("native"):
            self._sizes, self._hidden, self._outputs = self._check()
        hidden = (self._hidden, self._outputs[:-1], ())
        self._engine = TD7Engine((self._sizes[0], self._outputs[-1], self._sizes[1]), hidden, rows=0, threads=1)
        self._watched = [*tensors_of(actor), *tensors_of(embedding)]
        self._seen: list[int] = []
        self._held: list[Tensor] = []

    def __call__(self, observations: Float32s) -> Float32s:
        seen = versions(self._watched) + pointers(self._watched)
        if seen != self._seen:
            with refused("native"):
                self._check()
            held = [tensor.detach() for tensor in (*tensors_of(self._actor), *tensors_of(self._embedding))]
            self._engine.bind([], addresses_of(self._embedding), addresses_of(self._actor), [])
            self._seen, self._held = seen, held
        return self._engine.act(observations)

    def _check(self) -> tuple[tuple[int, int], tuple[int, ...], tuple[int, ...]]:
        """Returns the sizes of s and z^s, of the hidden layers of f, and of the actor's outputs."""
        sizes = tuple(getattr(self._actor, "sizes", (0, 0)))
        hidden = [tensor.shape[0] for tensor in tensors_of_f(self._embedding)[:-1]]
        outputs = tuple(layer.weight.shape[0] for layer in list(getattr(self._actor, "layers", []))[::2])
        check_embedded_actor(self._actor, "actor", sizes, outputs)
        check_embedding(self._embedding, "encoder", sizes, None, hidden)
        return sizes, tuple(hidden), outputs

    def __reduce__(self) -> tuple[Any, ...]:
        return NativeTD7Policy, (self._actor, self._embedding)


def tensors_of_f(embedding: Any) -> list[Tensor]:
    """Returns the weights of f."""
    return [layer.weight for layer in list(getattr(embedding, "f", []))[::2]]


class TD7Engine:
    """One engine of the library; freed with this object."""

    def __init__(
        self, sizes: tuple[int, int, int], hidden: tuple[tuple[int, ...], ...], rows: int, threads: int
    ) -> None:
        self.functions = library.library()
        self.observations, self.actions, _ = sizes
        widths = [(ctypes.c_int64 * len(one))(*one) for one in hidden]
        shape = library.TD7Shape(*sizes, *(len(one) + 1 for one in hidden), *widths)
        self.handle = self.functions.td7_new(library.kernels().encode(), ctypes.byref(shape), rows, threads)
        if not self.handle:
            raise MemoryError(f"alloc of a native engine for {rows} rows failed")
        weakref.finalize(self, self.functions.td7_free, self.handle)

    def bind(self, *networks: list[library.Tensor]) -> None:
        """Gives the library the addresses of the tensors of embedding, fixed embedding, actor and critics."""
        self.functions.td7_bind(self.handle, *((library.Tensor * len(one))(*one) for one in networks))

    def act(self, observations: Float32s) -> Float32s:
        """Maps (n, observation_size) to (n, action_size)."""
        observations = np.ascontiguousarray(observations, np.float32)
        rows = len(observations)
        assert observations.shape == (rows, self.observations), observations.shape
        actions = np.empty((rows, self.actions), np.float32)
        if not self.functions.td7_act(self.handle, address(observations), rows, address(actions)):
            raise MemoryError(f"acting on {rows} rows needs more memory than there is")
        return actions
