"""What a setting is: its type, range, meaning and source; how a value or a text becomes one."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from td3.config.search import Choices, Range
from td3.config.values import in_words, number_in, python_value, whole_number_in
from td3.errors import ConfigError
from td3.synonyms import value_for
from td3.wording import brief, did_you_mean

UNSET: Any = object()  # a field without a value yet: it comes from the task, the preset or the default
MOST_LAYERS = 64  # of a network: a longer list is a mistake
TYPE_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}


@dataclass(frozen=True)
class Setting:
    """What is known about one field: enough to check it, to explain it and to make a flag of it."""

    group: str
    default: Any  # None: what another setting says
    meaning: str
    source: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    kind: str = ""  # the type in words, where it has a check of its own
    own_check: Callable[[Any], Any] | None = None
    search: Range | Choices | None = None  # where `td3 tune` looks for its value; None: it cannot be searched
    tuned: bool = False  # `td3 tune` searches it unless it is fixed
    name: str = ""
    type: Any = None

    @property
    def is_list(self) -> bool:
        """Whether it is a list of whole numbers, such as the sizes of layers."""
        return bool(self.type == tuple[int, ...])

    @property
    def allowed(self) -> str:
        """The range in words: 'above 0, at most 1', or the choices; empty where every value is allowed."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        bounds = {"at least": self.at_least, "above": self.above, "at most": self.at_most}
        return ", ".join(f"{word} {bound:,}" for word, bound in bounds.items() if bound is not None)

    @property
    def type_words(self) -> str:
        """The type in words: 'a whole number'."""
        if self.is_list:
            return f"whole numbers such as {in_words(self.default or (256, 256))}"
        return self.kind or TYPE_WORDS[self.type]

    @property
    def range_words(self) -> str:
        """Type and range in words: 'a number, above 0, at most 1'."""
        if self.choices or not self.allowed:
            return self.allowed or self.type_words
        each = f" at most {MOST_LAYERS} of them, each" if self.is_list else ""
        return f"{self.type_words},{each} {self.allowed}"

    def admits(self, value: Any) -> bool:
        """Says whether a value of the right type is in range."""
        if self.choices:
            return value in self.choices
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )

    def check(self, value: Any) -> Any:
        """Returns the value in the field's own type, or refuses it by field, value and range."""
        if self.own_check:
            return self.own_check(value)
        if value is None and self.default is None:
            return None
        try:
            converted = msgspec.convert(python_value(value, whole=self.type is not float), self.type)
        except msgspec.ValidationError:
            raise self.refusal(value) from None
        each = converted if isinstance(converted, tuple) else (converted,)
        finite = converted == converted and converted not in (float("inf"), float("-inf"))
        if not finite or len(each) > MOST_LAYERS or not all(map(self.admits, each)):
            raise self.refusal(value)
        return converted

    def parse(self, text: str) -> Any:
        """Returns the value that a flag's text stands for, still to be checked."""
        if text.casefold() == "none" and self.default is None:
            return None
        try:
            if self.is_list:
                return tuple(map(whole_number_in, text.split(",")))
            if self.type is int:
                return whole_number_in(text)
            return number_in(text) if self.type is float else text
        except ValueError:  # of bytes that are no UTF-8, too
            raise self.refusal(text) from None

    def refusal(self, value: Any) -> ConfigError:
        """Makes the error that refuses a value."""
        near = ""
        if self.choices and isinstance(value, str):
            meant = value_for(self.name, value)
            near = f" Did you mean {meant}?" if meant else did_you_mean(value, self.choices)
        return ConfigError(f"{self.name} must be {self.range_words}; got {brief(value)}.{near}")


def setting(group: str, default: Any, meaning: str, **known: Any) -> Any:
    """Makes a dataclass field of a setting."""
    by_hash = None if default.__hash__ else False  # a mapping counts for equality alone
    metadata = {"setting": Setting(group, default, meaning, **known)}
    return field(default_factory=lambda: UNSET, hash=by_hash, metadata=metadata)


def settings_of(dataclass: type) -> dict[str, Setting]:
    """Returns the settings of a class, each with the name and type of its field."""
    hints = get_type_hints(dataclass)
    return {
        field.name: replace(field.metadata["setting"], name=field.name, type=_without_none(hints[field.name]))
        for field in fields(dataclass)
    }


def _without_none(hint: Any) -> Any:
    if get_origin(hint) is not UnionType:
        return hint
    (kind, *others) = [part for part in get_args(hint) if part is not NoneType]
    return hint if others else kind
