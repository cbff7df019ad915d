"""The state of each run below a folder: live, finished, stopped, failed or broken."""

import contextlib
import hashlib
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any

import msgspec

from td3.errors import RunError
from td3.storage.runs import alive, read_object
from td3.storage.study import is_locked
from td3.views.web.files import decoded_lines, open_regular, stamp, tail
from td3.views.web.findings import Findings

LAST_ROWS = 2**16  # bytes of metrics in which the newest numbers stand
LONGEST_SENTENCE = 500  # characters of why a run failed
SILENCE = 60.0  # seconds after which a run on another machine no longer counts as live


class Run(msgspec.Struct, frozen=True):
    """A row of the table. `group` is the same for runs that differ in nothing but their seed."""

    id: str
    name: str
    env: str | None
    seed: int | None
    step: int
    goal: int | None
    best: float | None
    last: float | None
    speed: float | None
    state: str
    problem: str | None
    group: str
    changed: float
    findings: int = 0  # of the diagnosis, in its record
    finding: str | None = None  # the worst of them, in a sentence
    reason: str | None = None  # why it finished before its goal, in a sentence
    begun: float = 0.0  # when; a run that takes the place of another has another


class _Row(msgspec.Struct, rename={"score": "eval/mean_return", "speed": "time/steps_per_second"}):
    step: int | float = 0
    score: float | None = None
    speed: float | None = None
    failed: str | None = None  # why the run ended
    stopped: str | None = None  # why it stopped by itself


class _Manifest(msgspec.Struct):
    step: int
    serial: int = 0
    score: float | None = None


class _Goal(msgspec.Struct):
    steps: int


class _State(msgspec.Struct):
    config: _Goal
    stopped: Any = None  # why the run stopped by itself


