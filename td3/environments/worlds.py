"""What a collector plays on: n environments behind one `reset` and one `step`, wherever they run."""

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import gymnasium
import numpy as np

from td3.environments.spaces import ActionMap, BadValue, ObservationMap
from td3.errors import EnvironmentFailure
from td3.types import Float32s, Tick


class Worlds(Protocol):
    """n environments; actions in [−1, 1] go in, checked float32 rows come out."""

    name: str
    num_envs: int
    observation: ObservationMap
    action: ActionMap

    def reset(self, seeds: Sequence[int]) -> Float32s: ...
    def step(self, actions: Float32s) -> Tick: ...
    def close(self) -> None: ...


class LocalWorlds:
    """Single environments stepped one after the other in this process; an ended one is reset at once."""

    def __init__(self, name: str, envs: Sequence[gymnasium.Env[Any, Any]], first: int = 0) -> None:
        self.name, self.envs, self.first = (
            name,
            envs,
            first,
        )  # `first`: the number of envs[0] in the whole run
        self.num_envs = len(envs)
        self.observation = ObservationMap(envs[0].observation_space)
        self.action = ActionMap(envs[0].action_space)
        self._steps = [0] * self.num_envs

    def reset(self, seeds: Sequence[int]) -> Float32s:
        return np.stack([self._reset(place, seed) for place, seed in enumerate(seeds)])

    def step(self, actions: Float32s) -> Tick:
        n, size = self.num_envs, self.observation.size
        tick = Tick(
            next_observation=np.empty((n, size), np.float32),
            reward=np.empty(n, np.float32),
            terminated=np.empty(n, np.bool_),
            truncated=np.empty(n, np.bool_),
            valid=np.ones(n, np.bool_),
            observation=np.empty((n, size), np.float32),
        )
        executed = self.action.to_env(actions)
        for place, env in enumerate(self.envs):
            self._steps[place] += 1
            answer = self._ask(place, "step", env.step, executed[place, ...])  # `...`: an array even for shape ()
            with blaming(self._who(place)):
                observation, reward, terminated, truncated = unpack(answer)
                tick.next_observation[place] = self.observation.flatten_one(observation)
                tick.reward[place] = check_reward(reward)
                tick.terminated[place] = check_flag("terminated", terminated)
                tick.truncated[place] = check_flag("truncated", truncated)
            ended = tick.terminated[place] or tick.truncated[place]
            tick.observation[place] = self._reset(place, None) if ended else tick.next_observation[place]
        return tick

    def _reset(self, place: int, seed: int | None) -> Float32s:
        answer = self._ask(place, "reset", lambda: self.envs[place].reset(seed=seed))
        with blaming(self._who(place) + ", reset"):
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise BadValue("reset() must return (observation, info)")
            return self.observation.flatten_one(answer[0])

    def _ask(self, place: int, call: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as problem:
            raise EnvironmentFailure(f"{self._who(place)}: {call}() raised {told(problem)}.") from problem

    def _who(self, place: int) -> str:
        return f"Environment {self.first + place} ({self.name}), step {self._steps[place]}"

    def close(self) -> None:
        for env in self.envs:
            with contextlib.suppress(Exception):  # all that was learned from it is safe: its farewell is no failure
                env.close()


class blaming:  # noqa: N801 - reads like a word in `with blaming(...)`
    """Turns a bad value into a failure that says whose it was."""

    def __init__(self, who: str) -> None:
        self.who = who

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, problem: BaseException | None, trace: Any) -> None:
        if isinstance(problem, BadValue):
            raise EnvironmentFailure(f"{self.who}: {problem}.") from None


def unpack(answer: Any) -> tuple[Any, Any, Any, Any]:
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise BadValue("step() must return (observation, reward, terminated, truncated, info)")
    return answer[:4]


def check_reward(reward: Any) -> np.float32:
    value = np.asarray(reward)
    if value.dtype.kind not in "fiub":
        raise BadValue(f"reward is no real number but {reward!r}")
    if value.shape != ():
        raise BadValue(f"reward has shape {value.shape}, not ()")
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single):
        raise BadValue(f"reward is {value}")
    return single


def check_flag(name: str, flag: Any) -> bool:
    if isinstance(flag, bool | np.bool_):
        return bool(flag)
    value = np.asarray(flag)
    if value.shape == () and value.dtype.kind in "biu" and value in (0, 1):
        return bool(value)
    raise BadValue(f"{name} is neither true nor false but {flag!r}")


def told(problem: BaseException) -> str:
    """An exception in a few words, with the line of the user's code that raised it."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if len(frames) > 1 else ""
    words = str(problem).split("\n", 1)[0]
    return f"{type(problem).__name__}{': ' if words else ''}{words}{where}"


def patience(seconds: float) -> Callable[[], float]:
    """Seconds left until the deadline, never below zero."""
    deadline = time.monotonic() + seconds
    return lambda: max(0.0, deadline - time.monotonic())
