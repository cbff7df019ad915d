"""A run in progress: what it is made of, how it is opened, saved and closed."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from td3 import seeding
from td3.config import Config, env_name
from td3.diagnosis import Evidence
from td3.environments import Envs, Restarts, Wrappers, check_apart, in_this_process, make_envs
from td3.environments.actions import all_finite
from td3.environments.space_data import check_kinds, observation_to_data, space_to_data
from td3.errors import ConfigError, RunError, TrainingDiverged
from td3.interfaces import AnyCollector
from td3.interrupts import Interrupt
from td3.learner import engine_name
from td3.learner.making import check_networks, engine_for, hand_over, make_learner
from td3.learner.state import capture_learner, restore_learner
from td3.machine import check_room
from td3.metrics import CHANGED, FAILED
from td3.parts import USUAL, Parts, changed_parts, check_parts
from td3.progress import Clock, Progress
from td3.replay import bytes_per_transition
from td3.resuming import check_just_begun, check_modest, config_of, newest_whole
from td3.run_output import RunOutput
from td3.schedule import check_changeable, differences
from td3.stopping import why_stop
from td3.storage import Checkpoint, RunFolder, Snapshot
from td3.storage.versions import versions
from td3.summary import change_note, notes, summary
from td3.types import Float32s, Rows


class Session:
    """A run in progress: everything that changes while it trains."""

    def __init__(
        self,
        config: Config,
        run: str | Path | None = None,
        parts: Parts = USUAL,
        threads: int = 0,
        resumed: bool = False,
    ) -> None:
        """Sets up; `threads` is how many PyTorch used before, for its results depend on their number."""
        self.config, self.parts, self.closed = config, parts, False
        self.output: RunOutput | None = None
        self.eval_envs: Envs | None = None
        self.collector: AnyCollector = parts.build("collector", config, partial(parts.build, "noise"))
        own = getattr(self.collector, "restarts", None)  # a collector of the user's own need not have any
        self.restarts: Restarts = own or Restarts(config.restart_failed, config.seed)
        try:
            layout, action_size = self.collector.observation_map.layout, self.collector.action_map.size
            engine, _ = engine_for(config, layout, self.collector.num_envs, resumed)
            self.bytes_each = bytes_per_transition(layout, action_size, config.n_step, config.sampling)
            self.bytes = check_room(self.bytes_each, min(config.buffer_size, config.steps))
            self.learner = make_learner(
                engine, config, layout, action_size, parts.make_learner(config), parts.make_sampler(config)
            )
            self._hand_over(config, threads)
            if config.eval_every:
                self.eval_envs = make_envs(
                    config.env,
                    role="Evaluation environment",
                    wrappers=Wrappers.of(config),
                    env_args=config.env_args,
                    restarts=self.restarts,
                )
                check_apart(env_name(config.env), [*self.collector.local_envs(), *in_this_process(self.eval_envs)])
            self.replay_rng = seeding.generator(config.seed, "replay")
            self.smoothing_rng = seeding.generator(config.seed, "smoothing")
            self.progress = Progress(self.learner.MEANS, self.learner.DELAYED)
            self.clock = Clock()
            self.evidence = Evidence(config)  # what a diagnosis is made of
            self.resumed_notes: tuple[str, ...] | None = None
            self._changes: dict[str, list[Any]] = {}  # settings changed when the run was resumed: [before, after]
            self.lost = 0  # rows of the memory that were damaged, and given up
            self.renumbered = False  # so that those that are left have other numbers than on the disk
            self._saved: tuple[int, int, bool, int] | None = None  # what of this run the newest checkpoint holds
            self.interrupt: Interrupt | None = None
            self.measurable = True  # whether its health can be measured: a learner of another kind may have none
            self.changed = False  # whether a setting was, since the last checkpoint
            if run is not None:
                self.keep_in(RunFolder.create(run, config, parts.names()))
        except BaseException:
            self.close()
            raise

    @classmethod
    def resumed(
        cls,
        run: str | Path,
        changes: dict[str, Any],
        env: Any,
        trust: bool,
        without_memory: bool = False,
        parts: Parts = USUAL,
    ) -> "Session":
        """Opens a run that was stopped or killed, as it was at its newest whole checkpoint."""
        folder = RunFolder.open(run, to_write=True)
        session, chosen = None, None
        try:
            if (begun := folder.begun()) is not None:  # stopped before its first checkpoint: from the beginning
                parts_notes = check_parts(begun.pop("parts", {}), parts)
                config = config_of({"config": begun}, env, trust)
                check_modest(config, trust)
                check_just_begun(folder, config)
                session = cls(replace(config, **changes), parts=parts, resumed=True)
                session.resumed_notes = tuple(parts_notes)
                session._changed_from(config)
            else:
                session, chosen = cls.of_newest(folder, changes, env, trust, without_memory, parts)
            if "steps" in changes and changes["steps"] < session.step:
                raise ConfigError(
                    f"steps must be at least {session.step:,}, where the run is already; got {changes['steps']:,}."
                )
            session.keep_in(folder, chosen)
            if session.renumbered and session.output:
                session.output.rewrite_memory()
            session.record_changes(session._changes)
            if changes or session.renumbered:
                session.save(anew=True)  # the new goal or setting is part of the run from now on
        except BaseException:
            if session is not None:
                session.close()
            folder.release()
            raise
        return session

    @classmethod
    def of(cls, run: str | Path, env: Any, parts: Parts = USUAL) -> "Session":
        """Opens a run without writing to it."""
        return cls.of_newest(RunFolder.open(run), {}, env, False, parts=parts)[0]

    @classmethod
    def of_newest(
        cls,
        folder: RunFolder,
        changes: dict[str, Any],
        env: Any,
        trust: bool,
        without_memory: bool = False,
        parts: Parts = USUAL,
    ) -> tuple["Session", Checkpoint]:
        """Sets up a session and restores the newest whole checkpoint of a folder."""
        chosen, wrong = newest_whole(folder, without_memory)
        state = chosen.state()
        config = config_of(state, env, trust)
        check_modest(config, trust)
        parts_notes = check_parts(state.get("parts", {}), parts)
        check_kinds(state.get("spaces"))
        torch_before = chosen.manifest.versions.get("engine", "torch") == "torch"
        before = chosen.manifest.threads if torch_before and "threads" not in changes else 0
        session = cls(replace(config, **changes), parts=parts, threads=before, resumed=True)
        try:
            found = [*parts_notes, *session.restore(chosen, state, without_memory)]
            session._changed_from(config)
            if session.engine == "torch" and before not in (0, session.threads):
                found.append(change_note("threads", before, session.threads))
        except BaseException:
            session.close()
            raise
        session.resumed_notes = (*(f"Passed over: {problem}" for problem in wrong), *found)
        return session, chosen

    def keep_in(self, folder: RunFolder, since: Checkpoint | None = None) -> None:
        """Saves the run in this folder from now on, continuing from a checkpoint that it has already."""
        films = in_this_process(self.eval_envs) if self.eval_envs else []
        self.output = RunOutput(folder, self.config, self.versions(), films, since)
        self._saved = self._now() if since else None
        if since is not None:
            for row in self.output.record.rows():
                self.evidence.add(row)
            self.resumed_notes = (*(self.resumed_notes or ()), *self.output.changes_since(since))

    def __repr__(self) -> str:
        return f"<td3.Session of {env_name(self.config.env)}, step {self.step:,} of {self.config.steps:,}>"

    @property
    def step(self) -> int:
        """Returns the number of steps collected so far."""
        return self.collector.steps

    @property
    def last_evaluation(self) -> tuple[int, float] | None:
        """Returns the step and the mean return of the last evaluation, if there was one."""
        return self.progress.last_evaluation

    def act(self, observations: Rows) -> Float32s:
        """Acts as the actor does; an action that is no number is the networks' fault, not the environment's."""
        actions = self.learner.act(observations)
        if not all_finite(actions):
            raise self.diverged()
        return actions

    def change(self, **settings: Any) -> None:
        """Changes settings of the algorithm from the next step on, in both engines."""
        if self.closed:
            raise ConfigError(f"{', '.join(settings)} cannot be changed: this run has ended. Resume it first.")
        check_changeable(settings)
        config = replace(self.config, **settings)
        check_networks(self.engine, config, self.learner.layout, self.learner.action_size)
        self.learner.configure(config)
        self.collector.configure(config)
        changed = differences(self.config, config)
        self.config, self._saved, self.changed = config, None, True
        self.evidence.config = config
        if self.output:
            self.output.use_config(config)
        self.record_changes(changed)

    def _changed_from(self, old: Config) -> None:
        """Follows the settings that were changed when the run was resumed; they may let a stopped run train on."""
        if self.config == old:
            return
        self._changes = differences(old, self.config)
        if self.progress.stopped and self.config.steps != old.steps:
            self.progress.train_on()
        elif self.progress.stopped:
            self.progress.stopped = why_stop(self.config, self.progress, self.step)

    @property
    def change_notes(self) -> list[str]:
        """Returns what was changed when the run was resumed, one sentence each."""
        return [f"{name} was {old}, and is {new} from here on." for name, (old, new) in self._changes.items()]

    def record_changes(self, changed: dict[str, list[Any]]) -> None:
        """Writes settings that changed, each as [before, after], into the record."""
        if changed and self.output:
            self.output.record.write(self.step, {CHANGED: changed})

    def record_failure(self, problem: Exception) -> None:
        """Writes why the run ends, after the last checkpoint: a resumed run is without it."""
        if self.output and self.output.ours:
            self.output.record.write(self.step, {FAILED: str(problem).splitlines()[0][:500] if str(problem) else ""})

    def use_engine(self, engine: str) -> None:
        """Lets another engine perform the updates from the next one on; nothing else changes."""
        config = replace(self.config, engine=engine)
        self._hand_over(config)
        self.learner.config = self.config = config
        self._saved = None
        if self.output:
            self.output.use_versions(self.versions())

    def _hand_over(self, config: Config, threads: int = 0) -> None:
        self.learner, self.engine, self._engine_note, self.threads = hand_over(self.learner, config, threads)

    def versions(self) -> dict[str, Any]:
        """Returns what the next bytes depend on."""
        return {**versions(), "engine": engine_name(self.engine)}

    def summary(self) -> dict[str, Any]:
        """Returns what `Started` has to say."""
        found = summary(self.config, self.collector, self.bytes_each, self.bytes)
        return {**found, "engine": engine_name(self.engine), "device": self.config.device, "threads": self.threads}

    def notes(self, goal: int) -> tuple[str, ...]:
        """Returns what is odd about this run, one sentence each."""
        return notes(self.config, self.collector, self._engine_note, self.threads, goal)

    def save(self, anew: bool = False) -> Path | None:
        """Saves a checkpoint, if there is a folder and it has none of this moment yet; `anew` even then."""
        if self.output is None or not self.output.ours:
            return None
        if not anew and self.output.newest is not None and self._saved == self._now():
            return self.output.newest
        snapshot = self.capture()
        if not all(tensor.isfinite().all() for tensor in snapshot.tensors["networks"].values()):
            raise self.diverged()  # what was saved before is better than this
        path = self.output.save(snapshot, self.learner.memory)
        self._saved, self.changed = self._now(), False
        return path

    def _now(self) -> tuple[int, int, bool, int]:
        """Returns what a checkpoint made now would hold that another one of the same step might not."""
        return self.step, self.learner.updates, self.progress.pending is None, self.restarts.used

    def diverged(self) -> TrainingDiverged:
        """Returns the error that says where the networks became NaN or infinite."""
        return TrainingDiverged(
            f"The networks hold NaN or infinity at step {self.step:,}, update {self.learner.updates:,}: the learning "
            "rate, the rewards or the observations are too large."
        )

    def capture(self) -> Snapshot:
        """Returns all that this run is, between two steps."""
        playing, arrays = self.collector.capture()
        state, tensors = capture_learner(self.learner)
        state |= {
            "config": self.config.to_data(),
            "parts": self.parts.names(),
            "spaces": {
                "observation": observation_to_data(self.collector.observation_map),
                "action": space_to_data(self.collector.action_map.space),
            },
            "playing": playing,
            "replay": seeding.state_of(self.replay_rng),
            "smoothing": seeding.state_of(self.smoothing_rng),
            "seconds": self.clock.seconds,
            "failures": self.restarts.used,
            **self.progress.capture(),
        }
        last = self.progress.last_evaluation
        score = last[1] if last and last[0] == self.step else None
        return Snapshot(state, {**tensors, "playing": arrays}, self.step, self.learner.updates, score, self.threads)

    def restore(self, chosen: Checkpoint, state: dict[str, Any], without_memory: bool = False) -> list[str]:
        """Becomes what was captured; random streams last, so that nothing draws from them on the way."""
        config, progress = self.config, self.progress
        new = changed_parts(state.get("parts", {}), self.parts)  # they begin with no state
        try:
            self.lost, lost_notes = restore_learner(self.learner, chosen, state, without_memory, "sampler" in new)
            playing = chosen.arrays("playing", self.collector.most_bytes)
            if "noise" in new:
                playing = {name: array for name, array in playing.items() if not name.startswith("noise.")}
            self.restarts.used = max(0, int(state.get("failures", 0)))  # older checkpoints have none
            # For an episode that cannot be brought back.
            seeds = seeding.environment_seeds(config.seed, "environments", self.collector.num_envs, chosen.step)
            found = [*lost_notes, *self.collector.restore(state["playing"], playing, seeds)]
            progress.restore(state)
            self.clock.seconds = float(state["seconds"])
            if (self.step, self.learner.updates) != (chosen.step, chosen.manifest.updates) or self.learner.updates < 0:
                raise ValueError(f"step {self.step:,} and update {self.learner.updates:,} are not its manifest's")
            progress.check(self.step, self.learner.updates, config.updates_per_step)
            if lost_notes:
                self.renumbered = True
                self.collector.begin_anew()
                progress.pending = None  # there may be nothing left to learn from
            seeding.load_state(self.replay_rng, state["replay"])
            seeding.load_state(self.smoothing_rng, state["smoothing"])
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError) as problem:
            raise RunError(f"{chosen.path} does not describe a run: {type(problem).__name__}: {problem}.") from problem
        if state.get("torn"):
            found.append(
                f"The run was interrupted in the middle of {state['torn']}: from there on it does not resume exactly."
            )
        now = self.versions()
        return found + [
            change_note(name, then, now.get(name))
            for name, then in chosen.manifest.versions.items()
            if now.get(name) != then
        ]

    def leave(self) -> None:
        """Closes the folder; the run itself continues in memory."""
        if self.output:
            self.output.close()
        self.output = None

    def close(self) -> None:
        """Frees everything; the folder first: what is saved is whole, whatever an environment does when it closes."""
        self.closed = True
        self.leave()
        self.collector.close()
        if self.eval_envs:
            self.eval_envs.close()
