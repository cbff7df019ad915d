"""What every kind of environments offers behind one `reset` and one `step`, and checks of what they return."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from td3.environments.actions import ActionMap
from td3.environments.faults import BadValue, as_array, shown
from td3.environments.observations import ObservationMap
from td3.types import Episode, Float32s, Rows, StepResult

LARGEST = float(np.finfo(np.float32).max)
FLOATS, BOOLS = (float, np.float64), (bool, np.bool_)  # by their very type: what is like them may behave otherwise


class Envs(Protocol):
    """n environments; actions in [−1, 1] go in, checked rows of observations come out."""

    name: str
    num_envs: int
    observation: ObservationMap
    action: ActionMap

    @property
    def steps(self) -> list[int]:
        """Steps that each environment has played since the run began; failures name that number."""

    def reset(self, seeds: Sequence[int], steps: Sequence[int] = ()) -> Rows:
        """Begins every episode anew; steps are counted on from `steps`, or from none."""

    def step(self, actions: Float32s) -> StepResult:
        """Executes one action in each environment; an environment is reset after its episode ended."""

    def capture(self) -> list[Episode]:
        """Returns how each episode under way began, and the actions since."""

    def restore(
        self, episodes: Sequence[Episode], observations: Rows, seeds: Sequence[int], steps: Sequence[int]
    ) -> tuple[Rows, list[str]]:
        """Replays every episode, or begins another from its seed; returns observations, and why each failed or ''."""

    def close(self) -> None:
        """Closes every environment."""


def unpack(answer: Any) -> tuple[Any, Any, Any, Any]:
    """Returns what `step` returned, without the info; refuses anything else than five values."""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise BadValue("step() must return (observation, reward, terminated, truncated, info)")
    return answer[:4]


def check_reward(reward: Any) -> np.float32:
    """Returns a reward as float32; refuses what is no finite number."""
    if type(reward) in FLOATS and -LARGEST < reward < LARGEST:  # nearly always
        return np.float32(reward)
    value = as_array("reward", reward)
    if value.dtype.kind not in "fiub":
        raise BadValue(f"reward is no real number but {shown(reward)}")
    if value.shape != ():
        raise BadValue(f"reward has shape {value.shape}, not ()")
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single):
        raise BadValue(f"reward is {value}")
    return single


def check_flag(name: str, flag: Any) -> bool:
    """Returns `terminated` or `truncated` as a bool; refuses what is neither true nor false."""
    if type(flag) in BOOLS:
        return bool(flag)
    value = as_array(name, flag)
    if value.shape == () and value.dtype.kind in "biu" and value in (0, 1):
        return bool(value)
    raise BadValue(f"{name} is neither true nor false but {shown(flag)}")


def patience(seconds: float) -> Callable[[], float]:
    """Starts a deadline, and returns a function of the seconds left until then, never below zero."""
    deadline = time.monotonic() + seconds
    return lambda: max(0.0, deadline - time.monotonic())
