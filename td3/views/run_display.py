"""Shows a run that trains, event by event, stops it at a signal, and says which command continues it."""

import contextlib
import signal
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from td3.config import Config, env_name
from td3.config.trust import needs_trust
from td3.config.words import flag
from td3.errors import EnvironmentFailure, Interrupted
from td3.events import Event, Finished, Found, Saved, SaveFailed, Started
from td3.views.extras import needs_page
from td3.views.own_parts import part_words
from td3.views.signals import handled_by
from td3.views.speaking import answer, at_a_terminal, say, say_in_handler, shell_command
from td3.views.terminal import Display, LiveView, PlainView, clock
from td3.wording import counted

LETS_TRAIN_ON = {"stop_at": "--stop-at none", "stop_after": "--stop-after 0", "stop_when_sick": "--no-stop-when-sick"}


class Again(NamedTuple):
    """What a further command of the same run must be given."""

    folder: Path
    env: str | None  # what `--env` was
    parts: Mapping[str, str]  # the user's own parts, by their flags

    def command(self, name: str, config: Config) -> str:
        """Writes a command that works on this run when it is pasted."""
        words = part_words(name, self.parts)
        if self.env is not None:
            env = [f"--env={self.env}"] if self.env.startswith("-") else ["--env", self.env]
            return shell_command(name, self.folder, *env, *words)
        return shell_command(name, self.folder, *(["--trust"] if needs_trust(config) else []), *words)


def follow(events: Iterator[Event], again: Again, chosen: Namespace) -> int:
    """Shows a run to its end or to the first signal, on a page too if `--watch` asks for it; returns the exit code."""
    if not chosen.watch:
        return show(events, again, quiet=chosen.quiet, as_json=chosen.json)
    needs_page()
    from td3.views.page_process import begun, page_of

    events = begun(events)
    with page_of(again.folder) as address:
        say(f"Watch it at {address}")
        code = show(events, again, quiet=chosen.quiet, as_json=chosen.json)
    say(f"The page ended with the run; look again with: {shell_command('watch', again.folder)}")
    return code


def show(events: Iterator[Event], again: Again, *, quiet: bool, as_json: bool) -> int:
    """Shows a run in the terminal; returns the exit code."""
    live = at_a_terminal() and not quiet and not as_json
    view: Display = LiveView(again.folder) if live else PlainView(again.folder, quiet=quiet or as_json)
    last: dict[type, Event] = {}  # the last of each kind
    with Stop() as stop:
        try:
            with contextlib.closing(events), view:  # type: ignore[type-var]  # a generator: saves if it is left early
                for event in events:
                    last[type(event)] = event
                    view.show(event)
                    if stop.signal:
                        break
        except BaseException as problem:
            if isinstance(started := last.get(Started), Started):
                left = what_is_left(problem, again.command("resume", started.config))
                problem.what_is_left = left  # type: ignore[attr-defined]
            raise
    failed, finished, started = last.get(SaveFailed), last.get(Finished), last[Started]
    assert isinstance(started, Started)
    if isinstance(failed, SaveFailed):
        say(f"td3: not everything could be saved. The last problem, at step {failed.step:,}: {failed.reason}")
    resume = again.command("resume", started.config)
    if not isinstance(finished, Finished):
        step = max(event.step for event in last.values())
        say(f"Stopped at step {step:,} and saved. Continue with: {resume}")
        return 128 + (stop.signal or signal.SIGINT)
    if as_json:
        answer({"run": str(again.folder), "env": env_name(started.config.env), **finished._asdict()})
    elif started.step == finished.step:
        if finished.reason:
            say(f"{stopped(finished, started.config)} Train on with: {resume} {train_on(finished)}")
        else:
            further = f"Train further with: {resume} --steps {2 * finished.step}"
            say(f"The run is finished: {counted(finished.step, 'step')}. {further}")
    else:
        say(done(finished, started.config), f"The run is in {again.folder}")
        if (saved := last.get(Saved)) is None or saved.step < finished.step:
            say(f"Continue from its newest checkpoint with: {resume}")
        else:
            say(
                f"Next: {again.command('evaluate', started.config)} --checkpoint best --episodes 20",
                f"      {resume} {train_on(finished)}",
                f"      {shell_command(*(('doctor', again.folder) if Found in last else ('check', 'HalfCheetah-v5')))}",
            )
    return 1 if failed else 0


def what_is_left(problem: BaseException, resume: str) -> str:
    """Says what remains of a run that an error ended; the error itself knows whether the run was saved."""
    if path := getattr(problem, "saved", None):
        now_and_then = ""
        if isinstance(problem, EnvironmentFailure):
            now_and_then = "An environment that fails now and then is made anew with --restart-failed 10. "
        step = int(Path(path).name.split("-")[0])
        return f"{now_and_then}The run was saved at step {step:,}; continue with: {resume}"
    if reason := getattr(problem, "save_problem", ""):
        return f"The run could not be saved: {reason} Continue from its newest checkpoint with: {resume}"
    return f"Continue with: {resume}"


def done(finished: Finished, config: Config) -> str:
    """Says how a run ended."""
    score = ""
    if finished.last is not None and finished.best is not None:
        score = (
            f" Mean return over {counted(config.eval_episodes, 'episode')} without noise: {finished.last:.1f} "
            f"(best {finished.best:.1f})."
        )
    work = f"{counted(finished.step, 'step')} and {counted(finished.updates, 'update')} in {clock(finished.seconds)}."
    return f"{stopped(finished, config) if finished.reason else 'Done:'} {work}{score}"


def stopped(finished: Finished, config: Config) -> str:
    """Says why a run stopped by itself."""
    return f"Stopped by {flag(finished.stopped_by)} at step {finished.step:,} of {config.steps:,}: {finished.reason}"


def train_on(finished: Finished) -> str:
    """Writes the flag of `td3 resume` that lets a finished run train on."""
    return LETS_TRAIN_ON.get(finished.stopped_by) or f"--steps {2 * finished.step}"


class Stop:
    """Ctrl-C, TERM and HUP: the first ends the loop at its next quiet point, the second at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._handled = handled_by(self._asked)

    def __enter__(self) -> "Stop":
        self._handled.__enter__()
        return self

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise Interrupted(number)
        self.signal = number
        say_in_handler("Stopping after this step or evaluation; once more leaves at once.")

    def __exit__(self, *problem: Any) -> None:
        self._handled.__exit__(*problem)
