"""The events of a run, in the order a `for` loop over `td3.train` meets them; each returns its own metrics."""

from typing import TYPE_CHECKING, Any, NamedTuple

from td3.types import Evaluation, Finding

if TYPE_CHECKING:
    from td3.config import Config


class Started(NamedTuple):
    """The run is set up and about to take its first step.

    `step`: environment steps so far, summed over all environments, as in every event. `config`: the settings.
    `summary`: spaces, bytes per transition, engine, threads. `notes`: what is odd, one sentence each.
    """

    step: int
    config: "Config"
    summary: dict[str, Any]
    notes: tuple[str, ...]


class Resumed(NamedTuple):
    """A run continues from a checkpoint.

    `notes`: what could not be restored exactly, one sentence each.
    """

    step: int
    notes: tuple[str, ...]


class Stepped(NamedTuple):
    """One action in each environment is stored and its updates are done: leaving the loop here loses nothing.

    `updates`: how many were done since the run began.
    """

    step: int
    updates: int


class EpisodeEnded(NamedTuple):
    """An episode terminated or was truncated while training.

    `env`: the index of its environment. `episode_return`: the sum of its rewards. `length`: its steps. `terminated`:
    whether it terminated; False if it was truncated, None if the collector does not say.
    """

    step: int
    env: int
    episode_return: float
    length: int
    terminated: bool | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """What a record keeps of it."""
        kept = {"rollout/ep_return": self.episode_return, "rollout/ep_length": self.length, "rollout/env": self.env}
        return kept if self.terminated is None else {**kept, "rollout/terminated": self.terminated}


class Measured(NamedTuple):
    """A row of training metrics, every `log_every` steps.

    `metrics`: means over the updates since the last row, and speeds; docs/metrics.md has every name.
    """

    step: int
    metrics: dict[str, float]


class Examined(NamedTuple):
    """The run's health was measured.

    `metrics`: those that begin with `health/` or `probe/`; docs/metrics.md has every name.
    """

    step: int
    metrics: dict[str, Any]


class Found(NamedTuple):
    """The diagnosis is certain of something, for the first time in this run.

    `finding`: what was seen, with its number, and what to try first.
    """

    step: int
    finding: Finding

    @property
    def metrics(self) -> dict[str, Any]:
        """What a record keeps of it."""
        return {"finding": self.finding._asdict()}


class Evaluated(NamedTuple):
    """The policy was evaluated without noise.

    `evaluation`: the returns and lengths of the episodes. `best`: whether it is better than every one before.
    `checkpoint`: the same from the same seeds of the policy that `policy_checkpoints` keeps, if there is one.
    """

    step: int
    evaluation: Evaluation
    best: bool
    checkpoint: Evaluation | None = None

    @property
    def metrics(self) -> dict[str, Any]:
        """What a record keeps of it."""
        if self.checkpoint is None:
            return self.evaluation.metrics
        kept = {"eval/checkpoint_return": self.checkpoint.mean, "eval/checkpoint_returns": self.checkpoint.returns}
        return {**self.evaluation.metrics, **kept}


class Saved(NamedTuple):
    """A checkpoint was written.

    `path`: where.
    """

    step: int
    path: str


class SaveFailed(NamedTuple):
    """A save that did not work. Training continues, and what was saved before is whole.

    `reason`: why, in one sentence.
    """

    step: int
    reason: str


class Noted(NamedTuple):
    """Something that the user may want to know, and that does not stop the run.

    `note`: one sentence.
    """

    step: int
    note: str


class Finished(NamedTuple):
    """The run reached its goal, or stopped by itself.

    `updates`: how many were done. `seconds`: of training, over all sessions of the run. `best` and `last`: mean returns
    of the best and of the last evaluation, None without one. `reason`: why it stopped before its goal, one sentence.
    `stopped_by`: the setting that asked for that. Both are empty at the goal.
    """

    step: int
    updates: int
    seconds: float
    best: float | None
    last: float | None
    reason: str = ""
    stopped_by: str = ""


Event = (
    Started
    | Resumed
    | Stepped
    | EpisodeEnded
    | Measured
    | Examined
    | Found
    | Evaluated
    | Saved
    | SaveFailed
    | Noted
    | Finished
)
