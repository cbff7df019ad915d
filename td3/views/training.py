"""`td3 train`: follows a run's events, shows them, and leaves well when told to stop."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from td3.config import Config, env_name
from td3.errors import Interrupted
from td3.types import Event, Finished, SaveFailed, Started
from td3.views.speaking import answer, at_a_terminal, say
from td3.views.terminal import LiveView, PlainView, View, clock
from td3.wording import counted


def watch_training(events: Iterator[Event], folder: Path, *, quiet: bool, as_json: bool) -> int:
    """Follows a run to its end or to the first signal; the exit code."""
    live = at_a_terminal() and not quiet and not as_json
    view: View = LiveView(folder) if live else PlainView(folder, quiet=quiet or as_json)
    seen: dict[type, Event] = {}  # the last of each kind
    with Stop() as stop:
        try:
            with view:
                for event in events:
                    seen[type(event)] = event
                    view.show(event)
                    if stop.signal:
                        break
        finally:
            events.close()  # type: ignore[attr-defined]  # a generator: saves if it was left early
    failed, finished = seen.get(SaveFailed), seen.get(Finished)
    if isinstance(failed, SaveFailed):
        say(f"td3: not everything could be saved. The last problem, at step {failed.step:,}: {failed.reason}")
    if not isinstance(finished, Finished):
        step = max((event.step for event in seen.values()), default=0)
        say(f"Stopped at step {step:,} and saved. Go on with: td3 resume {quoted(folder)}")
        return 128 + (stop.signal or signal.SIGINT)
    started = seen[Started]
    assert isinstance(started, Started)
    if as_json:
        answer({"run": str(folder), "env": env_name(started.config.env), **finished._asdict()})
    elif started.step == finished.step:
        further = f"Go further with: td3 resume {quoted(folder)} --steps N"
        say(f"The run is finished: {counted(finished.step, 'step')}. {further}")
    else:
        say(ending(finished, folder, started.config))
    return 1 if failed else 0


def ending(finished: Finished, folder: Path, config: Config) -> str:
    score = ""
    if finished.last is not None and finished.best is not None:
        score = (
            f" Mean return over {counted(config.eval_episodes, 'episode')} without noise: {finished.last:.1f} "
            f"(best {finished.best:.1f})."
        )
    return (
        f"Done: {counted(finished.step, 'step')} and {counted(finished.updates, 'update')} in "
        f"{clock(finished.seconds)}.{score}\n"
        f"The run is in {folder}\n"
        f"Next: td3 evaluate {quoted(folder)} --checkpoint best --episodes 20\n"
        f"      td3 resume {quoted(folder)} --steps {2 * finished.step}\n"
        f"      td3 check HalfCheetah-v5"
    )


def quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


class Stop:
    """Ctrl-C, TERM and HUP: the first ends the loop at its next quiet point, the second at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._asked)
        return self

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise Interrupted(number)
        self.signal = number
        # not `print`: the signal may have come in the middle of one
        os.write(sys.stderr.fileno(), b"\nStopping after this step or evaluation; once more leaves at once.\n")

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def new_folder(config: Config) -> Path:
    """runs/Pendulum-v1-seed0-20260131-235959, with a number behind it if that is taken."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in env_name(config.env))
    base = Path("runs") / f"{name}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = base, 2
    while folder.exists():
        folder, number = base.with_name(f"{base.name}-{number}"), number + 1
    return folder
