"""Collects transitions: random actions while warming up, then the actor with noise."""

from typing import Any

import numpy as np

from td3 import seeding
from td3.config import Config, name_of
from td3.environments import Envs, Restarts, Wrappers, in_this_process, make_envs
from td3.environments.tapes import LONGEST_TAPE
from td3.errors import ConfigError, EnvironmentFailure
from td3.exploration import GaussianNoise
from td3.interfaces import Collected, EndedEpisode, MakeNoise, captured
from td3.types import Episode, Float32s, Policy, Rows, StepResult, Transitions
from td3.wording import counted

LARGEST_NOISE = 2**30  # bytes that a noise of the user's own may keep in a checkpoint


class Collector:
    """Steps environments side by side, with the policy and noise."""

    def __init__(
        self,
        envs: Envs,
        seeds: list[int],
        rng: np.random.Generator,
        warmup_steps: int,
        exploration_noise: float,
        make_noise: MakeNoise = GaussianNoise,
        restarts: Restarts | None = None,
        whole_episodes: bool = False,
    ) -> None:
        """Sets up; with `whole_episodes` the warm-up ends with an episode, so that one policy plays each."""
        self.whole_episodes = whole_episodes
        self.envs, self.seeds, self.rng = envs, seeds, rng
        self.restarts = restarts or Restarts()  # of the same environments
        self.warmup_steps, self.exploration_noise = warmup_steps, exploration_noise
        self.observation_map, self.action_map, self.num_envs = envs.observation, envs.action, envs.num_envs
        self.noise = make_noise(envs.num_envs, envs.action.size)
        self._own_noise = type(self.noise) is not GaussianNoise
        self.steps = 0
        self.observation: Rows = np.zeros((envs.num_envs, envs.observation.size), envs.observation.layout.dtype)
        self._started = False
        self._interrupted = False  # whether a step was begun and not ended
        self._returns = np.zeros(envs.num_envs, np.float64)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._env = np.arange(envs.num_envs, dtype=np.int32)

    @classmethod
    def of(cls, config: Config, make_noise: MakeNoise = GaussianNoise) -> "Collector":
        """Makes the environments of a config, and a collector for them."""
        restarts = Restarts(config.restart_failed, config.seed)
        envs = make_envs(
            config.env,
            config.num_envs,
            config.workers,
            config.worker_timeout,
            wrappers=Wrappers.of(config),
            env_args=config.env_args,
            restarts=restarts,
        )
        seeds = seeding.environment_seeds(config.seed, "environments", envs.num_envs)
        rng = seeding.generator(config.seed, "exploration")
        settings = config.warmup_steps, config.exploration_noise
        return cls(envs, seeds, rng, *settings, make_noise, restarts, config.policy_checkpoints)

    def configure(self, config: Config) -> None:
        """Applies changed settings from the next action on."""
        self.warmup_steps, self.exploration_noise = config.warmup_steps, config.exploration_noise

    def start(self) -> None:
        """Begins the first episodes."""
        self.observation = self.envs.reset(self.seeds)
        self._started = True

    def collect(self, policy: Policy) -> Collected:
        """Steps every environment once; returns the transitions and the episodes that ended."""
        if not self._started:
            self.start()
        if self._interrupted:
            self.begin_anew()
        rng_before, noise_before = self.rng.bit_generator.state, captured(self.noise) if self._own_noise else {}
        failures_before = self.restarts.used
        try:
            action = self._choose_action(policy)
            self._interrupted = True
            result = self.envs.step(action)
        except BaseException:
            self.rng.bit_generator.state = rng_before  # as if it had not been tried: a resumed run repeats it
            self.restarts.used = failures_before
            if self._own_noise:
                self.noise.restore(noise_before)
            raise
        self._interrupted = False
        rows = Transitions(
            self.observation,
            action,
            result.reward,
            result.next_observation,
            result.terminated,
            env=self._env,
            first=self._lengths == 0,
        )
        self.observation = result.observation
        valid = int(np.count_nonzero(result.valid))
        self.steps += valid
        if valid < len(result.valid):
            rows = Transitions._make(column[result.valid] for column in rows)
        return Collected(rows, self._ended(result), self.restarts.notes(result.failures) if result.failures else ())

    def begin_anew(self) -> None:
        """Begins every episode again, from seeds that were not used before."""
        seeds = [int(seed) for seed in self.rng.integers(2**32, size=self.num_envs)]
        self.observation = self.envs.reset(seeds, self.envs.steps)
        self._returns[:], self._lengths[:] = 0, 0
        self._interrupted = False

    @property
    def most_bytes(self) -> int:
        """An upper bound for the bytes of `capture`'s arrays."""
        row = self.observation[:1].nbytes + self._returns[:1].nbytes + self._lengths[:1].nbytes
        noise = LARGEST_NOISE if self._own_noise else 0
        return noise + self.num_envs * (row + 4 * LONGEST_TAPE * self.action_map.size)

    def capture(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns plain data and arrays: enough to continue as if never stopped."""
        try:
            episodes = self.envs.capture()
        except EnvironmentFailure:  # a failed environment is the reason for this save: what was learned is saved
            unknown = Episode(None, None, np.zeros((0, self.action_map.size), np.float32))
            episodes = [unknown] * self.num_envs
        data = {
            "steps": self.steps,
            "env_steps": self.envs.steps,
            "chance": seeding.state_of(self.rng),
            "episodes": [{"start": episode.start, "random": episode.random} for episode in episodes],
        }
        actions = {f"actions.{index}": episode.actions for index, episode in enumerate(episodes)}
        noise = {f"noise.{name}": array for name, array in captured(self.noise).items()}
        arrays = {"observation": self.observation, "returns": self._returns, "lengths": self._lengths}
        return data, {**arrays, **actions, **noise}

    def restore(self, data: dict[str, Any], arrays: dict[str, Any], seeds: list[int]) -> list[str]:
        """Restores what `capture` returned; an episode that cannot be restored begins from `seeds`, and is named."""
        self._check(arrays)
        episodes = [
            Episode(episode["start"], episode["random"], arrays[f"actions.{index}"])
            for index, episode in enumerate(data["episodes"])
        ]
        n = self.num_envs
        steps = [int(count) for count in data.get("env_steps", [data["steps"] // n] * n)]  # older checkpoints have none
        if len(steps) != n:
            raise ValueError(f"env_steps has {len(steps)} numbers, not {n}")
        begun = int(data["steps"]) > 0 or any(episode.start is not None for episode in episodes)
        failures: list[str] = [""] * n
        if begun:  # else the first step begins the first episodes
            self.observation, failures = self.envs.restore(episodes, arrays["observation"], seeds, steps)
        lost = np.array([bool(failure) for failure in failures])
        self._returns = np.where(lost, 0, arrays["returns"])
        self._lengths = np.where(lost, 0, arrays["lengths"])
        self.steps, self._started = int(data["steps"]), begun
        if noise := {name[6:]: array for name, array in arrays.items() if name.startswith("noise.")}:
            self.noise.restore(noise)
        seeding.load_state(self.rng, data["chance"])
        return [failure for failure in failures if failure]

    def local_envs(self) -> list[Any]:
        """Returns the Gymnasium environments in this process."""
        return in_this_process(self.envs)

    def __repr__(self) -> str:
        envs = counted(self.num_envs, "environment")
        return f"<{type(self).__name__} of {self.envs.name}: {envs}, {self.steps:,} steps>"

    def close(self) -> None:
        """Closes the environments."""
        self.envs.close()

    def _check(self, arrays: dict[str, Any]) -> None:
        """Raises ValueError for an array that `capture` would not have made."""
        actions = np.empty((0, self.action_map.size), np.float32)
        expected = {"observation": self.observation, "returns": self._returns, "lengths": self._lengths}
        for name, array in arrays.items():
            if name.startswith("noise."):
                continue  # what a noise keeps is its own to check
            like = expected.get(name, actions)
            if array.dtype != like.dtype or array.shape[1:] != like.shape[1:]:
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {like.dtype} {like.shape}")
            if name in expected and len(array) != len(like):
                raise ValueError(f"{name} has {len(array)} rows, not {len(like)}")

    def _choose_action(self, policy: Policy) -> Float32s:
        warming = self.steps - self._lengths[0] <= self.warmup_steps if self.whole_episodes else False
        if warming or self.steps < self.warmup_steps:
            return self.rng.uniform(-1, 1, (self.num_envs, self.action_map.size)).astype(np.float32)
        noise = self.noise.sample(self.rng, self.exploration_noise, self._lengths == 0)
        if self._own_noise:
            noise = self._checked(noise)
        action: Float32s = np.minimum(np.maximum(policy(self.observation) + noise, -1), 1)
        return action

    def _checked(self, noise: Any) -> Float32s:
        """Returns the noise of a user's own class; refuses what an environment could not be stepped with."""
        shape = (self.num_envs, self.action_map.size)
        if np.shape(noise) != shape or not np.issubdtype(np.asarray(noise).dtype, np.floating):
            got = f"{np.asarray(noise).dtype} of {np.shape(noise)}"
            raise ConfigError(f"noise {name_of(type(self.noise))!r} must return floats of {shape}; got {got}.")
        numbers = np.asarray(noise, np.float32)
        if not np.isfinite(numbers).all():
            raise ConfigError(
                f"noise {name_of(type(self.noise))!r} must return finite numbers; got {numbers.tolist()}."
            )
        return numbers

    def _ended(self, result: StepResult) -> list[EndedEpisode]:
        """Adds the step to each episode's return and length; returns those that ended."""
        self._returns += np.where(result.valid, result.reward, 0)
        self._lengths += result.valid
        over = result.terminated | result.truncated
        if not np.count_nonzero(over):
            return []
        ended = []
        for env in np.flatnonzero(over):
            if self._lengths[env]:  # an environment that failed at once has no episode to close
                totals = float(self._returns[env]), int(self._lengths[env]), bool(result.terminated[env])
                ended.append(EndedEpisode(int(env), *totals))
            self._returns[env] = self._lengths[env] = 0
        return ended
