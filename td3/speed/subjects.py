"""Who is measured: our engines, and the peers that are installed, all with the same networks, batch and data.

A subject makes runs: functions that perform so many updates, or environment steps with one update each.
"""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
import torch

from td3.config import Config
from td3.learner import ENGINES, described, why_not_native
from td3.speed.cases import Case
from td3.training import Session
from td3.types import Layout, Stepped, Transitions

Run = Callable[[int], None]
ROWS = 5_000  # remembered transitions; enough that no cache holds them all
WARMUP = 300  # random steps before an end-to-end run learns


class Subject(ABC):
    name: str
    version: str

    @abstractmethod
    def updates(self, case: Case) -> Run:
        """Performs so many updates of such networks."""

    @abstractmethod
    def steps(self, env: str, case: Case) -> Run:
        """Plays so many steps, with one update each."""


class Ours(Subject):
    def __init__(self, engine: str) -> None:
        self.engine, self.name = engine, f"td3 {engine}"
        self.version = described(engine)

    def updates(self, case: Case, rows: int = ROWS) -> Run:
        learner = ENGINES[self.engine](Layout(case.observations), case.actions, self._config("none", case, rows), 0)
        learner.memory.add(some_transitions(case, rows))
        replay, smoothing = np.random.default_rng(1), np.random.default_rng(2)

        def run(count: int) -> None:
            for _ in range(count):
                learner.learn(replay, smoothing)

        return run

    def steps(self, env: Any, case: Case, num_envs: int = 1) -> Run:
        return self.playing(self.session(env, case, num_envs))

    def session(self, env: Any, case: Case, num_envs: int = 1) -> Session:
        threads = torch.get_num_threads()
        return Session(self._config(env, case, 100_000, num_envs=num_envs, threads=threads))

    def playing(self, session: Session) -> Run:
        events = session.advance(10**9)

        def run(count: int) -> None:
            goal = session.step + count
            for event in events:
                if isinstance(event, Stepped) and event.step >= goal:
                    return

        run(WARMUP)
        return run

    def _config(self, env: Any, case: Case, rows: int, **settings: Any) -> Config:
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


class StableBaselines(Subject):
    """Stable-Baselines3, or its sibling in JAX, which is used alike."""

    def __init__(self, name: str, module: str, package: str) -> None:
        self.name, self.module = name, module
        self.version = version(package)

    def updates(self, case: Case) -> Run:
        model = self._model(Still(case), case, ROWS)
        model.learn(1)  # sets up what its training needs
        columns = some_transitions(case, ROWS)
        for observation, action, reward, following, terminated in zip(*columns[:5], strict=True):
            model.replay_buffer.add(
                observation[None], following[None], action[None], reward[None], terminated[None], [{}]
            )

        def run(count: int) -> None:
            at_once = 32 if count % 32 == 0 else 8  # JAX compiles once for each number, and gains from a larger one
            for _ in range(count // at_once):
                model.train(gradient_steps=at_once, batch_size=case.batch)

        return run

    def steps(self, env: str, case: Case) -> Run:
        model = self._model(gymnasium.make(env), case, 100_000)
        model.learn(WARMUP)
        return lambda count: model.learn(count, reset_num_timesteps=False)

    def _model(self, env: Any, case: Case, rows: int) -> Any:
        algorithm = importlib.import_module(self.module).TD3
        return algorithm(
            "MlpPolicy",
            env,
            batch_size=case.batch,
            buffer_size=rows,
            learning_rate=3e-4,
            learning_starts=WARMUP,
            policy_delay=2,
            train_freq=1,
            gradient_steps=1,
            policy_kwargs={"net_arch": list(case.hidden)},
            seed=0,
            device="cpu",
        )


class Still(gymnasium.Env[Any, Any]):
    """An environment that is never played: it only has the right sizes."""

    def __init__(self, case: Case) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (case.observations,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (case.actions,), np.float32)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros(self.observation_space.shape or (), np.float32), {}

    def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(self.observation_space.shape or (), np.float32), 0.0, False, False, {}


def some_transitions(case: Case, rows: int) -> Transitions:
    chance = np.random.default_rng(0)
    return Transitions.in_a_row(
        chance.standard_normal((rows, case.observations), dtype=np.float32),
        chance.uniform(-1, 1, (rows, case.actions)).astype(np.float32),
        chance.standard_normal(rows, dtype=np.float32),
        chance.standard_normal((rows, case.observations), dtype=np.float32),
        chance.random(rows) < 0.1,
    )


def subjects() -> Iterator[Subject]:
    """All there are on this machine, ours first."""
    if not why_not_native(Config()):
        yield Ours("native")
    yield Ours("torch")
    if importlib.util.find_spec("stable_baselines3"):
        yield StableBaselines("Stable-Baselines3", "stable_baselines3", "stable_baselines3")
    if importlib.util.find_spec("sbx"):
        yield StableBaselines("SBX (JAX)", "sbx", "sbx_rl")
