"""Findings for people and for programs: sentences, and commands that work when they are pasted."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from td3.config import SETTINGS, Config, env_name
from td3.config.trust import needs_trust
from td3.errors import ConfigError
from td3.types import Finding
from td3.views.speaking import shell_command

# Settings that decide what `td3 check` finds.
CHECKED = (
    "action_repeat",
    "history",
    "steps",
    "reward_scale",
    "normalize_observations",
    "warmup_steps",
    "buffer_size",
    "pixels",
    "resize",
    "grey",
    "frame_stack",
)


def lines_of(findings: list[Finding], run: str | Path | None, config: Config) -> list[str]:
    """Writes findings in lines, the worst first; those of no run without a chart or a command."""
    numbered = enumerate(findings, start=1)
    return [line for number, finding in numbered for line in lines_about(finding, run, config, number)]


def lines_about(finding: Finding, run: str | Path | None, config: Config, number: int = 0) -> list[str]:
    """Writes one finding in three lines: what was seen, what to try first, and, of a run, what shows it."""
    first = f"{number}. " if number else ""
    indent = " " * len(first)
    return [
        f"{first}{finding.seen} [{finding.name}]",
        f"{indent}Try first: {finding.advice}",
        *([] if run is None else [f"{indent}See: {shown_by(finding, run, config)}"]),
    ]


def shown_by(finding: Finding, run: str | Path, config: Config) -> str:
    """Writes the command that shows a finding, and the chart to look at as a comment."""
    return command_of(finding, run, config) + ("" if finding.command else f"  # chart {finding.chart}")


def command_of(finding: Finding, run: str | Path, config: Config) -> str:
    """Writes the command that shows a finding, ready to paste."""
    words = finding.command or ("watch", "RUN")
    trust = ["--trust"] if words[0] == "evaluate" and needs_trust(config) else []
    return command_line([*words, *trust], run, *env_words(config))


def command_line(words: Sequence[str], run: str | Path, env: str, *env_arguments: str) -> str:
    """Writes a command of td3 with this run and its environment in it, ready to paste."""
    stand_for: dict[str, list[str | Path]] = {"RUN": [run], "ENV": [env, *env_arguments]}
    return shell_command(*(part for word in words for part in stand_for.get(word, [word])))


def env_words(config: Config) -> list[str]:
    """Returns an environment as a command names it: its name, its arguments, and the settings `td3 check` looks at."""
    arguments = [f"{name}={json.dumps(value)}" for name, value in config.env_args.items()]
    usual = config
    with contextlib.suppress(ConfigError):  # one without a name
        usual = Config(env=env_name(config.env), preset=config.preset)
    flags = [] if config.preset == SETTINGS["preset"].default else ["--preset", config.preset]
    for name in CHECKED:
        value = getattr(config, name)
        if value != getattr(usual, name):
            flag = f"--{name.replace('_', '-')}"
            flags += [flag if value else f"--no-{flag[2:]}"] if isinstance(value, bool) else [flag, f"{value}"]
    return [env_name(config.env), *(word for argument in arguments for word in ("--env-arg", argument)), *flags]


def as_data(finding: Finding, run: str | Path | None, config: Config) -> dict[str, Any]:
    """Returns a finding as plain data, with the command that shows it; of no run, without chart and command."""
    if run is None:
        return {name: value for name, value in finding._asdict().items() if name not in ("chart", "command")}
    return {**finding._asdict(), "command": command_of(finding, run, config)}
