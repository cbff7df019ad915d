"""Turns what environments do wrong into one sentence each, and decides which exceptions are an environment's fault.

An environment may raise anything, `SystemExit` and other BaseExceptions included, from any of its methods and from
whatever it returns. Only what a user's Ctrl-C raises is the user's.
"""

import contextlib
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from td3.errors import ConfigError, EnvironmentFailure, Interrupted, TD3Error

LONGEST = 500  # characters of somebody else's text inside our sentence
CLOSING = 10.0  # seconds an environment may take to close


class BadValue(ValueError):
    """A value that does not fit its space; the message begins with the field's name."""


STOPPED = (KeyboardInterrupt, Interrupted)  # by the user
PASSED_ON = (
    *STOPPED,
    ConfigError,
    EnvironmentFailure,
)  # while an environment is played: these have their sentence already


def failure(who: str, call: str, problem: BaseException) -> EnvironmentFailure:
    """Writes the sentence about whatever a call of an environment raised or returned."""
    why = str(problem) if isinstance(problem, BadValue) else f"{call}() raised {describe_exception(problem)}"
    return EnvironmentFailure(f"{who}: {why}.")


@contextlib.contextmanager
def refusing(beginning: str) -> Iterator[None]:
    """Turns whatever an environment raises before it is played into a ConfigError."""
    try:
        yield
    except (*STOPPED, TD3Error):
        raise
    except BaseException as problem:
        raise ConfigError(f"{beginning} {describe_exception(problem)}.") from problem


def describe_exception(problem: BaseException) -> str:
    """Describes an exception in a few words, with the line of the user's code that raised it."""
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return f"{named(problem)}{where}"


def named(problem: BaseException) -> str:
    """Returns the exception's class and the first line of its message."""
    words = one_line(lambda: next((line for line in str(problem).splitlines() if line.strip()), ""))
    return f"{type(problem).__name__}{': ' if words else ''}{words}"


def message_of(problem: BaseException) -> str:
    """Returns the exception's message in one line."""
    return one_line(lambda: str(problem))


def shown(value: Any) -> str:
    """Quotes a value as Python writes it, in one line of moderate length."""
    return one_line(lambda: repr(value)) or f"a {type(value).__name__}"


def one_line(text: Callable[[], str]) -> str:
    """Cuts somebody else's text to one line of moderate length; nothing where it refuses to be written."""
    try:
        written = " ".join(text().split())
    except STOPPED:
        raise
    except BaseException:
        return ""
    return written if len(written) <= LONGEST else written[:LONGEST] + "…"


def as_array(name: str, value: Any, take: Callable[[Any], Any] | None = None) -> NDArray[Any]:
    """Returns the value, or the part of it that `take` takes, as an array."""
    try:
        return np.asarray(value if take is None else take(value))
    except STOPPED:
        raise
    except BaseException as problem:
        raise BadValue(f"{name} is missing or malformed ({named(problem)})") from problem


def close_quietly(close: Callable[[], Any], seconds: float = CLOSING) -> None:
    """Closes an environment: all that was learned from it is safe, so how that goes is no failure."""
    try:
        with deadline(seconds):
            close()
    except STOPPED:
        raise
    except BaseException:
        return


class TooLong(BaseException):
    """A call did not return in time."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises `TooLong` inside a block that takes longer, where that is possible.

    An alarm and not a thread: what draws can be closed only by the thread that opened it. There is one alarm, for the
    main thread; elsewhere there is no deadline, nor where somebody else's alarm is to ring earlier.
    """
    theirs, interval, began = 0.0, 0.0, time.monotonic()
    possible = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if possible:
        theirs, interval = signal.getitimer(signal.ITIMER_REAL)
    if not possible or 0 < theirs < seconds:
        yield
        return

    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # and every second: the first may be swallowed
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        if theirs:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, theirs - (time.monotonic() - began)), interval)
