"""The training loop: collect, store, learn, evaluate, save; a generator of events.

    for event in td3.train(td3.Config(env="Pendulum-v1")):
        ...

Nothing is printed, and whoever looks at the events cannot change them. Each event is yielded at a quiet
point, with every transition remembered and its updates done: leaving the loop there loses nothing.
"""

import contextlib
import copy
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from td3 import seeding
from td3.collection import Collected, Collector, Policy
from td3.config import Config, env_name
from td3.environments import Envs, Wrappers, check_apart, in_this_process, make_envs
from td3.environments.actions import all_finite
from td3.environments.descriptions import describe_bounds, describe_layout, oddities
from td3.environments.space_data import observation_to_data, space_to_data
from td3.errors import ConfigError, RunError, TrainingDiverged
from td3.evaluation import play_episodes
from td3.events import (
    EpisodeEnded,
    Evaluated,
    Event,
    Finished,
    Measured,
    Noted,
    Resumed,
    Saved,
    SaveFailed,
    Started,
    Stepped,
)
from td3.filming import Film
from td3.interrupts import Interrupt, deferred
from td3.learner import engine_name, policy_of
from td3.learner.making import engine_for, hand_over, make_learner
from td3.learner.state import bytes_of, load_networks, load_optimizers, network_tensors, optimizer_tensors
from td3.machine import check_room, human
from td3.metrics import Means, evaluation_metrics
from td3.recording import Recorder
from td3.replay import bytes_per_transition
from td3.resuming import Pending, check_just_begun, check_modest, config_of, newest_whole
from td3.storage import Checkpoint, CheckpointWriter, File, Record, RunFolder, Snapshot
from td3.storage.folder import versions
from td3.types import Evaluation, Float32s, Rows, Transitions
from td3.wording import counted


def train(config: Config, run: str | Path | None = None) -> Iterator[Event]:
    """Trains to `config.steps`, keeping the run in the new folder `run` if one is named."""
    session = Session(config, run)
    try:
        yield from session.advance(config.steps)
    finally:
        session.close()


def resume(
    run: str | Path,
    steps: int | None = None,
    env: Any = None,
    trust: bool = False,
    engine: str | None = None,
    film: bool | None = None,
    without_memory: bool = False,
) -> Iterator[Event]:
    """Goes on with a run to its goal, or to `steps`, bit for bit as if it had never stopped.

    An environment that lives in Python code is imported only if it is passed as `env` or `trust` says so. Another
    `engine` goes on from the same numbers, but rounds in its own way. `film` switches films off or on. `without_memory`
    goes on where part of the replay memory is damaged, without the damaged rows.
    """
    asked = {"steps": steps, "engine": engine, "film": film}
    changes = {name: value for name, value in asked.items() if value is not None}
    session = Session.resumed(run, changes, env, trust, without_memory)
    try:
        yield from session.advance(session.config.steps)
    finally:
        session.close()


