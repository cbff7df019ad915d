"""Reads a run's folder and says what stands out: plain files, no learner, no environment, nothing imported by name."""

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from td3.config import Config
from td3.diagnosis.evidence import Evidence
from td3.diagnosis.rules import MOST, findings
from td3.errors import ConfigError, RunError
from td3.storage import disk
from td3.storage.record import read_metrics
from td3.types import Finding
from td3.wording import brief

LARGEST_CONFIG = 2**20  # bytes


def diagnose(run: str | Path, most: int = MOST) -> list[Finding]:
    """Returns what stands out in a run, live, finished or failed: at most `most` findings, the worst first.

    >>> for finding in td3.diagnose("runs/cheetah"):
    ...     print(finding.seen, finding.advice)
    """
    return findings(read_evidence(run), most)


def read_evidence(run: str | Path) -> Evidence:
    """Returns what the record of a run shows, and its settings as they are now."""
    path = folder_of(run)
    data = read_config(path)
    try:
        evidence = Evidence(Config.from_data(data))
        for row in read_metrics(path / "metrics.jsonl"):
            evidence.add(row)
        with contextlib.suppress(ConfigError):  # of a record that is not ours
            evidence.config = Config.from_data({**data, **evidence.changed})
    except (KeyError, TypeError, AttributeError, ConfigError) as problem:
        raise RunError(f"The config of run {str(run)!r} cannot be used: {problem}") from None
    return evidence


def folder_of(run: str | Path) -> Path:
    """Returns the path of a run; refuses what is none."""
    try:
        path = Path(run)
        there = path.is_dir()
    except (TypeError, ValueError, OSError):
        raise ConfigError(f"run must be the path of a folder; got {brief(run)}.") from None
    if not there:
        raise ConfigError(f"run {str(run)!r} is no folder.")
    if not (path / "config.json").exists():
        raise ConfigError(f"run {str(run)!r} has no config.json: it is no run of td3.")
    return path


def read_config(path: Path) -> dict[str, Any]:
    """Returns the settings that a run was begun with."""
    try:
        data = msgspec.json.decode(disk.read(path / "config.json", LARGEST_CONFIG), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as problem:
        raise RunError(f"{path / 'config.json'} is no JSON object: {problem}.") from None
    return {name: value for name, value in data.items() if name != "parts"}
