"""Live events: once a second the server looks for what is new and sends all viewers the same bytes.

A slow viewer costs little: what does not fit into its small queue is dropped, and when it has read the rest its stream
ends; it reconnects and fetches everything again. A viewer that reads nothing for long is disconnected.
"""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from td3.errors import RunError
from td3.views.web.files import GrowingLines, decoded_lines
from td3.views.web.run_index import RunIndex, Unknown, film_version, findings_of
from td3.views.web.runs import Run, Watched
from td3.views.web.updates import Updates

PERIOD = 1.0  # seconds between two looks
HEARTBEAT = 15.0  # seconds of silence after which a comment is sent
PATIENCE = 30.0  # seconds one message may take to be read before the viewer counts as dead
QUEUE = 16  # messages that wait for a viewer
MOST_ROWS = 1_000  # new rows that are sent one by one; of more, the viewer fetches a summary
MOST_VIEWERS = 1_000
FAREWELL = 5.0  # seconds that viewers have at the end to fetch the last state


def message(event: str, data: Any) -> bytes:
    """Formats a server-sent event."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


END = message("end", {})  # the server ends: the viewer fetches the last state, and leaves


class Followed:
    """One run that somebody looks at closely."""

    def __init__(self, run: Watched, updates: Updates, late: bool = False) -> None:
        """`late`: somebody asked for it before it was there, and may have missed its beginning."""
        self.run, self.lines, self.updates, self.late = run, GrowingLines(run.metrics), updates, late
        self.film, self.newest = film_version(run), -1
        self.findings = findings_of(run)
        with contextlib.suppress(RunError, OSError):
            for _ in self.lines.new():
                pass  # what is there already, the viewer fetches

    def news(self) -> list[bytes]:
        """Returns messages about what is new: points, findings, updates and the film."""
        messages = []
        with contextlib.suppress(RunError, OSError):
            rows: list[dict[str, Any]] = []
            for _, lump in self.lines.new():
                if not self.lines.restarted and len(rows) <= MOST_ROWS:  # else it is all fetched anew
                    rows += decoded_lines(lump, dict[str, Any])
            if self.late or self.lines.restarted or len(rows) > MOST_ROWS:
                self.late = False
                messages.append(message("points", {"id": self.run.id, "again": True}))
            elif rows:
                messages.append(message("points", {"id": self.run.id, "series": columns(rows)}))
        if (findings := findings_of(self.run)) != self.findings:
            self.findings = findings
            messages.append(message("findings", {"id": self.run.id, "findings": findings}))
        with contextlib.suppress(RunError, OSError):
            found = self.updates.refresh()
            if found and found[-1].update != self.newest:
                self.newest = found[-1].update
                messages.append(message("updates", {"id": self.run.id, "newest": self.newest, "count": len(found)}))
        if film_version(self.run) != self.film:
            self.film = film_version(self.run)
            messages.append(message("film", {"id": self.run.id, "version": self.film}))
        return messages


def columns(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Returns the rows' numbers as columns, by the metric's name."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {"step": [], "value": []})
    for row in rows:
        for name, value in row.items():
            if name != "step" and (value is None or isinstance(value, int | float)):
                found[name]["step"].append(row.get("step"))
                found[name]["value"].append(value)
    return found


class Viewer:
    """One open web page, and the news it has not been sent yet."""

    def __init__(self, id: str | None) -> None:
        self.id = id
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUE)
        self.behind = False

    def tell(self, news: bytes) -> None:
        """Queues a message; a viewer with a full queue misses it."""
        self.behind = self.behind or self.queue.full()
        if not self.behind:
            self.queue.put_nowait(news)

    def end(self) -> None:
        """Its stream ends with what waits for it."""
        self.behind = True
        if self.queue.empty():
            self.queue.put_nowait(b": the end\n\n")

    async def next(self) -> bytes | None:
        """Returns the next message for it, or None if it has missed something."""
        if self.behind and self.queue.empty():
            return None
        try:
            async with asyncio.timeout(HEARTBEAT):  # `wait_for` forgets, before Python 3.12, that the viewer has left
                return await self.queue.get()
        except TimeoutError:
            return b": still here\n\n"


class Hub:
    """Follows what viewers look at and sends each what is new."""

    def __init__(self, index: RunIndex) -> None:
        self.index = index
        self.viewers: set[Viewer] = set()
        self._followed: dict[str, Followed] = {}
        self._rows: dict[str, Run] | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._ending = False

    async def farewell(self, impatient: Callable[[], bool]) -> None:
        """Says to every viewer that this is the end, and waits until all have left, but not for long."""
        self._ending = True
        for viewer in self.viewers:
            viewer.tell(END)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                while self.viewers and not impatient():
                    await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def viewer(self, id: str | None) -> AsyncIterator[Viewer]:
        """Return a viewer that is sent everything from now on; it fetches what was before."""
        viewer = Viewer(id)
        self.viewers.add(viewer)
        try:
            await asyncio.to_thread(self._follow, {id} if id else set())
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._look_on())
            if self._ending:
                viewer.tell(END)
            yield viewer
        finally:
            self.viewers.discard(viewer)

    async def _look_on(self) -> None:
        """Looks as long as there are viewers."""
        while self.viewers:
            ids = {viewer.id for viewer in self.viewers if viewer.id}
            with contextlib.suppress(Exception):  # whatever a look runs into, the next one may be better
                common, special = await asyncio.to_thread(self._look, ids)
                for viewer in self.viewers:
                    if news := common + special.get(viewer.id or "", b""):
                        viewer.tell(news)
            await asyncio.sleep(PERIOD)
        self._rows, self._followed = None, {}

    def _follow(self, ids: set[str], late: bool = False) -> None:
        with self._lock:
            if self._rows is None:
                self._rows = {row.id: row for row in self.index.rows()}
            for id in ids - self._followed.keys():
                with contextlib.suppress(Unknown):
                    self._followed[id] = Followed(self.index.run(id), self.index.updates(id), late)

    def _look(self, ids: set[str]) -> tuple[bytes, dict[str, bytes]]:
        """What is new for everybody, and for those who look at one run."""
        self._follow(ids, late=True)
        with self._lock:
            before, self._rows = self._rows or {}, {row.id: row for row in self.index.rows()}
            changed = [row for id, row in self._rows.items() if before.get(id) != row]
            gone = [id for id in before if id not in self._rows]
            self._followed = {id: one for id, one in self._followed.items() if id in ids}
            common = message("runs", {"runs": changed, "gone": gone}) if changed or gone else b""
            return common, {id: b"".join(one.news()) for id, one in self._followed.items()}
