"""Who is measured: our engines, and the peers that are installed, all with the same networks, batch and data.

A library makes runs: functions that perform so many updates, or environment steps with one update each.
"""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
import torch

from td3.benchmark.cases import Case, ImageCase
from td3.config import Config
from td3.environments import make_single
from td3.events import Stepped
from td3.learner import ENGINES, Learner, engine_name, why_not_native
from td3.loop import advance
from td3.session import Session
from td3.types import Layout, Transitions

Workload = Callable[[int], None]
ROWS = 5_000  # remembered transitions; enough that no cache holds them all
WARMUP = 300  # random steps before an end-to-end run learns


class Library(ABC):
    """An implementation of TD3 that can be measured."""

    name: str
    version: str

    @abstractmethod
    def updates(self, case: Case) -> Workload:
        """Performs so many updates of such networks."""

    @abstractmethod
    def steps(self, env: str, case: Case) -> Workload:
        """Plays so many steps, with one update each."""


class Td3Library(Library):
    """This one, by one of its engines."""

    def __init__(self, engine: str) -> None:
        self.engine, self.name = engine, f"td3 {engine}"
        self.version = engine_name(engine)

    def updates(self, case: Case, rows: int = ROWS) -> Workload:
        """Returns a workload of updates from a memory with this many rows."""
        learner = ENGINES[self.engine](Layout(case.observations), case.actions, self.config("none", case, rows), 0)
        learner.memory.add(some_transitions(case, rows))
        return self.learning(learner)

    def learning(self, learner: Learner) -> Workload:
        """Returns a workload of updates of this learner."""
        replay, smoothing = np.random.default_rng(1), np.random.default_rng(2)

        def run(count: int) -> None:
            for _ in range(count):
                learner.learn(replay, smoothing)

        return run

    def steps(self, env: Any, case: Case, num_envs: int = 1) -> Workload:
        """Returns a workload of training steps in this environment."""
        return self.playing(self.session(env, case, num_envs))

    def session(self, env: Any, case: Case, num_envs: int = 1) -> Session:
        """Makes a session that trains in this environment."""
        threads = torch.get_num_threads()
        return Session(self.config(env, case, 100_000, num_envs=num_envs, threads=threads))

    def playing(self, session: Session) -> Workload:
        """Plays the warm-up, and returns a workload of further steps in this session."""
        events = advance(session, 10**9)

        def run(count: int) -> None:
            goal = session.step + count
            for event in events:
                if isinstance(event, Stepped) and event.step >= goal:
                    return

        run(WARMUP)
        return run

    def config(self, env: Any, case: Case | ImageCase, rows: int, **settings: Any) -> Config:
        """Makes the config of a case: its networks and batch, this engine, no evaluation."""
        return Config(
            env=env,
            hidden=case.hidden,
            batch_size=case.batch,
            buffer_size=rows,
            warmup_steps=WARMUP,
            eval_every=0,
            engine=self.engine,
            steps=10**9,
            **settings,
        )


class StableBaselines(Library):
    """Stable-Baselines3, or its sibling in JAX, which is used alike."""

    def __init__(self, name: str, module: str, package: str) -> None:
        self.name, self.module = name, module
        self.version = version(package)

    def updates(self, case: Case) -> Workload:
        """Returns a workload of updates from a full memory."""
        seen = gymnasium.spaces.Box(-np.inf, np.inf, (case.observations,), np.float32)
        model = self.model(DummyEnv(seen, case.actions), case, ROWS)
        model.learn(1)  # sets up what its training needs
        fill(model.replay_buffer, some_transitions(case, ROWS))

        def run(count: int) -> None:
            at_once = 32 if count % 32 == 0 else 8  # JAX compiles once for each number, and gains from a larger one
            for _ in range(count // at_once):
                model.train(gradient_steps=at_once, batch_size=case.batch)

        return run

    def steps(self, env: str, case: Case) -> Workload:
        """Returns a workload of training steps in this environment."""
        model = self.model(make_single(env), case, 100_000)
        model.learn(WARMUP)
        return lambda count: model.learn(count, reset_num_timesteps=False)

    def model(
        self, env: Any, case: Case | ImageCase, rows: int, policy: str = "MlpPolicy", **policy_settings: Any
    ) -> Any:
        """Makes the library's TD3 with the networks, batch and memory of a case."""
        algorithm = importlib.import_module(self.module).TD3
        return algorithm(
            policy,
            env,
            batch_size=case.batch,
            buffer_size=rows,
            learning_rate=3e-4,
            learning_starts=WARMUP,
            policy_delay=2,
            train_freq=1,
            gradient_steps=1,
            policy_kwargs={"net_arch": list(case.hidden), **policy_settings},
            seed=0,
            device="cpu",
        )


def fill(buffer: Any, rows: Transitions) -> None:
    """Transitions into a replay buffer of Stable-Baselines3, which takes one at a time."""
    shape = buffer.observation_space.shape
    for observation, action, reward, following, terminated in zip(*rows[:5], strict=True):
        before, after = observation.reshape(1, *shape), following.reshape(1, *shape)
        buffer.add(before, after, action[None], reward[None], terminated[None], [{}])


class DummyEnv(gymnasium.Env[Any, Any]):
    """An environment that is never played: it only has the right sizes."""

    def __init__(self, observation_space: gymnasium.spaces.Box, actions: int) -> None:
        self.observation_space = observation_space
        self.action_space = gymnasium.spaces.Box(-1, 1, (actions,), np.float32)
        self._seen = np.zeros(observation_space.shape, observation_space.dtype)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the one observation."""
        return self._seen, {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Returns the one observation, with reward 0; the episode never ends."""
        return self._seen, 0.0, False, False, {}


def some_transitions(case: Case, rows: int) -> Transitions:
    """Returns random transitions of the case's sizes, the same ones every time."""
    rng = np.random.default_rng(0)
    return Transitions.in_a_row(
        rng.standard_normal((rows, case.observations), dtype=np.float32),
        rng.uniform(-1, 1, (rows, case.actions)).astype(np.float32),
        rng.standard_normal(rows, dtype=np.float32),
        rng.standard_normal((rows, case.observations), dtype=np.float32),
        rng.random(rows) < 0.1,
    )


def libraries() -> Iterator[Library]:
    """All there are on this machine, ours first."""
    if not why_not_native(Config()):
        yield Td3Library("native")
    yield Td3Library("torch")
    if importlib.util.find_spec("stable_baselines3"):
        yield StableBaselines("Stable-Baselines3", "stable_baselines3", "stable_baselines3")
    if importlib.util.find_spec("sbx"):
        yield StableBaselines("SBX (JAX)", "sbx", "sbx_rl")
