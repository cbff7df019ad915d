"""Names and texts in an exported file: a run's own words, which a stranger may have written, never become code."""

import json
import keyword
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Words that C, C++ or JavaScript keep for themselves.
_WORDS = """
    alignas alignof and and_eq arguments asm async atomic auto await bitand bitor bool break case catch char class compl
    concept const consteval constexpr constinit continue debugger decltype default delete do double dynamic_cast else
    enum eval explicit export extends extern false final finally float for friend function goto if implements import in
    inline instanceof int interface let long module mutable namespace new noexcept not not_eq null nullptr operator or
    or_eq override package private protected public register reinterpret_cast requires restrict return short signed
    sizeof static static_assert static_cast struct super switch template this thread_local throw true try typedef typeid
    typename typeof undefined union unsigned using var virtual void volatile wchar_t while with xor xor_eq yield
"""
RESERVED = frozenset(_WORDS.split())
LINE = 104  # letters of a string on one line


def identifier(text: str, otherwise: str) -> str:
    """Returns a text as a name that C, JavaScript and Python take: ASCII letters, digits and single underscores."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or otherwise
    if name[0].isdigit():
        name = f"{otherwise}_{name}"
    return f"{name}_" if name in RESERVED or keyword.iskeyword(name) else name


def distinct(names: Iterable[str]) -> list[str]:
    """Returns the names, with a number behind each that was there before."""
    found: list[str] = []
    for name in names:
        number, fresh = 2, name
        while fresh in found:
            number, fresh = number + 1, f"{name}_{number}"
        found.append(fresh)
    return found


def file_identifier(path: Path) -> str:
    """Returns the name of a policy: that of its file, without the ending."""
    return identifier(path.stem, "policy")


def class_name(name: str) -> str:
    """Returns the name of a JavaScript class: 'half_cheetah' is HalfCheetahPolicy."""
    joined = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return joined if joined.endswith("Policy") else f"{joined}Policy"


def as_json(data: Any) -> str:
    """Returns data as one line of ASCII JSON; no '<' ends a script, no U+2028 a line."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace("\x7f", "\\u007f")


def c_string(text: str) -> str:
    """Returns a text as C string literals, one a line; quotes, backslashes, trigraphs and controls are escaped."""
    lines = [""]
    for byte in text.encode():
        letter = chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
        letter = f"\\{letter}" if letter in ('"', "\\", "?") else letter
        if len(lines[-1]) + len(letter) > LINE:
            lines.append("")
        lines[-1] += letter
    return "\n        ".join(f'"{line}"' for line in lines)


def comment(text: str) -> str:
    """Returns a text that stays inside a comment of C or JavaScript, on one line."""
    return re.sub(r"[^A-Za-z0-9 .,:;()\[\]'_+=<>-]", "_", text)[:200]
