"""The signals that ask a command to end, and what handles them."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Passes Ctrl-C, TERM and HUP to `handler`.

    One that is ignored at the start stays ignored: that is what `nohup` and the background jobs of a script ask for.
    """
    wanted = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in wanted}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets Ctrl-C, TERM and HUP end the block alike: what is open is closed, what is temporary is removed."""
    with handled_by(signal.default_int_handler), contextlib.suppress(KeyboardInterrupt):
        yield


def end_at_once() -> None:
    """Lets each of them end the process without a word from now on: nothing is left to be done."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
