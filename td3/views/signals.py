"""The signals that ask a command to end, and who answers them."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Ctrl-C, TERM and HUP go to `handler`.

    One that is ignored at the start stays ignored: that is what `nohup` and the background jobs of a script ask for.
    """
    heard = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def end_at_once() -> None:
    """From now on each of them ends the process without a word: nothing is left to be done."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
