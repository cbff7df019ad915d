"""A user's own parts of a run on the command line: `--learner MODULE:NAME`, `--sampler`, `--noise`, `--collector`."""

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from td3.config.values import number_in
from td3.errors import ConfigError
from td3.views.flags import Parser
from td3.wording import brief

PARTS = {
    "learner": "your own learner: a subclass of td3.Learner",
    "sampler": "your own sampler of the replay memory",
    "noise": "your own exploration noise",
    "collector": "your own collector of transitions",
}
NEEDED = {"evaluate": ("learner",), "export": ("learner",)}  # by commands that need not all of them


def add_parts(parser: Parser, names: Iterable[str] = tuple(PARTS)) -> None:
    """Adds a flag for each of these parts."""
    group = parser.add_argument_group("your own parts", "Imported because you name them; a run keeps the name alone.")
    for name in names:
        group.add_argument(f"--{name}", metavar="MODULE:NAME", help=PARTS[name])


def part_names(chosen: Namespace) -> dict[str, str]:
    """Returns the parts that were named, as they were typed."""
    given = {name: getattr(chosen, name, None) for name in PARTS}
    return {name: text for name, text in given.items() if text is not None}


def load_parts(chosen: Namespace) -> dict[str, Any]:
    """Imports the parts that were named."""
    names = part_names(chosen)
    if not names:
        return {}
    check_noise(names.get("noise", ""))
    from td3.environments.user_code import load_named

    return {name: load_named(name, text) for name, text in names.items()}


def check_noise(text: str) -> None:
    """Refuses a number: elsewhere `--noise 0.1` is the size of the noise."""
    try:
        number_in(text)
    except ValueError:
        return
    raise ConfigError(f"noise must be MODULE:NAME; got {brief(text)}. Did you mean --exploration-noise?")


def part_words(command: str, parts: Mapping[str, str]) -> list[str]:
    """Returns the flags that a further command of the same run needs."""
    needed = NEEDED.get(command, tuple(PARTS))
    return [word for name, text in parts.items() if name in needed for word in (f"--{name}", text)]
