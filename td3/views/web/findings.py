"""Findings of the diagnosis that stand in a run's record, as the page shows them: bounded, printable, worst first."""

import re
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from td3.config import has_no_name
from td3.diagnosis import RULES
from td3.metrics import METRICS
from td3.views.findings import command_line
from td3.views.speaking import printable
from td3.views.web.files import GrowingLines, decoded, stamp

SIGN = b'"finding"'  # stands in every row that has one
MOST = 30  # findings of one run, each by another name: more than there are rules
LONGEST_SENTENCE = 500  # characters
LONGEST_WORD = 100
READING_COMMANDS = ("check", "doctor", "evaluate", "watch")  # a stranger's record may offer to paste these alone
PLAIN_WORD = re.compile(r"RUN|ENV|--[a-z-]{1,30}|[a-z]{1,20}|[0-9]{1,9}")
RANKS = {rule.name: rank for rank, rule in enumerate(RULES)}


class Shown(msgspec.Struct, frozen=True):
    """One finding for the page: text of a bounded length, whatever the record holds."""

    name: str
    step: int
    seen: str
    advice: str
    chart: str  # one of our metrics, or nothing
    command: tuple[str, ...]  # words after `td3`, or none


class _Finding(msgspec.Struct):
    name: str
    step: int | float
    seen: str
    advice: str = ""
    chart: str = ""
    command: list[str] = []


class _Row(msgspec.Struct):
    finding: _Finding


class Findings:
    """Finds them in one record; what is appended is searched once, and a record that was cut back anew."""

    def __init__(self, path: Path) -> None:
        self._lines = GrowingLines(path)
        self._lock = threading.Lock()
        self._found: dict[str, Shown] = {}
        self._searched: Any = None  # the state of the file that all is known of

    def search(self, most: float = float("inf")) -> int:
        """Searches about `most` bytes that are new, and returns how many were read."""
        with self._lock:
            now, read = stamp(self._lines.path), 0
            if now == self._searched or most <= 0:
                return 0
            with closing(self._lines.new()) as lumps:
                for begin, lump in lumps:
                    if self._lines.restarted and begin == 0:
                        self._found = {}
                    self._add(lump)
                    read += len(lump)
                    if read >= most:
                        return read
            if self._lines.restarted and self._lines.place == 0:
                self._found = {}
            self._searched = now
            return read

    def _add(self, lump: bytes) -> None:
        place = lump.find(SIGN)
        while place >= 0 and len(self._found) < MOST:
            begin, end = lump.rfind(b"\n", 0, place) + 1, lump.find(b"\n", place)
            end = len(lump) if end < 0 else end
            row = decoded(lump[begin:end], _Row)
            if row and (one := shown(row.finding)):
                self._found.setdefault(one.name, one)  # said once: the first time
            place = lump.find(SIGN, end)

    def all(self) -> list[Shown]:
        """Returns what was found so far, the worst first."""
        with self._lock:
            return sorted(self._found.values(), key=lambda one: (RANKS.get(one.name, len(RANKS)), one.step))


def shown(finding: _Finding) -> Shown | None:
    """Returns a finding as it may be shown; None for one that says nothing."""
    if not finding.seen.strip() or not 0 <= finding.step < 2**53:
        return None
    return Shown(
        name=bounded(finding.name, LONGEST_WORD),
        step=int(finding.step),
        seen=bounded(finding.seen, LONGEST_SENTENCE),
        advice=bounded(finding.advice, LONGEST_SENTENCE),
        chart=finding.chart if finding.chart in METRICS else "",
        command=tuple(finding.command) if is_harmless(finding.command) else (),
    )


def bounded(text: str, most: int) -> str:
    """Makes a stranger's text one line of at most so many characters, none of them a control."""
    text = printable(text[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_harmless(words: list[str]) -> bool:
    """Says whether a command only reads a run or checks its environment, and names nothing else."""
    plain = 0 < len(words) <= 8 and all(PLAIN_WORD.fullmatch(word) for word in words)
    return plain and words[0] in READING_COMMANDS


def as_data(found: list[Shown], run: Path, env: str | None) -> list[dict[str, Any]]:
    """Returns findings as plain data, each with the command that shows it, ready to paste; or null."""
    return [{**msgspec.structs.asdict(one), "command": command_of(one, run, env)} for one in found]


def command_of(finding: Shown, run: Path, env: str | None) -> str | None:
    """Writes the command that shows a finding, if it would work with the run's environment as it is named."""
    if not finding.command or ("ENV" in finding.command and not is_usable(env)):
        return None
    return command_line(finding.command, near(run), env or "")


def is_usable(env: str | None) -> bool:
    """Says whether a command can name this environment: a stranger's config may hold anything."""
    return env is not None and 0 < len(env) <= LONGEST_WORD and not env.startswith("-") and not has_no_name(env)


def near(path: Path) -> Path:
    """Returns the path as a person types it: from the folder that this process works in, where it is below it."""
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return path
    return path.relative_to(here) if path.is_relative_to(here) and path != here else path
