"""Where the rooms meet: play, remember, learn, judge, keep; told as a generator of events.

    for event in td3.train(td3.Config(env="Pendulum-v1")):
        ...

Nothing is printed, and whoever looks at the events cannot change them. Each event is yielded at a quiet
point, with every transition remembered and its updates done: leaving the loop there loses nothing.
"""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from td3 import seeding
from td3.collection import Collector, Played
from td3.config import Config, env_name
from td3.environments import make_worlds
from td3.environments.spaces import describe_bounds, oddities
from td3.errors import ConfigError, EnvironmentFailure, TrainingDiverged
from td3.evaluation import play_episodes
from td3.keeping import RunFolder
from td3.learner import ENGINES, Learner
from td3.learner.state import tensors_of
from td3.replay import bytes_per_transition
from td3.replay.room import check_room, human
from td3.types import (
    EpisodeEnded,
    Evaluated,
    Evaluation,
    Event,
    Finished,
    Measured,
    Saved,
    Started,
    Stepped,
    Update,
)


def train(config: Config, run: str | Path | None = None) -> Iterator[Event]:
    """Trains to `config.steps`, keeping the run in the new folder `run` if one is named."""
    session = Session(config, run)
    try:
        yield from session.advance(config.steps)
    finally:
        session.close()


class Session:
    """A run in progress: everything that changes while it trains."""

    def __init__(self, config: Config, run: str | Path | None = None) -> None:
        self.config = config
        self.threads = use_threads(config.threads)
        check_device(config.device)
        self.worlds = make_worlds(config.env, config.num_envs, config.workers, config.worker_timeout)
        try:
            self.bytes_each = bytes_per_transition(self.worlds.observation.size, self.worlds.action.size)
            self.bytes = check_room(self.bytes_each, min(config.buffer_size, config.steps))
            self.engine = next(iter(ENGINES)) if config.engine == "auto" else config.engine
            self.learner = make_learner(self.engine, config, self.worlds.observation.size, self.worlds.action.size)
            self.collector = Collector(
                self.worlds,
                seeding.environment_seeds(config.seed, "environments", self.worlds.num_envs),
                seeding.generator(config.seed, "exploration"),
                config.warmup_steps,
                config.exploration_noise,
            )
            self._judge = make_worlds(config.env) if config.eval_every else None
            self.folder = RunFolder.create(run, config, self.worlds) if run is not None else None
        except BaseException:
            self.worlds.close()
            raise
        self.record = self.folder.record() if self.folder else None
        self.replay_chance = seeding.generator(config.seed, "replay")
        self.smoothing_chance = seeding.generator(config.seed, "smoothing")
        self.due = 0.0  # updates the schedule has asked for so far
        self.best: float | None = None
        self.judged: tuple[int, float] | None = None  # the last evaluation: step, mean
        self.seconds = 0.0
        self._window: deque[Update] = deque(maxlen=1_000)  # what the next row of metrics is made of
        self._measured = (time.perf_counter(), 0, 0)

    @property
    def step(self) -> int:
        return self.collector.steps

    def advance(self, goal: int) -> Iterator[Event]:
        """Trains until `goal` steps are reached. With n environments the last tick may go up to n − 1 beyond."""
        began = time.perf_counter()
        self._measured = (began, self.step, self.learner.updates)
        try:
            yield Started(self.step, self._summary(), self._notes(goal))
            while self.step < goal:
                before = self.step
                played = self.collector.play(self.learner.act)
                self.learner.memory.add(played.transitions)
                self._learn(played)
                yield from self._report(played, before, goal)
                yield Stepped(self.step, self.learner.updates)
            self.seconds += time.perf_counter() - began
            last = self.judged[1] if self.judged else None
            yield Finished(self.step, self.learner.updates, self.seconds, self.best, last)
        except (GeneratorExit, EnvironmentFailure):
            self._save()  # nothing half done is in the networks: a tick is remembered and learned, or neither
            raise

    def _learn(self, played: Played) -> None:
        """As many updates as the schedule owes after this tick."""
        config = self.config
        if config.update_schedule == "step":
            self.due = (self.step - config.update_after) * config.updates_per_step
        elif self.step > config.update_after:
            self.due += sum(length for _, _, length in played.ended) * config.updates_per_step
        while self.learner.updates + 1 <= self.due + 1e-9:
            batch, noise = self.learner.draw(self.replay_chance, self.smoothing_chance)
            self._window.append(self.learner.update(batch, noise))

    def _report(self, played: Played, before: int, goal: int) -> Iterator[Event]:
        config, step = self.config, self.step
        for env, total, length in played.ended:
            self._write(step, {"rollout/ep_return": total, "rollout/ep_length": length, "rollout/env": env})
            yield EpisodeEnded(step, env, total, length)
        if crossed(config.log_every, before, step) or step >= goal:
            yield Measured(step, self._measure())
        if self._judge and (crossed(config.eval_every, before, step) or step >= goal):
            yield self._evaluate()
        best_now = self.judged is not None and self.judged == (step, self.best)
        due = crossed(config.checkpoint_every, before, step) or best_now or step >= goal
        if due and (path := self._save()):
            yield Saved(step, path)

    def _measure(self) -> dict[str, float]:
        now, step, updates = time.perf_counter(), self.step, self.learner.updates
        then, old_step, old_updates = self._measured
        self._measured = (now, step, updates)
        metrics = window_means(self._window)
        self._window.clear()
        elapsed = max(now - then, 1e-9)
        metrics["time/steps_per_second"] = (step - old_step) / elapsed
        metrics["time/updates_per_second"] = (updates - old_updates) / elapsed
        self._write(step, metrics)
        if not all(map(np.isfinite, metrics.values())):
            raise TrainingDiverged(
                f"The networks hold NaN or infinity at step {step:,}, update {updates:,}: the learning rate, the "
                "rewards or the observations are too large."
            )
        return metrics

    def _evaluate(self) -> Evaluated:
        assert self._judge is not None
        paused = time.perf_counter()
        # Fresh starts each time, known from the step alone: no score is tuned to its starts, none depends on others.
        config = self.config
        seeds = seeding.environment_seeds(config.seed, "evaluation environments", config.eval_episodes, self.step)
        evaluation = play_episodes(self._judge, self.learner.act, seeds)
        improved = self.best is None or evaluation.mean > self.best
        self.best = evaluation.mean if improved else self.best
        self.judged = (self.step, evaluation.mean)
        self._write(self.step, evaluation_metrics(evaluation))
        then, *counters = self._measured  # judging is not training: it does not count as slowness
        self._measured = (then + time.perf_counter() - paused, counters[0], counters[1])
        return Evaluated(self.step, evaluation, improved)

    def _save(self) -> str | None:
        if self.folder is None:
            return None
        score = self.judged[1] if self.judged and self.judged[0] == self.step else None
        return str(self.folder.save(tensors_of(self.learner), self.step, self.learner.updates, score).path)

    def _write(self, step: int, metrics: dict[str, Any]) -> None:
        if self.record:
            self.record.write(step, metrics)

    def _summary(self) -> dict[str, Any]:
        worlds, config = self.worlds, self.config
        return {
            "env": env_name(config.env),
            "observation": str(worlds.observation.space),
            "observation_size": worlds.observation.size,
            "action_size": worlds.action.size,
            "action_bounds": describe_bounds(*worlds.action.bounds),
            "num_envs": worlds.num_envs,
            "workers": config.workers,
            "bytes_per_transition": self.bytes_each,
            "memory_bytes": self.bytes,
            "memory": f"{human(self.bytes)} for {min(config.buffer_size, config.steps):,} transitions",
            "engine": self.engine,
            "device": config.device,
            "threads": self.threads,
        }

    def _notes(self, goal: int) -> tuple[str, ...]:
        notes = list(oddities(self.worlds.observation, self.worlds.action))
        for name, what in (("warmup_steps", "play at random throughout"), ("update_after", "learn nothing")):
            if getattr(self.config, name) >= goal:
                notes.append(
                    f"{name} is {getattr(self.config, name):,} and steps only {goal:,}: the agent will {what}."
                )
        return tuple(notes)

    def close(self) -> None:
        self.worlds.close()
        if self._judge:
            self._judge.close()
        if self.record:
            self.record.close()
            self.record = None


