"""Gymnasium's own vector environments, in each of the three autoreset modes.

NEXT_STEP: the step after an end ignores the action and only resets, so its row is no transition.
SAME_STEP: an ended row already shows the next episode; where the action led is in `info["final_obs"]`.
DISABLED: nothing resets by itself, so the ended rows are reset here, by mask.
"""

import contextlib
import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from numpy.typing import NDArray

from td3.environments.actions import ActionMap
from td3.environments.envs import check_flag, check_reward, unpack
from td3.environments.faults import PASSED_ON, STOPPED, BadValue, as_array, close_quietly, failure, shown
from td3.environments.observations import ObservationMap
from td3.errors import EnvironmentFailure, SpaceError
from td3.types import Bools, Episode, Float32s, Rows, StepResult

Answer = TypeVar("Answer")


class GymVectorEnvs:
    """Steps a `VectorEnv` that the user made."""

    def __init__(self, name: str, envs: VectorEnv[Any, Any, Any], timeout: float) -> None:
        self.name, self.envs, self.timeout = name, envs, timeout
        self.num_envs = envs.num_envs
        if not isinstance(self.num_envs, int | np.integer) or self.num_envs < 1:
            raise SpaceError(
                f"The vector environment {name} must have a num_envs of at least 1; it is {shown(self.num_envs)}."
            )
        self.observation = ObservationMap(envs.single_observation_space)
        self.action = ActionMap(envs.single_action_space)
        self.mode = autoreset_mode(name, envs)
        self._only_reset = np.zeros(self.num_envs, np.bool_)  # NEXT_STEP: rows that will ignore their action
        self._steps = np.zeros(self.num_envs, np.int64)
        self._asynchronous = isinstance(envs.unwrapped, AsyncVectorEnv)
        if self._asynchronous:  # its own waiting has no end, and wrappers around it offer no way to ask for one
            inner: Any = envs.unwrapped
            inner.step_wait = self._waiting(inner.step_wait)
            inner.reset_wait = self._waiting(inner.reset_wait)

    @property
    def steps(self) -> list[int]:
        """Returns the steps that each environment has played since the run began."""
        return [int(count) for count in self._steps]

    def reset(self, seeds: Sequence[int], steps: Sequence[int] = ()) -> Rows:
        """Resets all environments with these seeds."""
        self._only_reset[:] = False
        self._steps = np.array(steps or [0] * self.num_envs, np.int64)
        return self._ask("reset", lambda: self._rows(self._reset(seed=list(seeds))))

    def step(self, actions: Float32s) -> StepResult:
        """Executes one action in each environment; one that only resets in this call counts no step."""
        before = self._steps
        self._steps = before + ~self._only_reset
        try:
            return self._ask("step", lambda: self._step_all(actions))
        except BaseException:
            self._steps = before  # a step that failed half way does not count
            raise

    def _step_all(self, actions: Float32s) -> StepResult:
        valid = ~self._only_reset
        observation, rewards, terminateds, truncateds, info = self._step(self.action.to_env(actions))
        rows = self._rows(observation)
        reward = self._column("reward", rewards, np.float32, lambda _, value: check_reward(value))
        terminated = self._column("terminated", terminateds, np.bool_, check_flag)
        truncated = self._column("truncated", truncateds, np.bool_, check_flag)
        ended = (terminated | truncated) & valid
        led_to, look_at = rows, rows
        if self.mode is AutoresetMode.NEXT_STEP:
            self._only_reset = ended
        elif self.mode is AutoresetMode.SAME_STEP and ended.any():
            led_to = self._with_final(rows, info, ended)
        elif self.mode is AutoresetMode.DISABLED and ended.any():
            fresh = self._ask("reset", lambda: self._rows(self._reset(options={"reset_mask": ended.copy()})))
            look_at = np.where(ended[:, None], fresh, rows)
        return StepResult(led_to, reward, terminated & valid, truncated & valid, valid, look_at)

    def capture(self) -> list[Episode]:
        """Returns nothing to replay: how the episodes of a `VectorEnv` began cannot be known."""
        return [Episode(None, None, np.zeros((0, self.action.size), np.float32))] * self.num_envs

    def restore(
        self,
        episodes: Sequence[Episode],  # noqa: ARG002
        observations: Rows,  # noqa: ARG002
        seeds: Sequence[int],
        steps: Sequence[int],
    ) -> tuple[Rows, list[str]]:
        """Resets all environments: inside a vector environment no episode can be replayed."""
        why = "cannot be brought back: it is part of a ready-made vector environment."
        return self.reset(seeds, steps), [f"Environment {row} {why}" for row in range(self.num_envs)]

    def _waiting(self, wait: Callable[[float], Any]) -> Callable[..., Any]:
        return lambda timeout=None: wait(self.timeout if timeout is None else timeout)

    def _reset(self, **how: Any) -> Any:
        answer: Any = self.envs.reset(**how)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise BadValue("reset() must return (observation, info)")
        return answer[0]

    def _step(self, actions: Any) -> Any:
        answer = self.envs.step(actions)
        unpack(answer)
        return answer

    def _with_final(self, rows: Rows, info: Any, ended: Bools) -> Rows:
        """Replaces the observations of ended rows by where their last action led."""
        if not isinstance(info, dict):
            raise BadValue(f"info must be a dict, with 'final_obs' where an episode ended; it is {shown(info)}")
        if "final_obs" not in info:
            raise EnvironmentFailure(
                f"{self._who(ended)}: info has no 'final_obs' though an episode ended in SAME_STEP mode."
            )
        final, result = info["final_obs"], rows.copy()
        for row in np.flatnonzero(ended):
            # Gymnasium's own keep an object per environment; others a batch like the observation's.
            last = final[row] if isinstance(final, np.ndarray) else _pick(final, row)
            try:
                result[row] = self.observation.flatten_one(last)
            except BadValue as problem:
                raise EnvironmentFailure(f"{self._who(row)}: final_obs: {problem}.") from None
        return result

    def _rows(self, observation: Any) -> Rows:
        try:
            return self.observation.flatten(observation, self.num_envs)
        except BadValue as problem:
            raise EnvironmentFailure(f"{self._guilty(observation)}: {problem}.") from None

    def _guilty(self, observation: Any) -> str:
        """Names the environment that returned the bad part of a batch, as far as it can be known."""
        for row in range(self.num_envs):
            try:
                self.observation.flatten_one(_pick(observation, row))
            except STOPPED:
                raise
            except BaseException:
                return self._who(row)
        return self._who()

    def _column(self, field: str, values: Any, kind: Any, check: Callable[[str, Any], Any]) -> NDArray[Any]:
        """Checks one value per environment; row by row only where something looks wrong."""
        whole = as_array(field, values)
        if whole.shape != (self.num_envs,):
            raise EnvironmentFailure(f"{self._who()}: {field} has shape {whole.shape}, not ({self.num_envs},).")
        if whole.dtype.kind == np.dtype(kind).kind:
            with np.errstate(over="ignore"):  # too large for float32 becomes infinite
                column = whole.astype(kind)
            if np.isfinite(column).all():
                return column
        for row, value in enumerate(values):
            try:
                check(field, value)
            except BadValue as problem:
                raise EnvironmentFailure(f"{self._who(row)}: {problem}.") from None
        return whole.astype(kind)

    def _ask(self, call: str, function: Callable[[], Answer]) -> Answer:
        try:
            return function()
        except PASSED_ON:
            raise
        except multiprocessing.TimeoutError:  # of an asynchronous one, which waits with our patience
            raise EnvironmentFailure(f"{self._who()}: {call}() did not answer within {self.timeout:g} s.") from None
        except BaseException as problem:
            raise failure(self._who(self._dead() or slice(None)), call, problem) from problem

    def _dead(self) -> list[int]:
        if not self._asynchronous:
            return []
        inner: Any = self.envs.unwrapped
        return [row for row, process in enumerate(inner.processes) if not process.is_alive()]

    def _who(self, rows: Any = slice(None)) -> str:
        chosen = np.arange(self.num_envs)[rows]
        numbers = ", ".join(map(str, np.atleast_1d(chosen)[:4])) + (", …" if np.size(chosen) > 4 else "")
        return f"Environment {numbers} ({self.name}), step {int(np.max(self._steps[rows]))}"

    def close(self) -> None:
        """Closes the vector environment; what it raises is ignored."""
        close_quietly(self._close)
        with contextlib.suppress(Exception):  # or it would be closed once more when it is collected, and hang again
            self.envs.unwrapped.closed = True

    def _close(self) -> None:
        if self._asynchronous:
            with warnings.catch_warnings():  # that a call was under way is why it is closed
                warnings.simplefilter("ignore")
                self.envs.close(terminate=True)  # a hung or dead worker would never answer a polite one
        else:
            self.envs.close()


def autoreset_mode(name: str, envs: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Returns the mode in the environment's metadata; refuses one that does not say."""
    mode = envs.metadata.get("autoreset_mode") if isinstance(envs.metadata, dict) else None
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = ", ".join(f"AutoresetMode.{mode.name}" for mode in AutoresetMode)
        raise SpaceError(
            f"The vector environment {name} must say in metadata['autoreset_mode'] how it resets "
            f"({known}); it says {shown(mode)}."
        ) from None


def _pick(batch: Any, row: Any) -> Any:
    """Takes one environment's part out of a batch, whatever it is nested in."""
    if isinstance(batch, dict):
        return {key: _pick(value, row) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_pick(value, row) for value in batch)
    return batch[row]
