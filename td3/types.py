"""The named values that travel between the modules: nothing here acts."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Float32s = NDArray[np.float32]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Rows = NDArray[Any]  # observations, one a row, as a Layout says: float32, or bytes where there are images
Policy = Callable[[Rows], Float32s]  # (n, observation_size) → (n, action_size) in [−1, 1]


class Part(NamedTuple):
    """One part of an observation, as a row holds it.

    What is done with it follows from its kind, "vector", "category", "image" or one of your own: encoders,
    preprocessing, recorder and checker have a table each, by kind.
    """

    name: str  # where it is in the observation: "observation['camera']"
    kind: str
    shape: tuple[int, ...]  # of an image: (channels, height, width) of one frame
    dtype: str = "float32"  # as it is stored; "uint8" for what is stored frame by frame

    @property
    def size(self) -> int:
        """Returns how many entries it has."""
        return math.prod(self.shape)


PlacedParts = tuple[tuple[Part, slice], ...]


@dataclass(frozen=True, init=False)
class Layout:
    """How a row holds the parts of an observation.

    Rows of float32 parts alone are float32: `history` observations, the oldest first, each with one part after the
    other. With uint8 parts, such as images, rows are bytes: first `stack` frames, the oldest first, each of which has
    every uint8 part once; then the float32 parts' bytes.
    """

    parts: tuple[Part, ...]  # in the observation's own order
    stack: int
    history: int

    def __init__(self, parts: int | Iterable[Part], stack: int = 1, history: int = 1) -> None:
        """Takes parts; a number stands for one vector of that length."""
        vector = (Part("observation", "vector", (parts,)),) if isinstance(parts, int) else tuple(parts)
        object.__setattr__(self, "parts", vector)
        object.__setattr__(self, "stack", stack)
        object.__setattr__(self, "history", history)

    @cached_property
    def frame_parts(self) -> PlacedParts:
        """The uint8 parts, each with its slice of a frame."""
        return _placed(part for part in self.parts if part.dtype == "uint8")

    @cached_property
    def number_parts(self) -> PlacedParts:
        """The float32 parts, each with its slice of the numbers of one time step."""
        return _placed(part for part in self.parts if part.dtype == "float32")

    @cached_property
    def frame(self) -> int:
        """Bytes of one frame of all uint8 parts; 0 where there are none."""
        return sum(part.size for part, _ in self.frame_parts)

    @cached_property
    def step_numbers(self) -> int:
        """Numbers of all float32 parts, of one time step."""
        return sum(part.size for part, _ in self.number_parts)

    @cached_property
    def numbers(self) -> int:
        """Numbers of a row: those of `history` time steps."""
        return self.history * self.step_numbers

    @cached_property
    def depth(self) -> int:
        """Time steps that a row is made of."""
        return max(self.stack, self.history)

    @cached_property
    def size(self) -> int:
        """Entries of a row."""
        return self.stack * self.frame + 4 * self.numbers if self.frame else self.numbers

    @cached_property
    def dtype(self) -> Any:
        """The dtype of a row."""
        return np.dtype(np.uint8 if self.frame else np.float32)

    def frames(self, rows: Rows) -> Bytes:
        """Returns the frames of these rows, (n, stack, frame); a view."""
        return rows[:, : self.stack * self.frame].reshape(len(rows), self.stack, self.frame)

    def vectors(self, rows: Rows) -> Float32s:
        """Returns the numbers of these rows, (n, numbers)."""
        if not self.frame:
            return rows
        return np.ascontiguousarray(rows[:, self.stack * self.frame :]).view(np.float32)

    def newest(self, rows: Rows) -> Float32s:
        """Returns the numbers of the newest time step of each row, (n, step_numbers)."""
        return self.vectors(rows)[:, self.numbers - self.step_numbers :]

    def joined(self, frames: Bytes, vectors: Float32s) -> Rows:
        """Joins frames (n, stack, frame) and numbers (n, numbers) to rows."""
        if not self.frame:
            return vectors
        images = frames.reshape(len(frames), -1)
        if not self.numbers:
            return images
        return np.concatenate([images, np.ascontiguousarray(vectors).view(np.uint8)], axis=1)


def _placed(parts: Iterable[Part]) -> PlacedParts:
    """Lays parts one after the other."""
    placed, start = [], 0
    for part in parts:
        placed.append((part, slice(start, start + part.size)))
        start += part.size
    return tuple(placed)


class StepResult(NamedTuple):
    """What one action in each of n environments led to, every row already checked.

    `next_observation` is where the action led, also at an episode's end; `observation` is what the
    policy looks at next: the same, or the first observation of the next episode. A row that is not
    `valid` was only a reset: no action was executed there, so it is no transition. Such a row is
    `truncated` only where its environment failed: that closes the episode with the row before.
    """

    next_observation: Rows  # (n, observation_size)
    reward: Float32s  # (n,)
    terminated: Bools  # (n,)
    truncated: Bools  # (n,)
    valid: Bools  # (n,)
    observation: Rows  # (n, observation_size)
    failures: tuple[str, ...] = ()  # of environments that were made anew since the last step, a sentence each


class Episode(NamedTuple):
    """An episode under way, as far as it can be brought back: how it began, and what was done since."""

    start: dict[str, Any] | None  # {"seed": …} or {"random": its state or None}; None where it cannot be known
    random: dict[str, Any] | None  # where the environment's own stream stands now
    actions: Float32s  # (length, action_size)


class Transitions(NamedTuple):
    """Rows ready to be remembered; actions in [−1, 1], exactly what the environment executed."""

    observation: Rows  # (k, observation_size)
    action: Float32s  # (k, action_size)
    reward: Float32s  # (k,)
    next_observation: Rows  # (k, observation_size)
    terminated: Bools  # (k,)
    env: NDArray[np.int32]  # (k,) which environment
    first: Bools  # (k,) whether an episode began with it: what came before in that environment is another story

    @classmethod
    def in_a_row(
        cls, observation: Rows, action: Float32s, reward: Float32s, next_observation: Rows, terminated: Bools
    ) -> "Transitions":
        """Of one environment, from the beginning of an episode on."""
        count = len(reward)
        env, first = np.zeros(count, np.int32), np.arange(count) == 0
        return cls(observation, action, reward, next_observation, terminated, env, first)


class Batch(NamedTuple):
    """Remembered transitions as the learner reads them.

    With `n_step` k, a row is what k steps led to: `reward` is their discounted sum, `next_observation` and
    `terminated` are of the last of them, and `discount` is γᵏ with the k that this row really has.
    """

    observation: "Tensor"  # (B, observation_size)
    action: "Tensor"  # (B, action_size)
    reward: "Tensor"  # (B,)
    next_observation: "Tensor"  # (B, observation_size)
    terminated: "Tensor"  # (B,) 0 or 1
    discount: "Tensor"  # (B,)


class Sample(NamedTuple):
    """Everything random in one update."""

    indices: NDArray[np.int64]  # (B,) of transitions in the memory
    noise: "Tensor"  # (B, action_size), standard normal
    shifts: NDArray[np.int64] | None = None  # (2, B, 2) pixels down and right, for s and s', if images are shifted


class Targets(NamedTuple):
    """What the critics learn towards, and how it came about."""

    next_action: "Tensor"  # (B, action_size) with smoothing
    next_q1: "Tensor"  # (B,)
    next_q2: "Tensor"  # (B,)
    next_q: "Tensor"  # (B,) what is made of the two: here the smaller
    target: "Tensor"  # (B,)


class Update(NamedTuple):
    """What happened in one update; `actor_loss` is None where the actor waited."""

    next_action: "Tensor"  # (B, action_size)
    next_q1: "Tensor"  # (B,)
    next_q2: "Tensor"  # (B,)
    next_q: "Tensor"  # (B,)
    target: "Tensor"  # (B,)
    q1: "Tensor"  # (B,)
    q2: "Tensor"  # (B,)
    critic_loss: "Tensor"  # ()
    actor_loss: "Tensor | None"  # ()

    @property
    def delayed(self) -> bool:
        """Whether this update moved the actor and the targets, too."""
        return self.actor_loss is not None

    def means(self) -> "Tensor":
        """Returns what a record keeps, float64 (5,), in the order of `metrics.MEANS`; NaN where the actor waited."""
        import torch

        waited = torch.full((), torch.nan, device=self.target.device)
        parts = (
            self.critic_loss,
            waited if self.actor_loss is None else self.actor_loss,
            self.q1,
            self.q2,
            self.target,
        )
        return torch.stack([part.mean(dtype=torch.float64) for part in parts])


class Evaluation(NamedTuple):
    """The returns and lengths of episodes that were played without noise."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    discounted: tuple[float, ...] = ()  # each episode's return with a reward t steps later worth γᵗ of it
    predicted: tuple[float, ...] = ()  # what the first critic said that would be; nothing where there is no critic
    cut: tuple[float, ...] = ()  # what the critic expects beyond a truncated end, discounted; 0 where it terminated
    late: tuple[float, ...] = ()  # the share of the rewards' size that came in the last tenth of the steps
    failures: tuple[str, ...] = ()  # of environments that were made anew: their episodes were played again

    @property
    def episodes(self) -> int:
        """How many episodes."""
        return len(self.returns)

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """The standard deviation of the returns."""
        return float(np.std(self.returns))

    @property
    def metrics(self) -> dict[str, Any]:
        """What a record keeps of it, by the names in `td3.metrics`."""
        metrics: dict[str, Any] = {
            "eval/mean_return": self.mean,
            "eval/std_return": self.std,
            "eval/returns": self.returns,
            "eval/lengths": self.lengths,
        }
        if self.predicted:  # of the same episodes: what the critic predicted, and what came of it
            metrics["eval/predicted_q"] = float(np.mean(self.predicted))
            metrics["eval/discounted_return"] = float(np.mean(self.discounted))
            errors = np.subtract(self.predicted, np.add(self.discounted, self.cut))
            metrics["eval/value_error"] = float(errors.mean())
            metrics["eval/value_errors"] = errors.tolist()
        if self.late:
            metrics["eval/late_share"] = float(np.mean(self.late))
        return metrics


class Finding(NamedTuple):
    """One reason why an agent does not learn, as far as a run shows it."""

    name: str  # of the rule that found it
    step: int  # of the run, when it was seen
    seen: str  # one sentence, with the number
    advice: str  # one sentence: what to try first
    chart: str  # the metric that shows it, or nothing
    command: tuple[str, ...]  # what shows it, in words after `td3`; RUN and ENV stand for this run and its environment
    numbers: dict[str, Any]  # what the sentence is made of


class Observer(Protocol):
    """Sees an update before and after it, and changes nothing."""

    def before(self, learner: Any, sample: Sample, batch: Batch) -> None:
        """Sees the sample and its batch before the update."""

    def after(self, learner: Any, update: Update) -> None:
        """Sees what the update returned."""