class Session:
    """A run in progress: everything that changes while it trains."""

    def __init__(self, config: Config, run: str | Path | None = None, threads: int = 0, resumed: bool = False) -> None:
        """`threads` is how many PyTorch used before: its results depend on their number."""
        self.config = config
        wrappers = Wrappers.of(config)
        self.envs = make_envs(
            config.env,
            config.num_envs,
            config.workers,
            config.worker_timeout,
            wrappers=wrappers,
            env_args=config.env_args,
        )
        self._eval_envs: Envs | None = None
        self.folder: RunFolder | None = None
        self.record: Record | None = None
        self.writer: CheckpointWriter | None = None
        self.recorder: Recorder | None = None
        self.film: Film | None = None
        try:
            layout, action_size = self.envs.observation.layout, self.envs.action.size
            engine, _ = engine_for(config, layout, self.envs.num_envs, resumed)
            self.bytes_each = bytes_per_transition(layout, action_size, config.n_step)
            self.bytes = check_room(self.bytes_each, min(config.buffer_size, config.steps))
            self.learner = make_learner(engine, config, layout, action_size)
            self._hand_over(config, threads)
            self.collector = Collector(
                self.envs,
                seeding.environment_seeds(config.seed, "environments", self.envs.num_envs),
                seeding.generator(config.seed, "exploration"),
                config.warmup_steps,
                config.exploration_noise,
            )
            if config.eval_every:
                role = "Evaluation environment"
                self._eval_envs = make_envs(config.env, role=role, wrappers=wrappers, env_args=config.env_args)
                check_apart(env_name(config.env), [*in_this_process(self.envs), *in_this_process(self._eval_envs)])
            self.replay_rng = seeding.generator(config.seed, "replay")
            self.smoothing_rng = seeding.generator(config.seed, "smoothing")
            self.due = 0.0  # updates the schedule has asked for so far
            self.pending: Pending | None = None
            self._torn = ""  # what is half done at this moment: a save made then is not to the bit
            self._saved: tuple[int, int, bool] | None = None  # what of this run the newest checkpoint holds
            self._interrupt: Interrupt | None = None
            self.best: float | None = None
            self.last_evaluation: tuple[int, float] | None = None  # the last evaluation: step, mean
            self.seconds = 0.0
            self.means = Means()  # what the next row of metrics is made of
            self.resumed_notes: tuple[str, ...] | None = None
            self.lost = 0  # rows of the memory that were damaged, and given up
            self.renumbered = False  # so that those that are left have other numbers than on the disk
            self._began: float | None = None  # while it trains: since when
            self._measured = (time.perf_counter(), 0, 0)
            if run is not None:
                self.keep_in(RunFolder.create(run, config))
        except BaseException:
            self.close()
            raise

    def keep_in(self, folder: RunFolder, since: Checkpoint | None = None) -> None:
        """From now on this run is kept there, going on from a checkpoint that it has already."""
        assert folder.root is not None
        self.folder = folder
        self.record = Record(folder.metrics, since.manifest.record.size if since else 0, folder.root)
        keep = (self.config.keep_last, self.config.keep_best)
        self.writer = CheckpointWriter(folder.path, folder.root, *keep, self.versions(), since)
        self._saved = self._now() if since else None
        if self.config.record_updates:
            self.recorder = Recorder(folder.updates, self.config, since.step if since else 0)
        if self.config.film and self._eval_envs:
            wrappers, env_args = Wrappers.of(self.config), self.config.env_args
            self.film = Film(
                folder.film, self.config.env, in_this_process(self._eval_envs), wrappers=wrappers, env_args=env_args
            )
        if since is not None:
            self._notice_changes(since)

    def _notice_changes(self, since: Checkpoint) -> None:
        """Says which files of the run are not what they were when its checkpoint was made."""
        assert self.record is not None
        notes = []
        if self.record.hash.hexdigest() != since.manifest.record.sha256:
            notes.append(f"metrics.jsonl is not what was written before step {since.step:,}.")
        for name in since.manifest.run:
            try:
                since.check_beside(name)
            except RunError:
                notes.append(
                    f"{name} was changed or removed since the run was begun, which changes nothing: "
                    "the run goes on with the settings in its checkpoint."
                )
        self.resumed_notes = (*(self.resumed_notes or ()), *notes)

    @classmethod
    def resumed(
        cls, run: str | Path, changes: dict[str, Any], env: Any, trust: bool, without_memory: bool = False
    ) -> "Session":
        """The session of a run that was stopped or killed, as it was at its newest whole checkpoint."""
        folder = RunFolder.open(run, to_write=True)
        session, chosen = None, None
        try:
            if (begun := folder.begun()) is not None:  # stopped before its first checkpoint: from the beginning
                config = config_of({"config": begun}, env, trust)
                check_modest(config, trust)
                check_just_begun(folder, config)
                session = cls(replace(config, **changes), resumed=True)
                session.resumed_notes = ()
            else:
                session, chosen = cls.of_newest(folder, changes, env, trust, without_memory)
            if "steps" in changes and changes["steps"] < session.step:
                raise ConfigError(
                    f"steps must be at least {session.step:,}, where the run is already; got {changes['steps']:,}."
                )
            session.keep_in(folder, chosen)
            if session.renumbered:
                assert session.writer is not None
                session.writer.segments = []  # all rows are written anew
            if changes or session.renumbered:
                session.save(anew=True)  # the new goal or engine is part of the run from now on
        except BaseException:
            if session is not None:
                session.close()
            folder.release()
            raise
        return session

    @classmethod
    def of(cls, run: str | Path, env: Any) -> "Session":
        """The same, but kept nowhere: the folder is only read."""
        return cls.of_newest(RunFolder.open(run), {}, env, False)[0]

    @classmethod
    def of_newest(
        cls, folder: RunFolder, changes: dict[str, Any], env: Any, trust: bool, without_memory: bool = False
    ) -> tuple["Session", Checkpoint]:
        chosen, wrong = newest_whole(folder, without_memory)
        state = chosen.state()
        config = config_of(state, env, trust)
        check_modest(config, trust)
        torch_before = chosen.manifest.versions.get("engine", "torch") == "torch"
        before = chosen.manifest.threads if torch_before else 0
        session = cls(replace(config, **changes), threads=before, resumed=True)
        try:
            notes = session.restore(chosen, state, without_memory)
            if session.engine == "torch" and before not in (0, session.threads):
                notes.append(told_change("threads", before, session.threads))
        except BaseException:
            session.close()
            raise
        session.resumed_notes = (*(f"Passed over: {one}" for one in wrong), *notes)
        return session, chosen

    def capture(self) -> Snapshot:
        """All that this run is, at a quiet point."""
        playing, arrays = self.collector.capture()
        state = {
            "config": self.config.to_data(),
            "spaces": {
                "observation": observation_to_data(self.envs.observation),
                "action": space_to_data(self.envs.action.space),
            },
            "playing": playing,
            "replay": seeding.state_of(self.replay_rng),
            "smoothing": seeding.state_of(self.smoothing_rng),
            "updates": self.learner.updates,
            "remembered": self.learner.memory.written,
            "due": self.due,
            "best": self.best,
            "judged": self.last_evaluation,
            "pending": self.pending,
            "torn": self._torn,
            "seconds": self._seconds_so_far(),
            "means": self.means.capture(),
        }
        tensors = {
            "networks": network_tensors(self.learner),
            "optimizers": optimizer_tensors(self.learner),
            "playing": arrays,
        }
        score = self.last_evaluation[1] if self.last_evaluation and self.last_evaluation[0] == self.step else None
        return Snapshot(state, tensors, self.step, self.learner.updates, score, self.threads)

    def restore(self, chosen: Checkpoint, state: dict[str, Any], without_memory: bool = False) -> list[str]:
        """Becomes what was captured; random streams last, so that nothing draws from them on the way."""
        size = bytes_of(network_tensors(self.learner))  # no file may be larger than what it is read for
        try:
            load_networks(self.learner, chosen.tensors("networks", size))
            load_optimizers(self.learner, chosen.tensors("optimizers", 2 * size))
            lost = self._fill(chosen, state, without_memory)
            seeds = seeding.environment_seeds(
                self.config.seed, "environments", self.envs.num_envs, chosen.step
            )  # for an episode that cannot be brought back
            playing = chosen.arrays("playing", self.collector.most_bytes)
            notes = [*lost, *self.collector.restore(state["playing"], playing, seeds)]
            if lost:
                self.collector.begin_anew()
            self.learner.updates = int(state["updates"])
            self.due, self.seconds = float(state["due"]), float(state["seconds"])
            self.best = None if state["best"] is None else float(state["best"])
            self.last_evaluation = (int(state["judged"][0]), float(state["judged"][1])) if state["judged"] else None
            self.means.restore(state["means"])
            self.pending = Pending.of(state.get("pending"))
            self._check_counters(chosen)
            if lost:
                self.pending = None  # there may be nothing left to learn from
            seeding.load_state(self.replay_rng, state["replay"])
            seeding.load_state(self.smoothing_rng, state["smoothing"])
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError) as problem:
            raise RunError(f"{chosen.path} does not describe a run: {type(problem).__name__}: {problem}.") from problem
        now = self.versions()
        if state.get("torn"):
            notes.append(
                f"The run was interrupted in the middle of {state['torn']}: from there on it is not to the bit."
            )
        notes += [
            told_change(name, then, now.get(name))
            for name, then in chosen.manifest.versions.items()
            if now.get(name) != then
        ]
        return notes

    def _check_counters(self, chosen: Checkpoint) -> None:
        """Raises ValueError for counters that no run has: a forged one could owe updates for ever."""
        if (self.step, self.learner.updates) != (chosen.step, chosen.manifest.updates) or self.learner.updates < 0:
            raise ValueError(f"step {self.step:,} and update {self.learner.updates:,} are not those of its manifest")
        owed = self.due - self.learner.updates
        most = self.step * self.config.updates_per_step if self.pending else 1
        if not owed < most + 1:
            raise ValueError(f"{owed:g} updates are owed, more than any run owes at step {self.step:,}")

    def _fill(self, chosen: Checkpoint, state: dict[str, Any], without_memory: bool) -> list[str]:
        """The memory as it was; or, where that was asked for, as much of it as is whole, and what is lost."""
        memory = self.learner.memory
        if not without_memory or not chosen.memory_problem():
            chosen.fill(memory, state)
            return []
        self.lost, reasons = chosen.fill_what_is_whole(memory)
        self.renumbered = True
        return [
            f"{self.lost:,} remembered rows are damaged and gone; {memory.written:,} are left, every episode is begun "
            "anew, and from here on the run is not what it would have been.",
            *reasons,
        ]

    def versions(self) -> dict[str, Any]:
        """What the next bytes depend on."""
        return {**versions(), "engine": engine_name(self.engine)}

    def use_engine(self, engine: str) -> None:
        """Another engine performs from the next update on; nothing else changes."""
        config = replace(self.config, engine=engine)
        self._hand_over(config)
        self.learner.config = self.config = config
        if self.writer:
            self.writer.versions = self.versions()

    def _hand_over(self, config: Config, threads: int = 0) -> None:
        self.learner, self.engine, self._engine_note, self.threads = hand_over(self.learner, config, threads)

    @property
    def step(self) -> int:
        return self.collector.steps

    def advance(self, goal: int) -> Iterator[Event]:
        """Trains until `goal` steps are reached. With n environments the last step may go up to n − 1 beyond.

        Whatever ends it early, the run is saved first.
        """
        self._began = time.perf_counter()
        self._measured = (self._began, self.step, self.learner.updates)
        with deferred(self.save) as interrupt:
            self._interrupt = interrupt
            try:
                for event in self._events(goal):
                    if interrupt.asked and isinstance(event, Stepped):
                        raise KeyboardInterrupt
                    interrupt.idle = True
                    yield event
                    interrupt.idle = False
                if interrupt.asked:
                    raise KeyboardInterrupt
            except BaseException as problem:
                interrupt.idle = interrupt.asked = False  # a Ctrl-C from here on waits for the save
                self._save_because_of(problem)
                if interrupt.asked:
                    raise KeyboardInterrupt from None
                raise
            finally:
                self._interrupt = None
                self.seconds, self._began = self._seconds_so_far(), None

    def _events(self, goal: int) -> Iterator[Event]:
        yield Started(self.step, self.config, self._summary(), self._notes(goal))
        if self.resumed_notes is not None:
            yield Resumed(self.step, self.resumed_notes)
        while self.pending or self.step < goal:
            if self.pending is None:
                self._play()
            assert self.pending is not None
            self._learn()
            if self.pending.ended or self._due(self.pending.before, goal):
                yield from list(self._report(self.pending, goal))  # all is done before any of it is told
            self.pending = None
            yield Stepped(self.step, self.learner.updates)
        last = self.last_evaluation[1] if self.last_evaluation else None
        yield Finished(self.step, self.learner.updates, self._seconds_so_far(), self.best, last)

    def _seconds_so_far(self) -> float:
        """The time this run has trained."""
        return self.seconds + (time.perf_counter() - self._began if self._began is not None else 0.0)

    def _save_because_of(self, problem: BaseException) -> None:
        """Saves what there is; the exception tells where, or why not."""
        if isinstance(problem, TrainingDiverged):
            return  # what was saved before is better than this
        try:
            saved = self.save()
        except Exception as failure:
            if isinstance(problem, GeneratorExit):
                raise
            problem.save_problem = str(failure)  # type: ignore[attr-defined]
            problem.add_note(f"The run could not be saved at step {self.step:,}: {failure}")
        else:
            if saved is not None:
                problem.saved = saved  # type: ignore[attr-defined]
                problem.add_note(f"The run was saved at step {self.step:,}: {saved}")

    def _play(self) -> None:
        """One step, remembered; what it owes is pending from then on."""
        before = self.step
        collected = self.collector.collect(self._policy)
        self._torn = "remembering a step"
        self._remember(collected.transitions)
        self.pending = Pending(before, collected.episodes)
        self._schedule(collected)
        self._torn = ""

    def _remember(self, rows: Transitions) -> None:
        if self.learner.normalizer:
            self.learner.normalizer.add(rows)
        if self.config.reward_scale != 1:
            rows = rows._replace(reward=rows.reward * np.float32(self.config.reward_scale))
        self.learner.memory.add(rows)

    def _policy(self, observations: Rows) -> Float32s:
        """The actor; an action that is no number is its fault, not the environment's."""
        actions = self.learner.act(observations)
        if not all_finite(actions):
            raise self._diverged()
        return actions

    def _diverged(self) -> TrainingDiverged:
        return TrainingDiverged(
            f"The networks hold NaN or infinity at step {self.step:,}, update {self.learner.updates:,}: the learning "
            "rate, the rewards or the observations are too large."
        )

    def _schedule(self, collected: Collected) -> None:
        """Counts the updates that are owed after this step."""
        config = self.config
        if config.update_schedule == "step":
            self.due = (self.step - config.update_after) * config.updates_per_step
        elif self.step > config.update_after:
            self.due += sum(length for _, _, length in collected.episodes) * config.updates_per_step

    def _learn(self) -> None:
        """As many updates as are owed."""
        config = self.config
        while self.learner.updates + 1 <= self.due + 1e-9:
            self._torn = "an update"
            if self.recorder and self.recorder.due(self.step, self.learner.updates):
                means = self.recorder.learn(
                    self.learner, self.step, self.replay_rng, self.smoothing_rng, engine_name(self.engine)
                )
            else:
                means = self.learner.learn(self.replay_rng, self.smoothing_rng)
            self.means.add(means, self.learner.updates % config.policy_delay == 0)
            self._torn = ""

    def _due(self, before: int, goal: int) -> bool:
        """Whether there is anything to report but ended episodes."""
        config, step = self.config, self.step
        every = (config.log_every, config.eval_every, config.checkpoint_every)
        return step >= goal or any(crossed(one, before, step) for one in every)

    def _report(self, pending: Pending, goal: int) -> Iterator[Event]:
        config, step, before = self.config, self.step, pending.before
        if not pending.reported:
            for env, total, length in pending.ended:
                self._write(step, {"rollout/ep_return": total, "rollout/ep_length": length, "rollout/env": env})
                yield EpisodeEnded(step, env, total, length)
            if crossed(config.log_every, before, step) or step >= goal:
                yield Measured(step, self._measure())
            self.pending = pending._replace(reported=True)
        evaluated = None
        if self._eval_envs and (crossed(config.eval_every, before, step) or step >= goal):
            yield (evaluated := self._evaluate())
        self.pending = None
        best_now = self.last_evaluation is not None and self.last_evaluation == (step, self.best)
        due = crossed(config.checkpoint_every, before, step) or best_now or step >= goal
        if due and self.writer:
            try:
                yield Saved(step, str(self.save()))
                if self.writer.problem:
                    yield Noted(step, self.writer.problem)
                    self.writer.problem = None
            except RunError as problem:  # told aloud, and training goes on: the checkpoints before are whole
                yield SaveFailed(step, str(problem))
        if evaluated and due:
            self._film_of(evaluated.evaluation, last=step >= goal)
        if self.film and self.film.problem:
            yield Noted(step, self.film.problem)
            self.film.problem = None
        if self.record and self.record.problem:
            yield SaveFailed(step, self.record.problem)
            self.record.problem = None

    def _measure(self) -> dict[str, float]:
        now, step, updates = time.perf_counter(), self.step, self.learner.updates
        then, old_step, old_updates = self._measured
        self._measured = (now, step, updates)
        metrics = self.means.take()
        elapsed = max(now - then, 1e-9)
        metrics["time/steps_per_second"] = (step - old_step) / elapsed
        metrics["time/updates_per_second"] = (updates - old_updates) / elapsed
        self._write(step, metrics)
        if not all(map(np.isfinite, metrics.values())):
            raise self._diverged()
        return metrics

    def _evaluate(self) -> Evaluated:
        assert self._eval_envs is not None
        with self._not_counted(), self._interruptible():
            evaluation = play_episodes(
                self._eval_envs, self._policy, self._starts(), self.config.gamma, self.learner.value
            )
        improved = self.best is None or evaluation.mean > self.best
        self.best = evaluation.mean if improved else self.best
        self.last_evaluation = (self.step, evaluation.mean)
        self._write(self.step, evaluation_metrics(evaluation))
        return Evaluated(self.step, evaluation, improved)

    def _starts(self) -> list[int]:
        """Fresh ones each time, known from the step alone: no score is tuned to its starts, none depends on others."""
        config = self.config
        return seeding.environment_seeds(config.seed, "evaluation environments", config.eval_episodes, self.step)

    def _film_of(self, evaluation: Evaluation, last: bool) -> None:
        """Its first episode once more, in a process of its own; and only when all is saved."""
        if self.film and self.folder and self.folder.in_place():
            with self._not_counted(), self._interruptible():
                self.film.offer(self._policy_to_send, self._starts()[0], evaluation.lengths[0], last)

    def _policy_to_send(self) -> Policy:
        """The actor for another process, which has no GPU of its own."""
        actor, encoder = self.learner.actor, self.learner.critics.encoder
        if self.config.device != "cpu":
            actor, encoder = copy.deepcopy(actor).cpu(), copy.deepcopy(encoder).cpu()
        return policy_of(actor, encoder, self.config, self.learner.normalizer)

    @contextlib.contextmanager
    def _not_counted(self) -> Iterator[None]:
        """Leaves evaluating and filming out of the steps per second."""
        paused = time.perf_counter()
        yield
        then, step, updates = self._measured
        self._measured = (then + time.perf_counter() - paused, step, updates)

    def _interruptible(self) -> contextlib.AbstractContextManager[None]:
        """Nothing of the run is under way in here: Ctrl-C need not wait."""
        return self._interrupt.raised_at_once() if self._interrupt else contextlib.nullcontext()

    def _now(self) -> tuple[int, int, bool]:
        """What a checkpoint made now would hold that another one of the same step might not."""
        return self.step, self.learner.updates, self.pending is None

    def save(self, anew: bool = False) -> Path | None:
        """A checkpoint of this moment, if there is a folder and it has none yet; `anew` even then."""
        if self.writer is None or self.record is None or self.writer.process != os.getpid():
            return None  # a forked child has a copy of the run, and none of its folder
        record = File(self.record.length, self.record.hash.hexdigest())
        if not anew and self.writer.newest is not None and self._saved == self._now():
            return self.writer.newest.path
        snapshot = self.capture()
        if not all(tensor.isfinite().all() for tensor in snapshot.tensors["networks"].values()):
            raise self._diverged()  # what was saved before is better than this
        published = self.writer.publish(snapshot, self.learner.memory, record)
        self._saved = self._now()
        return published.path

    def _write(self, step: int, metrics: dict[str, Any]) -> None:
        if self.record:
            self.record.write(step, metrics)

    def _summary(self) -> dict[str, Any]:
        envs, config = self.envs, self.config
        return {
            "env": env_name(config.env),
            "observation": str(envs.observation.space),
            "observation_size": envs.observation.size,
            "sees": describe_layout(envs.observation.layout),
            "action_size": envs.action.size,
            "action_bounds": describe_bounds(*envs.action.bounds),
            "num_envs": envs.num_envs,
            "workers": config.workers,
            "bytes_per_transition": self.bytes_each,
            "memory_bytes": self.bytes,
            "memory": f"{human(self.bytes)} for {counted(min(config.buffer_size, config.steps), 'transition')}",
            "engine": engine_name(self.engine),
            "device": config.device,
            "threads": self.threads,
        }

    def _notes(self, goal: int) -> tuple[str, ...]:
        notes = [*oddities(self.envs.observation, self.envs.action), *filter(None, [self._engine_note])]
        if self.config.threads > self.threads:
            notes.append(f"threads is {self.config.threads}, and here are {self.threads} cores: so many are used.")
        for name, what in (("warmup_steps", "play at random throughout"), ("update_after", "learn nothing")):
            if getattr(self.config, name) >= goal:
                notes.append(
                    f"{name} is {getattr(self.config, name):,} and steps only {goal:,}: the agent will {what}."
                )
        return tuple(notes)

    def leave(self) -> None:
        """The folder is let go; the run itself goes on in memory."""
        if self.film:
            self.film.close()
        if self.record:
            self.record.close()
        if self.recorder:
            self.recorder.close()
        if self.folder:
            self.folder.release()
        self.record = self.folder = self.writer = self.recorder = self.film = None

    def close(self) -> None:
        self.leave()  # first: what is kept is whole and free, whatever an environment does when it is closed
        self.envs.close()
        if self._eval_envs:
            self._eval_envs.close()


def told_change(name: str, then: Any, now: Any) -> str:
    return f"{name} was {then}, now it is {now}: the same bytes are not to be expected."


def crossed(every: int, before: int, now: int) -> bool:
    """Whether a multiple of `every` was reached on the way from `before` to `now`; never for 0."""
    return every > 0 and now // every > before // every