class Watched:
    """One run's folder: its row, read again only when one of its files has changed."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root, self.path = root, path
        self.name = readable(path.relative_to(root).as_posix() if path != root else path.name)
        self.id = id_of(path)
        self.metrics, self.updates, self.film = path / "metrics.jsonl", path / "updates.jsonl", path / "film.webp"
        self._read_at: Any = None
        self._score: float | None = None  # the newest known ones: they may stand far from the record's end
        self._speed: float | None = None
        self._manifests: dict[str, _Manifest] = {}  # by checkpoint: they are never written again
        self._states: dict[str, _State] = {}  # of the newest alone
        self._row = Run(self.id, self.name, None, None, 0, None, None, None, None, "broken", None, "", 0.0)
        self.findings = Findings(self.metrics)

    def is_there(self) -> bool:
        """Whether it still is a folder below the root, with no link on the way."""
        below = [self.path, *self.path.parents]
        return all(is_folder(one) for one in below[: below.index(self.root)] or below[:1])

    def row(self) -> Run:
        """Returns the run's row; reads its files only if they changed."""
        live = self._live()
        stamps = [stamp(self.path / name) for name in ("config.json", "metrics.jsonl", "checkpoints")]
        if (live, stamps) != self._read_at:
            self._row = self._read(live, max(stamps)[0])
            self._read_at = (live, stamps)
        found = self.findings.all()
        worst = found[0].seen if found else None
        if (self._row.findings, self._row.finding) != (len(found), worst):
            self._row = msgspec.structs.replace(self._row, findings=len(found), finding=worst)
        return self._row

    def config(self) -> dict[str, Any]:
        """Reads the run's config."""
        return read_object(self.path / "config.json")

    def versions(self) -> dict[str, Any]:
        """Reads the versions that the run was made with."""
        return read_object(self.path / "versions.json")

    def _read(self, live: bool, changed: float) -> Run:
        problem = None if is_folder(self.path / "checkpoints") else "checkpoints is no folder."
        config: dict[str, Any] = {}
        try:
            config = self.config()
        except RunError as why:
            problem = problem or str(why)
        rows: list[_Row] = []
        try:
            rows = self._last_rows()
        except (RunError, OSError) as why:
            problem = problem or str(why)
        step = int(max((row.step for row in rows), default=0))
        scores = [row.score for row in rows if row.score is not None]
        speeds = [row.speed for row in rows if row.speed is not None]
        self._score = scores[-1] if scores else self._score if step else None
        self._speed = speeds[-1] if speeds else self._speed if step else None
        newest, best = self._checkpoints()
        goal = newest.config.steps if newest else whole(config.get("steps"))
        done = bool((newest and newest.stopped) or (goal and step >= goal))  # it stopped by itself, or is at its goal
        failed = rows[-1].failed if rows else None  # the last row: a run that was resumed is without it
        state = "broken" if problem else "live" if live else "finished" if done else "stopped"
        if state == "stopped" and failed is not None:
            state, problem = "failed", failed[:LONGEST_SENTENCE]
        reasons = [
            row.stopped for row in rows if row.stopped is not None and row.step >= step
        ]  # and no step came after
        return Run(
            id=self.id,
            name=self.name,
            env=text(config.get("env")),
            seed=whole(config.get("seed")),
            step=step,
            goal=goal,
            best=max((one for one in (*scores, best, self._score) if one is not None), default=None),
            last=self._score,
            speed=self._speed,
            state=state,
            problem=problem,
            group=group_of(config) if config else self.id,
            changed=changed,
            reason=reasons[-1][:LONGEST_SENTENCE] if reasons and state == "finished" else None,
            begun=stamp(self.path / "versions.json")[0],
        )

    def _last_rows(self) -> list[_Row]:
        """The record's end: far enough back to have a row, and a score if it is not known yet."""
        rows: list[_Row] = []
        for most in (LAST_ROWS, 16 * LAST_ROWS, 256 * LAST_ROWS):
            rows = decoded_lines(tail(self.metrics, most), _Row)
            enough = bool(rows) and (self._score is not None or any(row.score is not None for row in rows))
            if enough or stamp(self.metrics)[1] <= most:
                break
        return rows

    def _checkpoints(self) -> tuple[_State | None, float | None]:
        """What the newest checkpoint says, for the goal may have been moved; the best score of those kept."""
        try:
            with os.scandir(self.path / "checkpoints") as entries:
                folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            return None, None
        if not is_folder(self.path / "checkpoints"):
            return None, None
        names = [name for name in folders if name[:1].isdigit()]
        known = {name: self._manifests[name] for name in names if name in self._manifests}
        for name in set(names) - known.keys():
            with contextlib.suppress(RunError, OSError):
                known[name] = read_typed(self.path / "checkpoints" / name / "manifest.json", _Manifest)
        self._manifests = known
        best = max((one.score for one in known.values() if one.score is not None), default=None)
        newest = max(known, key=lambda name: (known[name].step, known[name].serial), default=None)
        if newest is not None and newest not in self._states:
            with contextlib.suppress(RunError, OSError):
                self._states = {newest: read_typed(self.path / "checkpoints" / newest / "state.json", _State)}
        return self._states.get(newest) if newest is not None else None, best

    def _live(self) -> bool:
        """Returns whether a process holds it; one on another machine, if the run wrote metrics of late."""
        try:
            holder = read_object(self.path / "lock")
            pid, host = int(holder["pid"]), str(holder["host"])
        except (RunError, KeyError, TypeError, ValueError):
            return False
        if host == socket.gethostname() or pid <= 0:  # 0: the run was left in order
            return alive(pid) and is_locked(self.path)  # another process may have the same id by now
        return stamp(self.metrics)[0] > time.time() - SILENCE


def id_of(path: Path) -> str:
    """Returns the id of a folder: the same from wherever it is watched, and no other folder's."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:12]


def read_typed(path: Path, kind: Any) -> Any:
    """A JSON file of a few known fields; the others are passed over."""
    file = open_regular(path)
    try:
        data = os.pread(file, 2**24, 0)
    finally:
        os.close(file)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RunError(f"{path.name} is not what it should be.") from None


def group_of(config: dict[str, Any]) -> str:
    """Returns the same text for the same settings; a setting that follows another (null) may be missing."""
    same = {name: value for name, value in config.items() if name not in ("seed", "steps") and value is not None}
    return hashlib.sha256(msgspec.json.encode(same, order="sorted")).hexdigest()[:12]


def readable(name: str) -> str:
    """A name on the disk need not be Unicode."""
    return name.encode(errors="replace").decode()


def is_folder(path: Path) -> bool:
    """Itself, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def whole(value: Any) -> int | None:
    """Returns the value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """Returns the value if it is text."""
    return value if isinstance(value, str) else None
