"""What a refusal must name, whatever its sentence: its class, the field, the value, and what else the user needs."""

import re
from contextlib import contextmanager

import pytest

UNSAID = object()  # no value is asked for: None is a value


@contextmanager
def refusal(kind, field=None, value=UNSAID, *facts):
    """Expects an error of class `kind` whose one line names the field, the value and every further fact.

    A fact is a word, a number or a phrase of the user's own: a limit, another flag, a file. Yields what
    `pytest.raises` does; afterwards `str(caught.value)` is the sentence.

        with refusal(ConfigError, "tau", 1.5):
            Config(tau=1.5)
    """
    with pytest.raises(kind) as caught:
        yield caught
    check_names(str(caught.value), field, value, *facts)


def check_names(text, field=None, value=UNSAID, *facts):
    """Asserts the same of a sentence that was printed or stored."""
    assert text.strip() and "\n" not in text.strip(), f"a refusal is one line: {text!r}"
    if field is not None:
        assert says(text, field), f"the field {field} is not named: {text}"
    if value is not UNSAID:
        got = text.partition("; got ")[2] or text  # not the limit that the sentence names before
        assert any(says(got, shape) for shape in shapes(value)), f"the value {value!r} is not named: {text}"
    for fact in facts:
        assert any(says(text, shape) for shape in shapes(fact)), f"{fact!r} is not named: {text}"


def shapes(value):
    """The ways in which a sentence may write a value: 1000, 1,000, 'text' or text."""
    ways = [repr(value), str(value)]
    if isinstance(value, int) and not isinstance(value, bool):
        ways.append(f"{value:,}")
    return [way for way in ways if way]


def says(text, words):
    """Whether a text has these words as words of their own: `step` is not in `steps`, nor 1 in 1.5 or 10."""
    return re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(words)}(?!\w)(?![.,]\d)", text) is not None
