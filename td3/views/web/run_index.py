"""The index of the watched folder: its runs, and the metrics and updates that viewers have asked for."""

import contextlib
import functools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from td3.config import GROUPS
from td3.errors import RunError
from td3.metrics import METRICS
from td3.storage.runs import find
from td3.views.findings import command_line
from td3.views.web.files import stamp
from td3.views.web.findings import as_data, near
from td3.views.web.runs import Run, Watched, id_of, readable, text
from td3.views.web.series import Points, Record, Shown, names_in
from td3.views.web.updates import Updates

LOOK_AROUND = 2.0  # seconds between two looks for folders that came or went
SEARCHED = 2**25  # bytes of records that one look searches for findings: a list of long runs is complete after some
MOST_RECORDS = 500  # of which blocks are kept; the one not asked for the longest goes first


class Unknown(Exception):
    """A run, a metric or an update that is not here."""


class RunIndex:
    """Finds the runs in a folder and answers questions about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._watched: dict[str, Watched] = {}
        self._looked = -LOOK_AROUND
        self._turn = 0
        self._lock = threading.Lock()
        self._record = functools.lru_cache(MOST_RECORDS)(Record)
        self._updates = functools.lru_cache(MOST_RECORDS)(Updates)

    def rows(self) -> list[Run]:
        """Returns one row for each run."""
        with self._lock:
            self._look_around()
            self._search()
            found = []
            for one in self._watched.values():
                with contextlib.suppress(OSError):  # it went while we looked
                    found.append(one.row())
            return found

    def overview(self) -> dict[str, Any]:
        """Returns the rows, and what folder this is."""
        return {"root": readable(self.root.name), "runs": self.rows(), **self._served(self.root)}

    def _served(self, folder: Path) -> dict[str, str]:
        """Returns which folder is served, and the command that shows `folder` again."""
        return {"served": id_of(self.root), "watch": command_line(("watch", "RUN"), near(folder), "")}

    def _look_around(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_AROUND:
            return
        self._looked = now
        known = {one.path: one for one in self._watched.values()}
        there = [known.get(path) or Watched(self.root, path) for path in find(self.root)]
        self._watched = {one.id: one for one in there}

    def _search(self) -> None:
        """Searches records for findings, a little at each look; another run comes first each time."""
        self._turn += 1
        waiting, left = list(self._watched.values()), SEARCHED
        first = self._turn % max(1, len(waiting))
        for one in waiting[first:] + waiting[:first]:
            with contextlib.suppress(RunError, OSError):  # it is no regular file, or went while we looked
                left -= one.findings.search(left / 2)

    def run(self, id: str) -> Watched:
        """Returns the run with this id, or raises `Unknown`."""
        if id not in self._watched:
            with self._lock:
                self._look_around()
        found = self._watched.get(id)
        if found is None or not found.is_there():
            raise Unknown(f"There is no run {id[:40]!r} here.")
        return found

    def detail(self, id: str) -> dict[str, Any]:
        """Returns everything about one run but its numbers."""
        run = self.run(id)
        findings = findings_of(run)
        config = versions = None
        with contextlib.suppress(RunError):
            config = run.config()
        with contextlib.suppress(RunError):
            versions = run.versions()
        metrics: list[str] = []
        with contextlib.suppress(RunError, OSError):
            metrics = names_in(run.metrics)
        return {
            "run": run.row(),
            "config": config,
            "groups": GROUPS,
            "versions": versions,
            "metrics": metrics,
            "meanings": METRICS,
            "findings": findings,
            "doctor": command_line(("doctor", "RUN"), near(run.path), ""),
            "updates": len(self.updates(id).refresh()),
            "film": stamp(run.film)[1] > 0,
            "film_version": film_version(run),
            **self._served(run.path),
        }

    def series(self, id: str, names: list[str], first: float, last: float, points: int) -> dict[str, Any]:
        """Returns points of these metrics between two steps, as plain data."""
        run = self.run(id)
        known = [name for name in names if name in names_in(run.metrics)]
        found = self._record(run.metrics).within(known, first, last, 2 * points) if known else {}
        return {"id": id, "series": {name: plain(found.get(name, NOTHING)) for name in names}}

    def updates(self, id: str) -> Updates:
        """Returns the recorded updates of a run."""
        return self._updates(self.run(id).updates)


NOTHING = Shown(Points(np.empty(0), np.empty(0)), None)


def plain(shown: Shown) -> dict[str, Any]:
    """Convert to plain data; NaN becomes null."""
    step, value = (one.tolist() for one in shown.points)
    mean = shown.mean and {"step": shown.mean.step.tolist(), "value": shown.mean.value.tolist()}
    return {"step": step, "value": value, "mean": mean}


def findings_of(run: Watched) -> list[dict[str, Any]]:
    """Returns all findings that stand in a run's record by now, as plain data, the worst first."""
    with contextlib.suppress(RunError, OSError):
        run.findings.search()
    found = run.findings.all()
    env = None
    if any(one.command for one in found):
        with contextlib.suppress(RunError):
            config = run.config()
            env = None if config.get("env_args") else text(config.get("env"))  # a stranger's arguments are not pasted
    return as_data(found, run.path, env)


def film_version(run: Watched) -> int:
    """Returns a number that changes with the film."""
    return int(1_000 * stamp(run.film)[0])
