"""Mistyped command lines: which command or flag was meant, said in one sentence."""

import re
from collections.abc import Iterable, Mapping
from itertools import takewhile

from td3.config import SETTINGS
from td3.config.words import flag
from td3.errors import ConfigError
from td3.schedule import RESUMABLE
from td3.synonyms import command_for, instead_of
from td3.views.flags import Parser
from td3.views.speaking import shell_command
from td3.wording import brief, did_you_mean

YES_OR_NO = ("true", "false", "yes", "no", "on", "off", "1", "0")
RENAMED = {("evaluate", "eval_episodes"): "--episodes"}  # what a setting is called as a flag of one command


def check_flags(command: str, words: list[str], commands: Mapping[str, Parser]) -> None:
    """Refuses what argparse would misread: an unknown flag's value, a value where none belongs, numbers apart."""
    known = commands[command]._option_string_actions
    for place, word in enumerate(takewhile(lambda word: word != "--", words)):
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            continue
        if name not in known:
            raise ConfigError(no_flag(name, command, commands))
        after = words[place + 1 :]
        if known[name].nargs == 0 and (equals or (after and after[0].casefold() in YES_OR_NO)):
            ways = " or ".join(known[name].option_strings)
            raise ConfigError(f"{name} takes no value: write {ways} alone; got {brief(value if equals else after[0])}.")
        numbers = list(takewhile(str.isdecimal, after))
        if len(numbers) > 1 and "," in str(known[name].metavar):
            raise ConfigError(f"{name} takes numbers with commas between them: {name} {brief(','.join(numbers), str)}.")


def having(name: str, commands: Mapping[str, Parser]) -> list[str]:
    """Returns the commands that have a flag."""
    return [f"td3 {command}" for command, parser in commands.items() if name in parser._option_string_actions]


def no_command(word: str, commands: Iterable[str]) -> str:
    """Says which command was meant, as far as that can be known."""
    meant = command_for(word)
    if not meant and (":" in word or re.search(r"-v\d+$", word)):
        meant = shell_command("train", word)
    near = f": use {meant}." if meant else f".{did_you_mean(word, commands)}"
    return f"{brief(word)} is no command of td3{near} There are: {', '.join(commands)}."


def no_flag(name: str, command: str, commands: Mapping[str, Parser]) -> str:
    """Says which flag was meant: one by another library's name, one of another command, or a near miss."""
    name = brief(name.split("=")[0], str)
    own = commands[command]._option_string_actions
    words = {action.dest: action.metavar for action in commands[command]._actions if not action.option_strings}
    missing: list[str] = []

    def shown(setting: str) -> str:
        """Writes a setting as this command takes it."""
        if word := words.get(setting) or words.get(f"{setting}s"):
            return f"{word}, without a flag before it"
        known = RENAMED.get((command, setting), flag(setting))
        if known not in own:
            missing.append(known)
        return known

    setting = name.strip("-").replace("-", "_")
    advice = f"use {shown(setting)}"
    if missing:  # no setting of this command by its own name: perhaps by another library's
        missing.clear()
        advice = instead_of(setting, shown)
    homes = having(name, commands)
    if homes and (missing or not advice):
        if command == "resume" and setting in SETTINGS:
            return f"{name} cannot be changed when a run is resumed; these can: {', '.join(map(flag, RESUMABLE))}."
        return f"{name} is no flag of td3 {command}, but of {' and '.join(homes)}."
    if advice:
        return f"{name} is no flag of td3 {command}{'; with td3 train, ' if missing else ': '}{advice}."
    return f"{name} is no flag of td3 {command}.{did_you_mean(name, own)}"