def make_learner(engine: str, config: Config, observation_size: int, action_size: int) -> Learner:
    seed = int(seeding.sequence(config.seed, "weights").generate_state(1, np.uint64)[0] >> 1)
    try:
        return ENGINES[engine](observation_size, action_size, config, seed)
    except (MemoryError, RuntimeError) as problem:
        if "alloc" not in str(problem):
            raise
        raise ConfigError(
            f"buffer_size and hidden must fit in memory; {config.buffer_size:,} transitions with layers of "
            f"{','.join(map(str, config.hidden))} do not."
        ) from problem


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` was reached on the way from `before` to `now`; never for 0."""
    return every > 0 and now // every > before // every


def window_means(window: "deque[Update]") -> dict[str, float]:
    """Means over the updates since the last row; nothing where there were none."""
    if not window:
        return {}
    names = {"critic_loss": "critic_loss", "q1_mean": "q1", "q2_mean": "q2", "target_mean": "target"}
    means = {
        f"train/{name}": float(torch.stack([getattr(update, field) for update in window]).mean())
        for name, field in names.items()
    }
    actor_losses = [update.actor_loss for update in window if update.actor_loss is not None]
    if actor_losses:
        means["train/actor_loss"] = float(torch.stack(actor_losses).mean())
    return means


def evaluation_metrics(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "eval/mean_return": evaluation.mean,
        "eval/std_return": evaluation.std,
        "eval/returns": evaluation.returns,
        "eval/lengths": evaluation.lengths,
    }


def use_threads(threads: int) -> int:
    """Sets and tells the number of threads; results are the same bytes only for the same number."""
    if threads == 0:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(threads)
    return threads


def check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device must be cpu here: this PyTorch sees no CUDA GPU; got 'cuda'.")
