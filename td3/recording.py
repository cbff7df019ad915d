"""Now and then one real update is written down with all its numbers, for whoever watches: it is the run's own update.

`updates.jsonl` is a side record. No checkpoint knows it, nothing is read back from it but where it ends, and whatever
goes wrong with it costs lines of it and nothing else.
"""

import base64
import contextlib
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from td3.config import Config
from td3.learner import Learner
from td3.learner.making import one_thread
from td3.types import Batch, Bools, Bytes, Float32s, Layout, Rows, Sample, Update

SHOWN = 6  # rows of the batch that are told in full
NUMBERS = 24  # of a vector: the first ones
PICTURES, FRAMES, SIDE = 2, 4, 32  # of images: the first ones, the newest frames of each, and pixels of the longer side
LONGEST_NAME = 100  # letters
HISTOGRAMS, BINS = 32, 20  # dimensions of the action that have one, and its bars from −1 to 1
SATURATED = 0.99  # an action as large as this is at its bound: tanh has hardly a slope left there
GROUP = 4  # updates at most, however long the actor waits
MOST = 1_000  # groups in a run of any length: the file stays small
LONGEST_LINE = 2**20
SHARE = 100  # one part in so many of the time
SETTINGS = (
    "gamma", "tau", "policy_delay", "target_noise", "noise_clip", "actor_lr", "critic_lr", "batch_size", "hidden",
    "buffer_size",
)  # fmt: skip
NETWORKS = {"actor": 1, "actor_target": 1, "critics": 2, "critic_targets": 2}  # how many lie side by side in each
ENCODERS = ("encoder", "encoder_target")  # where there are images

Clock = Callable[[], float]


class Allowance:
    """At most a hundredth of the time: after each expense the next has to wait for a hundred times as long.

    And for so long that all together, one more like the last included, is no more than a hundredth of the time since
    the beginning. The first waits for as long as it is expected to cost.
    """

    def __init__(self, clock: Clock, expected: float = 0.0) -> None:
        self.clock, self.seconds = clock, 0.0  # all that was spent
        self._began = clock()
        self._again = self._began + SHARE * expected

    def due(self) -> bool:
        return self.clock() >= self._again

    def spent(self, seconds: float) -> None:
        self.seconds += seconds
        self._again = max(self.clock() + SHARE * seconds, self._began + SHARE * (self.seconds + seconds))


