"""`td3 train`: follows a run's events, shows them, and leaves well when told to stop."""

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from td3.config import Config, env_name
from td3.errors import Interrupted
from td3.events import Event, Finished, Saved, SaveFailed, Started
from td3.views.signals import handled_by
from td3.views.speaking import answer, at_a_terminal, say, say_in_handler, shell_command
from td3.views.terminal import Display, LiveView, PlainView, clock
from td3.wording import counted


def watch_training(events: Iterator[Event], folder: Path, env: str | None, *, quiet: bool, as_json: bool) -> int:
    """Follows a run to its end or to the first signal; the exit code. `env` is what `--env` gave."""
    live = at_a_terminal() and not quiet and not as_json
    view: Display = LiveView(folder) if live else PlainView(folder, quiet=quiet or as_json)
    seen: dict[type, Event] = {}  # the last of each kind
    with Stop() as stop:
        try:
            with contextlib.closing(events), view:  # type: ignore[type-var]  # a generator: saves if it is left early
                for event in events:
                    seen[type(event)] = event
                    view.show(event)
                    if stop.signal:
                        break
        except BaseException as problem:
            if isinstance(started := seen.get(Started), Started):
                left = what_is_left(problem, run_command("resume", folder, started, env))
                problem.what_is_left = left  # type: ignore[attr-defined]
            raise
    failed, finished, started = seen.get(SaveFailed), seen.get(Finished), seen[Started]
    assert isinstance(started, Started)
    if isinstance(failed, SaveFailed):
        say(f"td3: not everything could be saved. The last problem, at step {failed.step:,}: {failed.reason}")
    go_on = run_command("resume", folder, started, env)
    if not isinstance(finished, Finished):
        step = max(event.step for event in seen.values())
        say(f"Stopped at step {step:,} and saved. Go on with: {go_on}")
        return 128 + (stop.signal or signal.SIGINT)
    if as_json:
        answer({"run": str(folder), "env": env_name(started.config.env), **finished._asdict()})
    elif started.step == finished.step:
        further = f"Go further with: {go_on} --steps {2 * finished.step}"
        say(f"The run is finished: {counted(finished.step, 'step')}. {further}")
    else:
        say(done(finished, started.config), f"The run is in {folder}")
        if (saved := seen.get(Saved)) is None or saved.step < finished.step:
            say(f"Go on from its newest checkpoint with: {go_on}")
        else:
            say(
                f"Next: {run_command('evaluate', folder, started, env)} --checkpoint best --episodes 20",
                f"      {go_on} --steps {2 * finished.step}",
                f"      {shell_command('check', 'HalfCheetah-v5')}",
            )
    return 1 if failed else 0


def run_command(name: str, folder: Path, started: Started, env: str | None) -> str:
    """A command that plays this run's environment once more."""
    if env is not None:
        return shell_command(name, folder, *([f"--env={env}"] if env.startswith("-") else ["--env", env]))
    from td3.resuming import needs_trust

    return shell_command(name, folder, *(["--trust"] if needs_trust(started.config) else []))


def what_is_left(problem: BaseException, go_on: str) -> str:
    """What remains of a run that an error ended; the error itself tells whether it was saved on its way out."""
    if path := getattr(problem, "saved", None):
        return f"The run was saved at step {int(Path(path).name.split('-')[0]):,}; go on with: {go_on}"
    if reason := getattr(problem, "save_problem", ""):
        return f"The run could not be saved: {reason} Go on from its newest checkpoint with: {go_on}"
    return f"Go on with: {go_on}"


def done(finished: Finished, config: Config) -> str:
    score = ""
    if finished.last is not None and finished.best is not None:
        score = (
            f" Mean return over {counted(config.eval_episodes, 'episode')} without noise: {finished.last:.1f} "
            f"(best {finished.best:.1f})."
        )
    return (
        f"Done: {counted(finished.step, 'step')} and {counted(finished.updates, 'update')} in "
        f"{clock(finished.seconds)}.{score}"
    )


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


def new_folder(config: Config) -> Path:
    """runs/Pendulum-v1-seed0-20260131-235959, with a number behind it if that is taken."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in env_name(config.env))
    base = Path("runs") / f"{name}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = base, 2
    while folder.exists():
        folder, number = base.with_name(f"{base.name}-{number}"), number + 1
    return folder
