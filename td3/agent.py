"""A trained policy in the environment's own units, and the short way: learn, predict, save, load."""

import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from td3 import seeding
from td3.config import SETTINGS, Config, checked, env_name
from td3.config.trust import why_not_trusted
from td3.environments import ActionMap, ObservationMap, Restarts, Wrappers, make_envs, make_single
from td3.environments.descriptions import describe_layout
from td3.environments.faults import BadValue
from td3.environments.space_data import check_kinds, space_from_data
from td3.errors import ConfigError, RunError
from td3.evaluation import play_episodes
from td3.learner import policy_of
from td3.learner.making import bytes_of_policy
from td3.learner.state import bytes_of, load_networks, network_tensors
from td3.loop import advance
from td3.machine import available, check_room, human
from td3.parts import Parts, check_parts
from td3.resuming import config_of
from td3.session import Session
from td3.storage import Checkpoint, RunFolder
from td3.synonyms import instead_of
from td3.types import Evaluation, Float32s, Policy, Rows
from td3.wording import brief, counted

POLICIES = "current", "checkpoint"


class Agent:
    """An actor with what it needs to read observations and to speak in the environment's units."""

    def __init__(
        self, policy: Policy, observation: ObservationMap, action: ActionMap, config: Config, step: int
    ) -> None:
        self.policy, self.observation, self.action = policy, observation, action  # rows → actions in [−1, 1]
        self.config, self.step = config, step
        self.trusted = True  # whether the environment that the config names may be imported
        self.notes: tuple[str, ...] = ()  # what was odd about where it came from

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> Any:
        """The action; a batch of observations gives a batch of actions. With `rng`, exploration noise too."""
        try:
            rows, batch = self.observation.rows(observation)
        except BadValue as problem:
            raise ConfigError(f"{problem}.") from None
        actions = self.policy(rows)
        if rng is not None:
            noise = rng.standard_normal(actions.shape, dtype=np.float32)
            actions = np.clip(actions + self.config.exploration_noise * noise, -1, 1)
        executed = self.action.to_env(actions)
        return executed if batch else executed[0, ...]

    def __repr__(self) -> str:
        return f"<td3.Agent of {env_name(self.config.env)}, trained for {counted(self.step, 'step')}>"

    def make_env(self) -> Any:
        """The Gymnasium environment as this agent sees it: drawn, shrunk, stacked and joined as in training."""
        if not self.trusted:
            raise ConfigError(why_not_trusted(self.config))
        return make_single(self.config.env, Wrappers.of(self.config), self.config.env_args)


def load(
    run: str | Path,
    checkpoint: str | int = "last",
    env: Any = None,
    trust: bool = False,
    learner: Any = None,
    policy: str = "current",
) -> Agent:
    """Opens the agent of a run, from its last, its best or a numbered checkpoint.

    Only data is read: no code that the run names is imported. An environment that lives in Python code
    (`module:Id-v0`, a callable) is needed only to evaluate: pass it as `env`, or say `trust=True`. A run that was
    trained with a `learner` of your own needs it. `policy` is `current`, the actor, or `checkpoint`: the one that
    `policy_checkpoints` kept.
    """
    if policy not in POLICIES:
        raise ConfigError(f"policy must be one of {', '.join(POLICIES)}; got {brief(policy)}.")
    read = partial(_agent_in, env=env, parts=Parts.of(learner=learner), kept=policy == "checkpoint")
    _, agent, wrong = RunFolder.open(run).newest(read, brief(checkpoint, str))
    agent.trusted = trust or env is not None or not why_not_trusted(agent.config)
    agent.notes = (*(f"Passed over: {problem}" for problem in wrong), *agent.notes)
    return agent


def _agent_in(chosen: Checkpoint, env: Any, parts: Parts, kept: bool) -> Agent:
    """Reads what a checkpoint holds of its agent, and nothing that its config does not explain."""
    state = chosen.state()
    config = config_of(state, env, trust=True)  # nothing is imported here
    named = state.get("parts", {})
    if isinstance(named, Mapping):  # to act, the learner alone is needed
        named = {name: part for name, part in named.items() if name == "learner"}
    notes = check_parts(named, parts)
    check_kinds(state.get("spaces"))
    try:
        spaces = state["spaces"]
        observation = Wrappers.of(config).map_of(space_from_data(spaces["observation"]))
        action = ActionMap(space_from_data(spaces["action"]))
        check_fits(bytes_of_policy(config, observation.layout, action.size))
        small = replace(config, buffer_size=1, device="cpu", compile=False)  # it acts, and learns nothing
        learner = parts.make_learner(config)(observation.layout, action.size, small, 0)
    except (LookupError, TypeError, ValueError, AssertionError, ArithmeticError, MemoryError, RuntimeError) as problem:
        raise RunError(f"{chosen.path} describes no agent: {type(problem).__name__}: {problem}.") from problem
    load_networks(learner, chosen.tensors("networks", bytes_of(network_tensors(learner))))
    for network in learner.networks().values():
        network.requires_grad_(False)
    policy = learner.checkpoint_policy() if kept else policy_of(learner)
    if policy is None:
        raise ConfigError(
            "policy must be current here: the run has kept no other (policy_checkpoints); got 'checkpoint'."
        )
    agent = Agent(policy, observation, action, config, chosen.step)
    agent.notes = tuple(notes)
    return agent


def check_fits(size: int) -> None:
    """Refuses networks that this machine has no room for, before a page of them is touched."""
    room, whose = available()
    if room is not None and size > room:
        raise RunError(f"The run's networks take {human(size)}, and {whose} has room for {human(room)}.")


