"""Words that messages are made of: a count and its noun, a quoted value, a suggestion."""

import difflib
from collections.abc import Callable, Iterable
from typing import Any

LONGEST = 100  # characters of a quoted value


def counted(number: int, noun: str) -> str:
    """Joins a count and its noun: '1 action', '1,000 steps', '2 processes'."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def brief(value: Any, write: Callable[[Any], str] = repr) -> str:
    """Quotes a value on one line, and cuts it where it is long."""
    try:
        text = " ".join(write(value).split())
    except Exception:  # more digits than Python writes, or a broken __repr__
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 30]} … {text[-20:]}"


def one_line(text: str, most: int = LONGEST) -> str:
    """Makes somebody's text fit for a table or a chart: no control characters, and not longer than `most`."""
    shown = "".join(sign if sign.isprintable() else "\ufffd" for sign in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def letters(name: str) -> str:
    """Returns a name without its spelling: `--Batch-Size`, `batch_size` and `batchSize` are the same."""
    return name.replace("-", "").replace("_", "").casefold()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns ' Did you mean …?' for a typing mistake, else ''."""
    by_letters = {letters(name): name for name in known}
    near = difflib.get_close_matches(letters(word), by_letters, n=1, cutoff=0.75)  # lower ones mislead: lr → run
    return f" Did you mean {by_letters[near[0]]}?" if near else ""
