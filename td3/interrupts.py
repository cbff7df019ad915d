"""Ctrl-C while training from Python: kept until the step under way is done, so that what is saved is exact.

Python's own handler would raise in the middle of an update. While a run trains, and only if no other code handles
SIGINT, ours takes its place: it waits for the next quiet point, and a second Ctrl-C does not wait.
"""

import atexit
import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType


class Interrupt:
    """What one training loop does with Ctrl-C, depending on where it is."""

    def __init__(self, save: Callable[[], object]) -> None:
        self.save, self.thread = save, threading.get_ident()
        self.asked = False  # came while the loop was busy
        self.idle = False  # the user's own code runs, between two events
        self.at_once = False  # nothing of the run is under way, as during an evaluation

    @contextlib.contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """Lets Ctrl-C raise at once inside the block."""
        self.at_once = True
        try:
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self.at_once = False


_loops: "weakref.WeakSet[Interrupt]" = weakref.WeakSet()
_process = os.getpid()


@contextlib.contextmanager
def deferred(save: Callable[[], object]) -> Iterator[Interrupt]:
    """Ctrl-C waits for a quiet point in here; what is open when Python ends is saved too."""
    interrupt = Interrupt(save)
    _loops.add(interrupt)
    ours = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, _handle)
    try:
        yield interrupt
    finally:
        _loops.discard(interrupt)
        on_main_thread = threading.current_thread() is threading.main_thread()
        if not _loops and on_main_thread and signal.getsignal(signal.SIGINT) is _handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _handle(_number: int, _frame: FrameType | None) -> None:
    loops = _of_this_thread()
    busy = [loop for loop in loops if not loop.idle and not loop.at_once]
    if busy and not any(loop.asked for loop in busy):
        for loop in busy:
            loop.asked = True
        return
    _save_idle(loops)
    raise KeyboardInterrupt


def _of_this_thread() -> list[Interrupt]:
    """Returns this thread's loops: another thread may continue with its own at any moment, and saves it itself."""
    return [loop for loop in _loops if loop.thread == threading.get_ident()]


def _save_idle(loops: list[Interrupt]) -> None:
    """Saves what would otherwise wait for a traceback to be forgotten, which in a notebook may be never."""
    for loop in loops:
        if loop.idle:
            with contextlib.suppress(Exception):
                loop.save()


@atexit.register
def _at_exit() -> None:
    if os.getpid() == _process:  # not in a forked child
        _save_idle(_of_this_thread())
