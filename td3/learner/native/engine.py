"""The native engine: the update and the actor, performed by the compiled library on PyTorch's own tensors."""

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from td3.config import Config
from td3.errors import ConfigError
from td3.interfaces import MakeSampler
from td3.learner.native import library
from td3.learner.native.lazy import MemoryBatch, NativeUpdate
from td3.learner.native.supported import Unsupported, check_actor, check_learner, tensors_of
from td3.learner.native.tensors import address, addresses_of, begin, pointers, same_group, versions
from td3.learner.networks import Actor
from td3.learner.td3 import Learner
from td3.metrics import MEANS
from td3.replay import OWN_SAMPLERS, Memory
from td3.types import Batch, Float32s, Layout, Rows, Sample, Update

COLUMNS = {
    "observation": np.float32,
    "action": np.float32,
    "reward": np.float32,
    "next_observation": np.float32,
    "terminated": np.bool_,
}  # of the memory, as the library knows it
LOOK_EVERY = 1_000  # updates: then all is checked that is too slow to be looked at each time


class Native(Learner):
    """Learns as the page does, faster: it loads and updates in C++. All tensors and arrays stay where they are.

    Whoever writes to the networks, moves or replaces them, or changes a setting or a learning rate is noticed before
    the next update or action, and what the library cannot do is refused with a `ConfigError`. Only what somebody does
    to a single layer without writing to it (a hook, a layer put in its place) is noticed within `LOOK_EVERY` updates.
    """

    OWN = ("engine", "_rows", "_bindings")
    engine: Any
    _rows: int
    _bindings: Any

    def __init__(
        self, layout: Layout, action_size: int, config: Config, seed: int, sampler: MakeSampler | None = None
    ) -> None:
        super().__init__(layout, action_size, config, seed, sampler)
        self.prepare()

    def prepare(self) -> None:
        """Makes the library ready for this learner's config, memory and tensors."""
        with refused(self.config.engine):
            self.check()
        self.make_engine(self.config.batch_size)

    def check(self) -> None:
        """Raises Unsupported where the library cannot work on the networks and optimisers."""
        raise NotImplementedError

    def make_engine(self, rows: int) -> None:
        """Makes the engine for batches of so many rows; nothing is bound to it yet."""
        raise NotImplementedError

    def bind(self) -> Any:
        """Gives the library the addresses of all tensors, again whenever someone else has written to or moved them."""
        raise NotImplementedError

    def perform(self, source: library.Memory, indices: Any, noise: Tensor) -> Update:
        """Performs one update on these rows."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what belongs to this process."""
        return {name: value for name, value in vars(self).items() if name not in self.OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.prepare()

    def load_batch(self, sample: Sample) -> Batch:
        """Leaves the rows in the memory, where the library reads them, unless they need more than copying."""
        source = self._source()
        if source is None:
            return super().load_batch(sample)
        indices = sample.indices if type(self.sampler) in OWN_SAMPLERS else np.ascontiguousarray(sample.indices)
        return cast(Batch, MemoryBatch(self.memory, source, indices))

    def update(self, batch: "Batch | MemoryBatch", noise: Tensor) -> Update:
        """Performs one update in C++, on rows of the memory or on a batch of tensors."""
        if isinstance(batch, MemoryBatch):
            return self.perform(batch.source, batch.indices, noise)
        rows, actions = len(batch.action), self.action_size
        shapes = [(rows, self.layout.numbers), (rows, actions), (rows,)]
        wanted = dict(zip(Batch._fields, [*shapes, shapes[0], (rows,), (rows,)], strict=True)) | {"noise": shapes[1]}
        for name, tensor in (*batch._asdict().items(), ("noise", noise)):  # the library checks nothing
            if tensor.shape != wanted[name] or tensor.dtype != torch.float32:
                got = f"{tensor.dtype} of {tuple(tensor.shape)}"
                raise ValueError(f"{name} must be torch.float32 of {wanted[name]}; got {got}")
        columns = {name: column.contiguous().numpy() for name, column in batch._asdict().items()}
        columns["terminated"] = columns["terminated"].astype(np.bool_)
        source = library.Memory(*(address(columns[name]) for name in (*COLUMNS, "discount")))
        return self.perform(source, np.arange(rows), noise.contiguous())

    def act(self, observations: Rows) -> Float32s:
        """Returns the actor's actions for (n, observation_size) rows, (n, action_size)."""
        if self._bindings is None or not self._bindings.hold_for_actor(self):
            self.bind()
        actions: Float32s = self.engine.act(self.normalise(observations))
        return actions

    def _source(self) -> library.Memory | None:
        """The memory's arrays for the library, or None where loading a batch is more than copying its rows."""
        bindings = self._bindings
        if bindings is None or not bindings.source.hold_for(self):
            bindings = self.bind()
        columns: library.Memory | None = bindings.source.columns
        return columns


class NativeLearner(Native):
    """Performs TD3: steps 5 to 15 of td3.py."""

    def check(self) -> None:
        """Raises Unsupported where the library cannot work on the networks and optimisers."""
        check_learner(self)

    def perform(self, source: library.Memory, indices: Any, noise: Tensor) -> Update:
        """Performs one update on these rows."""
        rows = len(indices)
        if rows != self._rows:
            self.make_engine(rows)
        for optimizer in (self.actor_optimizer, self.critics_optimizer):
            if not optimizer.state:
                begin(optimizer)
        bindings = self._bindings
        if bindings is None or not bindings.hold_for(self):
            bindings = self.bind()
        self.updates += 1
        delayed = self.updates % self.config.policy_delay == 0
        means = torch.empty(len(MEANS), dtype=torch.float64)
        outputs = np.empty(rows * (self.action_size + 5), np.float32)
        self.engine.functions.td3_update(
            self.engine.handle,
            ctypes.addressof(bindings.settings),
            ctypes.addressof(source),
            address(indices),
            noise.data_ptr(),
            delayed,
            means.data_ptr(),
            address(outputs),
        )
        return cast(Update, NativeUpdate(means, outputs, rows, delayed))

    def make_engine(self, rows: int) -> None:
        """Makes the engine for batches of so many rows; nothing is bound to it yet."""
        sizes = self.layout.numbers, self.action_size
        self.engine = Engine(*sizes, self.config.actor_layers, rows, torch.get_num_threads())
        self._rows = rows
        self._bindings = None

    def bind(self) -> "Bindings":
        """Gives the library the addresses of all tensors, again whenever someone else has written to or moved them."""
        with refused(self.config.engine):
            check_learner(self)
        for optimizer in (self.actor_optimizer, self.critics_optimizer):
            optimizer._opt_called = True  # type: ignore[attr-defined]  # a learning-rate scheduler asks for it
        self.engine.bind(
            addresses_of(self.actor, self.actor_target, self.actor_optimizer),
            addresses_of(self.critics, self.critic_targets, self.critics_optimizer),
        )
        self._bindings = bindings = Bindings(self)
        return bindings


class Bindings:
    """What the library was given of a learner, and how to notice that it is no longer so."""

    def __init__(self, learner: NativeLearner) -> None:
        optimizers = (learner.actor_optimizer, learner.critics_optimizer)
        networks = (learner.actor, learner.actor_target, learner.critics, learner.critic_targets)
        self.parts = (learner.config, *networks, *optimizers)
        self.source = Source(learner)
        self.groups = [optimizer.param_groups[0].copy() for optimizer in optimizers]  # its values may change
        others = {"actor_lr": self.groups[0]["lr"], "critic_lr": self.groups[1]["lr"], "gamma": learner.memory.gamma}
        others["loss_floor"] = floor_of(learner.config)
        self.settings = library.Settings(
            *(others[name] if name in others else getattr(learner.config, name) for name in library.SETTINGS)
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
        self.actor = tensors[0]
        self.actor_versions, self.actor_pointers = versions(self.actor), pointers(self.actor)
        # Keeps alive what the library has the address of, even if all others let it go.
        adams = [tensor for state in self.states for part in state.values() for tensor in part.values()]
        self.held = [tensor.detach() for tensor in (*chain(*tensors), *adams)]
        self.until = learner.updates + LOOK_EVERY

    def hold_for(self, learner: NativeLearner) -> bool:
        """Whether all is as it was; cheap, for it is asked before every update."""
        actor, critics = learner.actor_optimizer, learner.critics_optimizer
        networks = learner.actor, learner.actor_target, learner.critics, learner.critic_targets
        return (
            learner.updates < self.until
            and self.parts == (learner.config, *networks, actor, critics)
            and self.states[0] is actor.state
            and self.states[1] is critics.state
            and self.lengths == [len(actor.state), len(critics.state)]
            and same_group(self.groups[0], actor.param_groups[0])
            and same_group(self.groups[1], critics.param_groups[0])
            and self.versions == versions(self.watched)
            and self.pointers == pointers(self.first)
        )

    def hold_for_actor(self, learner: Native) -> bool:
        """Returns whether the actor and its tensors are those that the library was given."""
        return (
            self.parts[1] is learner.actor
            and self.actor_versions == versions(self.actor)
            and self.actor_pointers == pointers(self.actor)
        )


class Source:
    """The memory's arrays, for the library to load a batch from.

    There are none where a batch needs more than its rows: n steps, normalisation, or a method of somebody's own.
    """

    def __init__(self, learner: Native) -> None:
        self.memory, self.config, self.normalizer = learner.memory, learner.config, learner.normalizer
        self.gamma, self.arrays, self.untouched = self.memory.gamma, self.memory.columns, untouched(learner)
        self.columns: library.Memory | None = None
        if self.untouched and type(self.memory) is Memory and self.normalizer is None and self.config.n_step == 1:
            self.held = [self.arrays[name] for name in COLUMNS]  # kept alive while the library reads them
            rows, sizes = self.memory.capacity, {"action": learner.action_size, "reward": 1, "terminated": 1}
            for (name, dtype), array in zip(COLUMNS.items(), self.held, strict=True):
                size = rows * sizes.get(name, learner.layout.numbers)
                if array.dtype != dtype or array.size != size or not array.flags.c_contiguous:
                    return
            self.columns = library.Memory(*map(address, self.held), discount=None)  # a step ahead: γ itself

    def hold_for(self, learner: Native) -> bool:
        """Whether all is as it was; cheap, for it is asked before every update."""
        memory = learner.memory
        return (
            self.memory is memory
            and self.arrays is memory.columns
            and self.gamma == memory.gamma
            and self.config is learner.config
            and self.normalizer is learner.normalizer
            and self.untouched is untouched(learner)
        )


def floor_of(config: Config) -> float:
    """Returns the error from which on the critics' loss grows linearly; 0 where it is the squared error."""
    return 0.0 if config.sampling == "uniform" else config.priority_floor


def untouched(learner: Native) -> bool:
    """Whether `load_batch` and `update` are the library's own and the memory's `batch` was not replaced."""
    kind = type(learner)
    return (
        kind.load_batch is Native.load_batch
        and kind.update is Native.update
        and vars(learner).keys().isdisjoint(("load_batch", "update"))
        and "batch" not in vars(learner.memory)
    )


class NativePolicy:
    """An actor alone: float32 rows → actions in [−1, 1]. Several threads may call it at once."""

    def __init__(self, actor: Actor) -> None:
        with refused("native"):
            check_actor(actor)
        self._actor, self._watched = actor, tensors_of(actor)
        weights = self._watched[::2]
        self._sizes = (weights[0].shape[1], *(weight.shape[0] for weight in weights))
        self._engine = Engine(self._sizes[0], self._sizes[-1], self._sizes[1:-1], rows=0, threads=1)
        self._seen: list[int] = []
        self._held: list[Tensor] = []

    def __call__(self, observations: Float32s) -> Float32s:
        seen = versions(self._watched) + pointers(self._watched)
        if seen != self._seen:
            with refused("native"):
                check_actor(self._actor, sizes=self._sizes)
            held = [tensor.detach() for tensor in tensors_of(self._actor)]
            self._engine.bind(addresses_of(self._actor))
            self._seen, self._held = seen, held
        return self._engine.act(observations)

    def __reduce__(self) -> tuple[Any, ...]:
        return NativePolicy, (self._actor,)


@contextmanager
def refused(engine: str) -> Iterator[None]:
    """What the library cannot work on is the caller's to change."""
    try:
        yield
    except Unsupported as problem:
        raise ConfigError(f"engine must be torch here: {problem}; got {engine!r}.") from None


class Engine:
    """One engine of the library; freed with this object."""

    def __init__(self, observations: int, actions: int, hidden: Sequence[int], rows: int, threads: int) -> None:
        self.functions = library.library()
        self.observations, self.actions, self.layers = observations, actions, len(hidden) + 1
        widths = (ctypes.c_int64 * len(hidden))(*hidden)
        shape = library.Shape(observations, actions, len(hidden) + 1, widths)
        self.handle = self.functions.td3_new(library.kernels().encode(), ctypes.byref(shape), rows, threads)
        if not self.handle:
            raise MemoryError(f"alloc of a native engine for {rows} rows failed")
        weakref.finalize(self, self.functions.td3_free, self.handle)

    def bind(self, actor: Sequence[library.Tensor], critics: Sequence[library.Tensor] = ()) -> None:
        """Gives the library the addresses of the networks' tensors."""
        assert len(actor) == 2 * self.layers
        assert len(critics) in (0, len(actor))
        self.functions.td3_bind(self.handle, *((library.Tensor * len(one))(*one) for one in (actor, critics)))
        self.functions.td3_refresh(self.handle)

    def act(self, observations: Float32s) -> Float32s:
        """Maps (n, observation_size) to (n, action_size)."""
        observations = np.ascontiguousarray(observations, np.float32)
        rows = len(observations)
        assert observations.shape == (rows, self.observations), observations.shape
        actions = np.empty((rows, self.actions), np.float32)
        if not self.functions.td3_act(self.handle, address(observations), rows, address(actions)):
            raise MemoryError(f"acting on {rows} rows needs more memory than there is")
        return actions
