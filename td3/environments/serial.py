"""Environments in this process, stepped one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from td3.environments.actions import ActionMap
from td3.environments.envs import check_flag, check_reward, patience, unpack
from td3.environments.faults import CLOSING, PASSED_ON, BadValue, close_quietly, failure
from td3.environments.restarts import Restarts
from td3.environments.tapes import Tape, random_state, set_random_state
from td3.environments.wrappers import PLAIN, Wrappers
from td3.errors import ConfigError, EnvironmentFailure
from td3.types import Episode, Float32s, Rows, StepResult


class SerialEnvs:
    """Steps single environments one after the other in this process; one that ended is reset at once."""

    def __init__(
        self,
        name: str,
        envs: Sequence[gymnasium.Env[Any, Any]],
        first: int = 0,
        role: str = "Environment",
        wrappers: Wrappers = PLAIN,
        restarts: Restarts | None = None,
        make_another: Callable[[], gymnasium.Env[Any, Any]] | None = None,
    ) -> None:
        """`make_another` makes a wrapped environment in place of one that failed, as often as `restarts` allow."""
        self.name, self.envs, self.role = name, list(envs), role
        self._restarts, self._make_another = restarts or Restarts(), make_another
        self._failures: list[str] = []  # that the next step reports
        self.first = first  # the number of envs[0] in the whole run
        self.num_envs = len(envs)
        self.observation = wrappers.observation_map(envs[0])
        self.action = ActionMap(envs[0].action_space)
        self._shape, self._dtype = (self.num_envs, self.observation.size), self.observation.layout.dtype
        self._renderers = [getattr(env.unwrapped, "mujoco_renderer", None) for env in envs]
        self._steps = 0  # steps of each environment: they go side by side
        self._tapes = [Tape() for _ in envs]  # how each episode began, and what was done in it since

    @property
    def steps(self) -> list[int]:
        """Returns the steps that each environment has played since the run began."""
        return [self._steps] * self.num_envs

    def reset(self, seeds: Sequence[int], steps: Sequence[int] = ()) -> Rows:
        """Resets all environments with these seeds."""
        self._steps = max(steps, default=0)
        return np.stack([self._begin(index, seed) for index, seed in enumerate(seeds)])

    def step(self, actions: Float32s) -> StepResult:
        """Executes one action in each environment, one after the other."""
        self._steps += 1
        try:
            return self._step_all(actions)
        except BaseException:
            self._steps -= 1  # a step that failed half way does not count
            raise

    def _step_all(self, actions: Float32s) -> StepResult:
        n, shape, dtype = self.num_envs, self._shape, self._dtype
        result = StepResult(
            next_observation=np.empty(shape, dtype),
            reward=np.empty(n, np.float32),
            terminated=np.empty(n, np.bool_),
            truncated=np.empty(n, np.bool_),
            valid=np.ones(n, np.bool_),
            observation=np.empty(shape, dtype),
        )
        executed = self.action.to_env(actions)
        failed: dict[int, EnvironmentFailure] = {}
        for index in range(n):
            try:
                (
                    result.next_observation[index],
                    result.reward[index],
                    result.terminated[index],
                    result.truncated[index],
                ) = self._step(index, executed[index, ...])  # `...`: an array even for shape ()
            except EnvironmentFailure as problem:
                if not self._restarts.allowed:
                    raise
                failed[index] = problem
        if failed:
            self._restarts.count(list(failed.values()))
        for index, ended in enumerate(result.terminated | result.truncated):  # only now is this step sure to count
            if index in failed:
                row = self._begin_another(index, failed[index])
                result.next_observation[index] = result.observation[index] = row
                result.reward[index], result.terminated[index] = 0, False
                result.truncated[index], result.valid[index] = True, False
                continue
            self._tapes[index].add(actions[index])
            result.observation[index] = self._begin(index, None) if ended else result.next_observation[index]
        if not self._failures:  # nearly always
            return result
        failures, self._failures = tuple(self._failures), []
        return result._replace(failures=failures)

    def _begin(self, index: int, seed: int | None) -> Rows:
        """Begins an episode; in a new environment where this one fails to, as often as is allowed."""
        try:
            return self._reset(index, seed)
        except EnvironmentFailure as problem:
            self._restarts.count([problem])
            return self._begin_another(index, problem)

    def _begin_another(self, index: int, problem: EnvironmentFailure) -> Rows:
        """Makes a new environment in place of one that failed, and begins an episode from a fresh seed."""
        attempt = 0
        while True:
            self._failures.append(str(problem))
            try:
                self._replace(index)
                return self._reset(index, self._restarts.seed_for(self.first + index, self._steps, attempt))
            except EnvironmentFailure as another:
                self._restarts.count([another])
                problem, attempt = another, attempt + 1

    def _replace(self, index: int) -> None:
        old = self.envs[index]
        close_quietly(old.close)  # first: there may be room for one only, such as on a port
        assert self._make_another is not None
        try:
            new = self._make_another()
            if new.unwrapped is old.unwrapped:
                raise ConfigError(f"env {self.name!r} must make a new one each time; it returned the same one twice.")
            if (new.observation_space, new.action_space) != (old.observation_space, old.action_space):
                raise ConfigError(f"env {self.name!r} made one with other spaces than before.")
        except ConfigError as problem:
            raise EnvironmentFailure(f"{self._who(index)}, restart: {problem}") from problem
        self.envs[index] = new
        self._renderers[index] = getattr(new.unwrapped, "mujoco_renderer", None)

    def capture(self) -> list[Episode]:
        """Returns each episode as the random state before its reset and the actions since."""
        return [
            tape.episode(random_state(env), self.action.size) for env, tape in zip(self.envs, self._tapes, strict=True)
        ]

    def restore(
        self, episodes: Sequence[Episode], observations: Rows, seeds: Sequence[int], steps: Sequence[int]
    ) -> tuple[Rows, list[str]]:
        """Replays every episode, or begins another from its seed."""
        self._steps = max(steps)
        now, failures = observations.copy(), [""] * self.num_envs
        for index, (episode, expected) in enumerate(zip(episodes, observations, strict=True)):
            try:
                self._replay(index, episode, expected)
            except (BadValue, EnvironmentFailure) as problem:
                failures[index] = f"Environment {self.first + index} cannot be brought back: {problem}"
                now[index] = self._begin(index, seeds[index])
        return now, failures

    def _replay(self, index: int, episode: Episode, expected: Rows) -> None:
        """Repeats the beginning and the actions; then the observation must be what it was, to the bit."""
        env, start = self.envs[index], episode.start
        if start is None:
            raise BadValue("how its episode began is not known.")
        if "seed" in start:
            observation = self._reset(index, int(start["seed"]))
        else:
            self._reset(index, 0)  # some environments have no random state before their first reset
            if start["random"] is not None:  # and some never have one
                set_random_state(env, start["random"])
            observation = self._reset(index, None)
        for number, action in enumerate(episode.actions, 1):
            self._tapes[index].add(action)
            observation, _, terminated, truncated = self._step(index, self.action.to_env(action[None])[0, ...])
            if terminated or truncated:
                raise BadValue(f"its episode ended at step {number} of {len(episode.actions)} when played again.")
        if observation.tobytes() != expected.tobytes():
            raise BadValue("the same actions led elsewhere when played again.")
        if random_state(env) != episode.random:
            raise BadValue("its random state differs after the same actions.")

    def _reset(self, index: int, seed: int | None) -> Rows:
        before = random_state(self.envs[index])
        self._tapes[index] = Tape({"seed": seed} if seed is not None else {"random": before})
        try:
            self._use_context(index)
            answer: Any = self.envs[index].reset(seed=seed)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise BadValue("reset() must return (observation, info)")
            return self.observation.flatten_one(answer[0])
        except PASSED_ON:
            raise
        except BaseException as problem:
            raise failure(f"{self._who(index)}, reset", "reset", problem) from problem

    def _step(self, index: int, action: Any) -> tuple[Rows, np.float32, bool, bool]:
        """Steps one environment, and checks everything it returns."""
        try:
            self._use_context(index)
            observation, reward, terminated, truncated = unpack(self.envs[index].step(action))
            return (
                self.observation.flatten_one(observation),
                check_reward(reward),
                check_flag("terminated", terminated),
                check_flag("truncated", truncated),
            )
        except PASSED_ON:
            raise
        except BaseException as problem:
            raise failure(self._who(index), "step", problem) from problem

    def _use_context(self, index: int) -> None:
        """Makes the graphics context of this environment current: of several, each would render with the last one's."""
        viewer = getattr(self._renderers[index], "viewer", None)
        if viewer is not None:
            viewer.make_context_current()

    def _who(self, index: int) -> str:
        return f"{self.role} {self.first + index} ({self.name}), step {self._steps}"

    def close(self) -> None:
        """Closes every environment; what they raise is ignored."""
        left = patience(CLOSING)
        for env in self.envs:
            close_quietly(env.close, max(1.0, left()))
