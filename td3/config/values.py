"""Values as people write them: numbers in a text, NumPy's and PyTorch's numbers, plain data, and back to words."""

import contextlib
import math
import re
from typing import Any

import msgspec

from td3.wording import brief


def whole_number_in(text: str) -> int:
    """Returns the whole number written as `1000`, `1_000` or `1e3`; anything else is a ValueError."""
    try:
        return msgspec.convert(_without_underscores(text), int, strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{brief(text)} is no whole number") from None


def number_in(text: str) -> float:
    """Returns the number written in a text; anything else is a ValueError."""
    try:
        return msgspec.convert(_without_underscores(text), float, strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{brief(text)} is no number") from None


def _without_underscores(text: str) -> str:
    return re.sub(r"(?<=\d)_(?=\d)", "", text)


def in_words(value: Any) -> str:
    """Writes a value as a flag takes it: '400,300'."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def python_value(value: Any, whole: bool) -> Any:
    """Turns numbers of NumPy and PyTorch into Python's own, inside a list too; with `whole`, 1e6 becomes an int."""
    if isinstance(value, list | tuple):
        return [python_number(item, whole) for item in value]
    return python_number(value, whole)


def python_number(value: Any, whole: bool) -> Any:
    """Turns a number of NumPy or PyTorch into Python's own; anything else stays as it is."""
    if hasattr(value, "tolist"):
        with contextlib.suppress(Exception):  # a class, a tensor without data, …: no number, and refused as it is
            value = value.tolist()
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def plain_data(value: Any) -> Any:
    """Turns tuples into lists and foreign numbers into Python's own, at any depth."""
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return python_number(value, whole=False)


def is_plain(value: Any) -> bool:
    """Says whether JSON returns exactly this value."""
    kind = type(value)
    if kind is list:
        return all(map(is_plain, value))
    if kind is str:
        return bool(value.encode(errors="ignore").decode() == value)  # no halves of characters
    if kind is float:
        return math.isfinite(value)
    return value is None or kind is bool or (kind is int and -(2**63) <= value < 2**64)
