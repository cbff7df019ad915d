"""The events of a run, in the order a `for` loop over `td3.train` meets them; each tells its own metrics."""

from typing import TYPE_CHECKING, Any, NamedTuple

from td3.types import Evaluation

if TYPE_CHECKING:
    from td3.config import Config


class Started(NamedTuple):
    """The run is set up and about to take its first step."""

    step: int  # environment steps so far, summed over all environments; so in every event
    config: "Config"
    summary: dict[str, Any]  # spaces, bytes per transition, engine, threads
    notes: tuple[str, ...]  # what is odd, one sentence each


class Resumed(NamedTuple):
    """A run goes on from a checkpoint."""

    step: int
    notes: tuple[str, ...]  # what could not be restored to the bit, one sentence each


class Stepped(NamedTuple):
    """One action in each environment is stored and its updates are done: leaving the loop here loses nothing."""

    step: int
    updates: int


class EpisodeEnded(NamedTuple):
    """An episode terminated or was truncated while training."""

    step: int
    env: int  # the index of its environment
    episode_return: float  # the plain sum of its rewards
    length: int  # in steps

    @property
    def metrics(self) -> dict[str, Any]:
        return {"rollout/ep_return": self.episode_return, "rollout/ep_length": self.length, "rollout/env": self.env}


class Measured(NamedTuple):
    """A row of training metrics, every `log_every` steps."""

    step: int
    metrics: dict[str, float]  # means over the updates since the last row, and speeds


class Evaluated(NamedTuple):
    """The policy was evaluated without noise."""

    step: int
    evaluation: Evaluation
    best: bool  # better than every evaluation before

    @property
    def metrics(self) -> dict[str, Any]:
        return self.evaluation.metrics


class Saved(NamedTuple):
    """A checkpoint was written."""

    step: int
    path: str


class SaveFailed(NamedTuple):
    """A save that did not work. Training goes on and what was saved before is whole."""

    step: int
    reason: str


class Noted(NamedTuple):
    """Something that the user may want to know, and that costs the run nothing."""

    step: int
    note: str


class Finished(NamedTuple):
    """The run reached its goal."""

    step: int
    updates: int
    seconds: float  # of training, over all sessions of the run
    best: float | None  # the best mean return of an evaluation
    last: float | None  # the last one


Event = Started | Resumed | Stepped | EpisodeEnded | Measured | Evaluated | Saved | SaveFailed | Noted | Finished