class Recorder:
    """Observes an update now and then and writes down what happened; the update itself is not touched.

    Updates are recorded in groups, one after the other until one has moved the actor, too: both kinds can be watched.
    """

    def __init__(self, path: Path, config: Config, step: int, clock: Clock = time.perf_counter) -> None:
        """What the file tells of steps after `step` did not happen: the run goes on from there."""
        self._config = config
        self._every = max(config.log_every, config.steps // MOST)
        self.allowance = Allowance(clock)  # the updates themselves count, too
        self._group: float | None = None  # the seconds of the group under way
        self._step: int | None = None  # of the last group
        self.engine = ""  # who performs the updates, as it is written
        self._now, self._started = step, 0.0  # the step and the time of the update under way
        self._before: tuple[Sample, Batch, Before] | None = None
        self._length = 0
        self._file = opened(path)
        if self._file is not None:
            try:
                self._length = length_until(self._file, step)
                os.ftruncate(self._file, self._length)
            except OSError:
                self.close()

    def due(self, step: int, updates: int) -> bool:
        """Whether the update after so many is to be recorded."""
        if self._file is None or self._group is not None:
            return self._file is not None
        delay = self._config.policy_delay
        return (
            (self._step is None or step - self._step >= self._every)
            and delay - updates % delay == min(delay, GROUP)  # it ends where the actor moves, too
            and self.allowance.due()
        )

    def observing(self, step: int, updates: int) -> "Recorder | None":
        """Itself, as the observer of the update after so many, if that one is to be recorded."""
        if not self.due(step, updates):
            return None
        self._now, self._started = step, self.allowance.clock()
        return self

    def before(self, learner: Learner, sample: Sample, batch: Batch) -> None:
        """Copies what will be gone after the update."""
        self._before = None
        with contextlib.suppress(MemoryError, RuntimeError), one_thread():  # no room for copies: it goes unrecorded
            self._before = sample, batch, Before.of(learner, batch)

    def after(self, learner: Learner, update: Update) -> None:
        """Writes a line."""
        if self._before is not None:
            with contextlib.suppress(MemoryError, RuntimeError), one_thread():
                names = {"update": learner.updates, "step": self._now, "delayed": update.delayed, "engine": self.engine}
                row = {**names, **UpdateRecord(learner, *self._before, update).all()}
                self._append(msgspec.json.encode(row) + b"\n")
        self._before = None
        self._count(self._now, self.allowance.clock() - self._started, ended=update.delayed)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _count(self, step: int, seconds: float, ended: bool) -> None:
        self._group = (self._group or 0.0) + seconds
        if ended:
            self.allowance.spent(self._group)
            self._group, self._step = None, step

    def _append(self, row: bytes) -> None:
        """In one write, or not at all."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            if os.pwrite(self._file, row, self._length) == len(row):
                self._length += len(row)
            else:
                os.ftruncate(self._file, self._length)


def opened(path: Path) -> int | None:
    """A regular file to write to; None where there is none to be had. Links of any kind, pipes and devices are left."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            return None
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        if stat.S_ISREG(os.fstat(file).st_mode) and os.fstat(file).st_nlink == 1:
            return file
        os.close(file)
    return None


class Line(msgspec.Struct):
    """What must be known of a line to keep it."""

    step: int
    update: int


def length_until(file: int, step: int) -> int:
    """The bytes of the whole lines, from the first on, that tell of nothing later than `step`."""
    length = 0
    with os.fdopen(os.dup(file), "rb") as lines:
        while (line := lines.readline(LONGEST_LINE)).endswith(b"\n"):
            try:
                if msgspec.json.decode(line, type=Line).step > step:
                    break
            except (msgspec.DecodeError, RecursionError):
                break
            length += len(line)
    return length


class Before(NamedTuple):
    """What will be gone after the update, and where its successor is found."""

    shown: list[int]  # indices in the batch that are told in full
    networks: dict[str, list[nn.Parameter]]  # themselves, which the update moves
    parameters: dict[str, list[Tensor]]  # as they are before it
    moments: dict[str, list[Tensor | None]]  # Adam's mean of each gradient; None before its first step
    features: Tensor  # what actor and critics read of every s of the batch
    own_action: Tensor  # what the actor plays there
    target_action: Tensor  # what its target plays in the s' that are shown

    @classmethod
    @torch.no_grad()
    def of(cls, learner: Learner, batch: Batch) -> "Before":
        shown = chosen(batch.terminated.cpu().numpy() > 0)
        networks = networks_of(learner)
        features = learner.critics.encoder.forward(batch.observation)  # `forward`: nothing is compiled for it
        next_features = learner.critic_targets.encoder.forward(batch.next_observation[shown])
        return cls(
            shown,
            networks,
            {name: [one.clone() for one in network] for name, network in networks.items()},
            {
                name: [one if one is None else one.clone() for one in moments(optimizer, networks[name])]
                for name, optimizer in optimizers(learner).items()
            },
            features,
            learner.actor.forward(features),
            learner.actor_target.forward(next_features),
        )


def chosen(terminated: Bools) -> list[int]:
    """The first few indices of a batch; one of them is that of an end, if there is any."""
    shown = list(range(min(SHOWN, len(terminated))))
    if terminated.any() and not terminated[shown].any():
        shown[-1] = int(terminated.argmax())
    return shown


class UpdateRecord:
    """One update as plain data."""

    def __init__(
        self,
        learner: Learner,
        sample: Sample,
        batch: Batch,
        before: Before,
        update: Update,
    ) -> None:
        self.learner, self.config = learner, learner.config
        self.sample, self.batch, self.before, self.update = sample, batch, before, update
        self.delayed = update.actor_loss is not None

    @torch.no_grad()
    def all(self) -> dict[str, Any]:
        update, layout = self.update, self.learner.layout
        return {
            "settings": {name: getattr(self.config, name) for name in SETTINGS},
            "observation_size": layout.numbers,
            "action_size": self.batch.action.shape[1],
            **({"images": self._images()} if layout.pictures else {}),
            "memory": self._memory(),
            "rows": self._rows(),
            "critic_loss": plain(update.critic_loss),
            "actor_loss": None if update.actor_loss is None else plain(update.actor_loss),
            "gradient": self._gradient(),
            "moved": self._moved(),
            "apart": self._apart(),
            "batch": self._batch(),
        }

    def _memory(self) -> dict[str, Any]:
        memory = self.learner.memory
        ages = (memory.written - 1 - self.sample.indices) % memory.capacity  # the newest row's is 0
        return {
            "rows": len(memory),
            "capacity": memory.capacity,
            "mean_age": float(ages.mean()),
            "oldest_age": min(memory.written, memory.capacity) - 1,
        }

    def _images(self) -> dict[str, Any]:
        """Their shapes once, and the frames of the rows told, s and s' of each, in one piece.

        So the frames that s and s' have in common are written once: whoever compresses finds them.
        """
        layout, memory, encoder = self.learner.layout, self.learner.memory, self.learner.critics.encoder
        moments = (self.batch.observation, self.batch.next_observation)
        seen = [small(layout, rows[self.before.shown].cpu().numpy()) for rows in moments]
        pieces = [one[row].tobytes() for row in range(len(self.before.shown)) for moment in seen for one in moment]
        return {
            "pictures": [
                {**picture._asdict(), "name": picture.name[:LONGEST_NAME], "shown": one.shape[1:]}
                for picture, one in zip(layout.pictures, seen[0], strict=False)
            ],
            "others": len(layout.pictures) - len(seen[0]),
            "stack": layout.stack,
            "random_shift": self.config.random_shift,
            "features": encoder.size,
            "parameters": sum(one.numel() for one in encoder.parameters()),
            "transition_bytes": memory.nbytes // memory.capacity,
            "frames": base64.b64encode(zlib.compress(b"".join(pieces))).decode(),
        }

    def _numbers(self, observation: Tensor) -> Tensor:
        """What is no image in these observations."""
        layout = self.learner.layout
        return torch.from_numpy(layout.vectors(observation.cpu().numpy())) if layout.pictures else observation

    def _rows(self) -> dict[str, Any]:
        config, update, shown = self.config, self.update, self.before.shown
        observation, action, reward, next_observation, terminated, discount = (column[shown] for column in self.batch)
        noise = self.sample.noise[shown] * config.target_noise
        own_action = self.before.own_action[shown]
        return {
            "row": self.sample.indices[shown].tolist(),
            "observation": plain(self._numbers(observation)),
            "action": plain(action),
            "reward": plain(reward),
            "next_observation": plain(self._numbers(next_observation)),
            "terminated": (terminated > 0).tolist(),
            "discount": plain(discount),
            "target_action": plain(self.before.target_action),
            "drawn_noise": plain(noise),
            "noise": plain(noise.clamp(-config.noise_clip, config.noise_clip)),
            "next_action": plain(update.next_action[shown]),
            "next_q1": plain(update.next_q1[shown]),
            "next_q2": plain(update.next_q2[shown]),
            "next_q": plain(torch.minimum(update.next_q1, update.next_q2)[shown]),
            "target": plain(update.target[shown]),
            "q1": plain(update.q1[shown]),
            "q2": plain(update.q2[shown]),
            "own_action": plain(own_action) if self.delayed else None,
            # The critics have not moved since step 12: these are the values that the actor climbed.
            "own_q1": plain(self.learner.critics.first(self.before.features[shown], own_action))
            if self.delayed
            else None,
        }

    def _gradient(self) -> dict[str, float | None]:
        """From what Adam made of it, m ← β·m + (1 − β)·g, so it is the one that was used, whoever computed it."""
        found: dict[str, list[float]] = {}
        for name, optimizer in optimizers(self.learner).items():
            beta: float = optimizer.param_groups[0]["betas"][0]
            after_all = moments(optimizer, self.before.networks[name])
            pairs = zip(self.before.moments[name], after_all, strict=True)
            parts = (
                after if before is None else torch.sub(after, before, alpha=beta)
                for before, after in pairs
                if after is not None
            )
            found[name] = [one / (1 - beta) for one in lengths(parts, side_by_side(name))]
        critic1, critic2 = found["critics"]
        told = {"critic1": critic1, "critic2": critic2, "actor": found["actor"][0] if self.delayed else None}
        return told | {name: found[name][0] for name in ENCODERS if name in found}

    def _moved(self) -> dict[str, float | None]:
        before, after = self.before.parameters, self.before.networks
        found: dict[str, Any] = {name: [None] * side_by_side(name) for name in after}
        for name in after:
            if self.delayed or name in ("critics", "encoder"):
                found[name] = distances(before[name], after[name], side_by_side(name))
        told = {
            "critic1": found["critics"][0],
            "critic2": found["critics"][1],
            "actor": found["actor"][0],
            "actor_target": found["actor_target"][0],
            "critic1_target": found["critic_targets"][0],
            "critic2_target": found["critic_targets"][1],
        }
        return told | {name: found[name][0] for name in ENCODERS if name in found}

    def _apart(self) -> dict[str, float]:
        of = self.before.networks
        (actor,) = distances(of["actor"], of["actor_target"], 1)
        critic1, critic2 = distances(of["critics"], of["critic_targets"], 2)
        told = {"actor": actor, "critic1": critic1, "critic2": critic2}
        if "encoder" in of:
            (told["encoder"],) = distances(of["encoder"], of["encoder_target"], 1)
        return told

    def _batch(self) -> dict[str, Any]:
        update = self.update
        own_action = self.before.own_action.cpu().numpy()
        means = ("q1", "q2", "target", "next_q1", "next_q2")
        return {
            "twin_gap": float((update.q1 - update.q2).abs().mean(dtype=torch.float64)),
            "q1_smaller": float((update.next_q1 < update.next_q2).double().mean()),
            "terminated": int((self.batch.terminated > 0).sum()),
            "saturated": float((np.abs(own_action) > SATURATED).mean()),
            "histogram": histogram(own_action[:, :HISTOGRAMS]),
            **{name: float(getattr(update, name).mean(dtype=torch.float64)) for name in means},
        }


def networks_of(learner: Learner) -> dict[str, list[nn.Parameter]]:
    """By name. The encoder belongs to the critics and is told apart from them, where there is one."""
    found = {name: list(getattr(learner, name).layers.parameters()) for name in NETWORKS}
    if learner.layout.pictures:
        owners = (learner.critics, learner.critic_targets)
        found |= {name: list(owner.encoder.parameters()) for name, owner in zip(ENCODERS, owners, strict=True)}
    return found


def side_by_side(name: str) -> int:
    return NETWORKS.get(name, 1)


def optimizers(learner: Learner) -> dict[str, Adam]:
    """By the network each of them moves."""
    found = {"actor": learner.actor_optimizer, "critics": learner.critics_optimizer}
    return found | {"encoder": learner.critics_optimizer} if learner.layout.pictures else found


def moments(optimizer: Adam, parameters: Sequence[Tensor]) -> list[Tensor | None]:
    # Asked with `get`: looking up what is not there would put it there.
    return [optimizer.state.get(one, {}).get("exp_avg") for one in parameters]


def distances(these: Sequence[Tensor], those: Sequence[Tensor], count: int) -> list[float]:
    """How far apart two networks are in all their numbers; for `count` pairs of them that lie side by side."""
    return lengths((one - other for one, other in zip(these, those, strict=True)), count)


def lengths(tensors: Iterable[Tensor], count: int) -> list[float]:
    """The Euclidean length of all these numbers together, for each of `count` networks that lie side by side."""
    parts = [torch.linalg.vector_norm(one.reshape(count, -1), dim=1, dtype=torch.float64) for one in tensors]
    found: list[float] = torch.linalg.vector_norm(torch.stack(parts), dim=0).tolist() if parts else [0.0] * count
    return found


def histogram(actions: Float32s) -> list[list[int]]:
    """Of each dimension, how many actions lie in each of `BINS` equal parts from −1 to 1; what is no number in none."""
    dimensions = actions.shape[1]
    place = np.clip((actions + 1) * (BINS / 2), 0, BINS - 1)
    bar = np.nan_to_num(place).astype(np.int64) + BINS * np.arange(dimensions)
    counts = np.bincount(bar.ravel(), np.isfinite(place).ravel(), BINS * dimensions)
    found: list[list[int]] = counts.astype(np.int64).reshape(dimensions, BINS).tolist()
    return found


def small(layout: Layout, rows: Rows) -> list[Bytes]:
    """The newest frames of the first images of these rows, each (n, frames, height, width, 1 or 3).

    An image of another number of channels is told channel by channel: what they hold, only its environment knows.
    """
    frames, start, found = layout.frames(rows)[:, -FRAMES:], 0, []
    for picture in layout.pictures[:PICTURES]:
        colours = 3 if picture.channels == 3 else 1
        part = frames[..., start : start + picture.size]
        planes = part.reshape(len(rows), -1, colours, picture.height, picture.width)[:, -FRAMES:]
        found.append(np.stack([np.moveaxis(averaged(row), 1, -1) for row in planes]))
        start += picture.size
    return found


def averaged(planes: Bytes) -> Bytes:
    """(…, height, width) → no more than `SIDE` each way: each pixel the mean of a square, cut at the edges."""
    height, width = planes.shape[-2:]
    square = -(-max(height, width) // SIDE)
    if square == 1:
        return planes
    down, right = (np.arange(0, length, square) for length in (height, width))
    sums = np.add.reduceat(np.add.reduceat(planes, down, axis=-2, dtype=np.uint32), right, axis=-1)
    counts = np.outer(np.diff(down, append=height), np.diff(right, append=width))
    means: Bytes = np.rint(sums / counts).astype(np.uint8)
    return means


def plain(numbers: Tensor) -> Any:
    """Python's numbers, in as few digits as a float32 is worth; the first of each row of a longer vector."""
    return shortened((numbers[..., :NUMBERS] if numbers.dim() == 2 else numbers).tolist())


def shortened(numbers: Any) -> Any:
    return [shortened(one) for one in numbers] if isinstance(numbers, list) else float(f"{numbers:.7g}")