def evaluate(agent: "Agent | TD3", episodes: int = 10, seed: int = 0) -> Evaluation:
    """Plays episodes without noise, from seeds that no evaluation during training used."""
    agent = agent.agent if isinstance(agent, TD3) else agent
    if not isinstance(agent, Agent):
        raise ConfigError(f"agent must be a td3.Agent, as td3.load(run) returns; got {brief(agent)}.")
    env = agent.config.env
    if not agent.trusted:
        raise ConfigError(why_not_trusted(agent.config))
    episodes, seed = checked("eval_episodes", episodes), checked("seed", seed)
    restarts = Restarts(agent.config.restart_failed, seed)
    envs = make_envs(env, wrappers=Wrappers.of(agent.config), env_args=agent.config.env_args, restarts=restarts)
    try:
        now, trained = ((describe_layout(one.observation.layout), one.action.size) for one in (envs, agent))
        if now != trained:
            raise ConfigError(
                f"env {env!r} has {now[0]} and {counted(now[1], 'action')}; "
                f"the agent was trained with {trained[0]} and {counted(trained[1], 'action')}."
            )
        stream = "final evaluation environments"
        seeds, spare = seeding.environment_seeds(seed, stream, episodes), seeding.further_seeds(seed, stream, episodes)
        return play_episodes(envs, agent.policy, seeds, agent.config.gamma, spare=spare)
    finally:
        envs.close()


class TD3:
    """The short way: `TD3("Pendulum-v1", seed=0).learn(20_000).save("pendulum")`.

    Every setting of `Config` is a keyword, and so is every part of your own (`learner`, `sampler`, `noise`); evaluation
    while learning is off unless `eval_every` is given.
    """

    def __init__(self, env: Any = SETTINGS["env"].default, *others: Any, **settings: Any) -> None:
        if others:  # as in TD3("MlpPolicy", "Pendulum-v1")
            raise ConfigError(
                "TD3 takes the environment alone without a name, as in TD3('Pendulum-v1', seed=0), and has one kind of "
                f"policy; got {', '.join(map(brief, (env, *others)))}."
            )
        own = {name: settings.pop(name) for name in Parts._fields if name in settings}
        self.parts = Parts.of(**own)
        self.config = Config(env=env, **{"eval_every": 0, **settings})
        self._session: Session | None = None
        self._loaded: Agent | None = None  # until it learns on, from this folder
        self._folder: Path | None = None
        self._rng = seeding.generator(self.config.seed, "predicting")

    def learn(self, steps: int | None = None, **others: Any) -> Self:
        """Trains `steps` further steps; a loaded agent continues exactly where it was saved.

        With `stop_at`, `stop_after` or `stop_when_sick` it may be fewer: `stopped` says why.
        """
        for name in others:  # as in learn(total_timesteps=20_000)
            there = instead_of(name) or "settings are given to TD3(...)"
            raise ConfigError(f"{name} is no argument of learn: {there}.")
        steps = int(checked("steps", steps))
        session = self._open(steps)
        check_room(session.bytes_each, min(self.config.buffer_size, session.step + steps))
        session.progress.train_on()
        for _ in advance(session, session.step + steps):
            pass
        return self

    @property
    def stopped(self) -> str:
        """Why the last `learn` stopped by itself, one sentence; empty if it did not."""
        stop = self._session.progress.stopped if self._session else None
        return stop.reason if stop else ""

    def predict(self, observation: Any, deterministic: bool = True) -> tuple[Any, None]:
        """The action, and None where other libraries return a recurrent state."""
        return self.agent.act(observation, None if deterministic else self._rng), None

    def use_engine(self, engine: str) -> Self:
        """Another engine, `native` or `torch`, performs from here on; what was learned stays."""
        session = self._open(1)
        session.use_engine(engine)
        self.config = replace(self.config, engine=session.config.engine)
        return self

    def save(self, path: str | Path) -> Self:
        """Keeps everything in a new folder, for `TD3.load`, `td3.load`, `td3 evaluate` and `td3 resume`."""
        session = self._open(1)
        session.config = replace(session.config, steps=max(1, session.step))
        session.keep_in(RunFolder.create(path, session.config, session.parts.names()))
        try:
            session.save()
        finally:
            session.leave()
        return self

    @classmethod
    def load(cls, path: str | Path, env: Any = None, trust: bool = False, **parts: Any) -> Self:
        """Opens what `save` wrote, or any run; parts of your own that it was trained with are passed again."""
        agent = load(path, env=env, trust=trust, learner=parts.get("learner"))
        loaded = cls(**{**agent.config.to_data(), "env": agent.config.env}, **parts)
        loaded._loaded, loaded._folder = agent, Path(path)
        return loaded

    @property
    def agent(self) -> Agent:
        """The policy as it is now."""
        if self._loaded is not None:
            return self._loaded
        session = self._open(1)
        collector = session.collector

        def policy(rows: Rows) -> Float32s:
            return session.learner.act(rows)  # whichever learner the session has then

        return Agent(policy, collector.observation_map, collector.action_map, self.config, session.step)

    def __repr__(self) -> str:
        step = self._session.step if self._session else self._loaded.step if self._loaded else 0
        return f"<td3.TD3 of {env_name(self.config.env)}, trained for {counted(step, 'step')}>"

    def _open(self, steps: int) -> Session:
        if self._session is None:
            if self._loaded is not None and self._folder is not None:
                env = self.config.env if self._loaded.trusted else None
                self._session = Session.of(self._folder, env, self.parts)
            else:
                self._session = Session(replace(self.config, steps=steps), parts=self.parts)
            weakref.finalize(self, self._session.close)
            self._loaded = None
        return self._session
