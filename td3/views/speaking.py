"""How views speak: words for people on stderr, answers for programs on stdout, and nothing else on stdout."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

_stdout: TextIO | None = None  # the real one, while a command runs


@contextlib.contextmanager
def answers_only() -> Iterator[None]:
    """What an environment prints goes to stderr: stdout is for our answer alone."""
    global _stdout
    _stdout = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _stdout = None


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def answer(data: Any) -> None:
    import msgspec

    print(msgspec.json.encode(data).decode(), file=_stdout or sys.stdout, flush=True)


def at_a_terminal() -> bool:
    return (_stdout or sys.stdout).isatty() and sys.stderr.isatty()
