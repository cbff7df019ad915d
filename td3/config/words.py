"""Settings as the words of a command line."""

import json
from collections.abc import Mapping
from typing import Any

from td3.config.env import env_name
from td3.config.values import in_words


def flag(name: str) -> str:
    """Returns the flag of a setting."""
    return "--env-arg" if name == "env_args" else "--" + name.replace("_", "-")


def words_of(given: Mapping[str, Any]) -> list[str]:
    """Writes settings as the words of a command line: the environment first, then a flag for each of the others."""
    words = [env_name(given["env"])] if "env" in given else []
    for name, value in given.items():
        if name == "env_args":
            words += [word for key, own in value.items() for word in (flag(name), f"{key}={json.dumps(own)}")]
        elif isinstance(value, bool):
            words.append(flag(name) if value else flag(name).replace("--", "--no-", 1))
        elif name != "env":
            text = in_words(value)
            words += [f"{flag(name)}={text}"] if text.startswith("-") else [flag(name), text]
    return words
