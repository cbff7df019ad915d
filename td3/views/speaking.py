"""Output of commands: text for people on stderr, answers for programs on stdout, and nothing else on stdout.

Every text for a person passes `printable`, because others wrote much of it: names of files and environments, settings
of a stranger's run, texts of exceptions. What cannot be written, because the terminal is gone or the disk behind a log
is full, is lost, and nothing else is.
"""

import contextlib
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from td3.errors import TD3Error

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LONGEST = 5_000  # characters of a line: a command with the longest path that Linux allows fits
# C0 controls, DEL and C1 controls; what reorders text or ends a line; bytes of a file name that are no UTF-8.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_stdout: TextIO | None = None  # the real one, while a command runs
_stderr = 2  # the descriptor of the real one
_speech: TextIO | None = None  # where td3 speaks to a person while stderr is for others


def printable(text: str) -> str:
    """Makes a text one harmless line: control characters become escapes, a huge text loses its middle."""
    if len(text) > LONGEST:
        begin, end = text[: LONGEST * 3 // 4], text[-LONGEST // 4 :]
        text = f"{begin} … {len(text) - LONGEST:,} characters left out … {end}"
    return UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte that is no UTF-8
        code -= 0xDC00
    return SHORT.get(match.group()) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


class Lossy:
    """A stream that never raises when it is written to: what does not arrive is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes text if the stream still takes it."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream if it still can."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def say(*lines: str) -> None:
    """Says each line to a person."""
    stderr = Lossy(_speech or sys.stderr)
    stderr.write("".join(f"{printable(line)}\n" for line in lines))
    stderr.flush()


def say_in_handler(line: str) -> None:
    """Says a line in a signal handler, which may have interrupted any other write and must never raise."""
    with contextlib.suppress(OSError):
        os.write(_stderr, f"\n{printable(line)}\n".encode())


def console() -> "Console":
    """Makes a console for rich; texts for it come from `rich_text`."""
    from rich.console import Console

    return Console(file=cast(TextIO, Lossy(_speech or sys.stderr)))


def rich_text(text: str, style: str = "") -> "Text":
    """Makes a text for rich, in which nothing counts as markup."""
    from rich.text import Text

    return Text(printable(text), style)


def shell_command(*words: str | Path) -> str:
    """Writes a command line of td3 that works when it is pasted into a shell."""
    return " ".join(["td3", *map(shell_word, words)])


def shell_word(word: str | Path) -> str:
    """Quotes a word for a shell, also one that a terminal cannot show."""
    text = str(word)
    if isinstance(word, Path) and text.startswith("-"):  # it would be taken for a flag
        text = f"./{text}"
    if not UNPRINTABLE.search(text):
        return shlex.quote(text)
    return "$'" + "".join(map(_in_shell, os.fsencode(text))) + "'"


def _in_shell(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and byte not in b"\\'"
    return chr(byte) if plain else f"\\x{byte:02x}"


def answer(data: Any) -> None:
    """Answers a program: one line of JSON, in ASCII, so that it arrives in any locale. NaN and infinity are null."""
    text = json.dumps(_finite(data), allow_nan=False, separators=(",", ":"))
    write_out(text.replace("\x7f", "\\u007f") + "\n")


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_out(text: str) -> None:
    """Writes to stdout what a program or a person has asked for."""
    stdout = _stdout or sys.stdout
    encoding = getattr(stdout, "encoding", None) or "utf-8"
    try:
        stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise TD3Error(f"stdout cannot be written: {problem.strerror}.") from None


def at_a_terminal() -> bool:
    """Says whether both streams are a terminal that can move its cursor."""
    able = os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    return able and (_stdout or sys.stdout).isatty() and (_speech or sys.stderr).isatty()


@contextlib.contextmanager
def answers_only() -> Iterator[None]:
    """Keeps stdout for a command's answer alone while it runs; no failing stream stops it.

    Everything else that is printed goes to stderr, also what a library in C or a child process writes to descriptor 1.
    """
    global _stdout
    _open_missing()
    before, stdout, stderr = _stdout, sys.stdout, sys.stderr
    Lossy(stdout).flush()
    aside = os.dup(1)
    os.dup2(2, 1)
    real = _descriptor(stdout) == 1
    _stdout = os.fdopen(aside, "w", encoding=stdout.encoding, closefd=False) if real else stdout
    sys.stdout = sys.stderr = cast(TextIO, Lossy(stderr))
    try:
        yield
    finally:
        if real:
            with contextlib.suppress(OSError):  # that it could not be written has been said
                _stdout.close()
        _stdout, sys.stdout, sys.stderr = before, stdout, stderr
        _flush_c()
        os.dup2(aside, 1)
        os.close(aside)
        _drain(stdout)
        _drain(stderr)


@contextlib.contextmanager
def others_into(log: int) -> Iterator[None]:
    """Lets only td3 speak: what libraries and child processes write to stdout and stderr goes to a file."""
    global _speech, _stderr
    before, kept, streams = (_speech, _stderr), (os.dup(1), os.dup(2)), (sys.stdout, sys.stderr)
    Lossy(sys.stderr).flush()
    with contextlib.ExitStack() as opened:
        _speech, _stderr = sys.stderr, kept[1]
        if _descriptor(sys.stderr) == 2:
            _speech = opened.enter_context(os.fdopen(kept[1], "w", errors="backslashreplace", closefd=False))
        noise = opened.enter_context(os.fdopen(log, "w", buffering=1, errors="backslashreplace", closefd=False))
        sys.stdout = sys.stderr = cast(TextIO, Lossy(noise))
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            yield
        finally:
            _flush_c()
            (_speech, _stderr), (sys.stdout, sys.stderr) = before, streams
            for descriptor, own in enumerate(kept, start=1):
                os.dup2(own, descriptor)
    for own in kept:
        os.close(own)


def _open_missing() -> None:
    """Opens those of descriptors 0, 1 and 2 that were closed: else a file of the run would become our stderr."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number, that is this one
            os.set_inheritable(opened, True)
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(opened, "w" if descriptor else "r", encoding="utf-8"))


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _flush_c() -> None:
    """Writes out what C libraries hold back of their stdout, while it still goes to stderr."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).fflush(None)


def _drain(stream: TextIO) -> None:
    """Leaves nothing that cannot be written in a standard stream: Python would end with exit code 120 for it."""
    try:
        stream.flush()
    except (OSError, ValueError):
        if (descriptor := _descriptor(stream)) in (1, 2):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)
            Lossy(stream).flush()
