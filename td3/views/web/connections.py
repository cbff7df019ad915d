"""Limits connections to the web server: half-sent requests cannot keep other viewers out."""

import asyncio
import contextlib
import resource

from uvicorn.protocols.http.h11_impl import H11Protocol

from td3.views.web.live import PATIENCE

MOST = 2_000  # connections
ENOUGH = 4_096  # descriptors: for so many connections, and the files that are read for them
REQUEST_TIME = 5.0  # seconds in which a request must have been sent


def most_connections() -> int:
    """How many connections leave enough descriptors for all else; as many as this process may have are asked for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    wanted = max(soft, ENOUGH if hard == resource.RLIM_INFINITY else min(ENOUGH, hard))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(4, min(MOST, soft - max(32, soft // 4)))


def protocol(most: int) -> type[H11Protocol]:
    """A protocol for uvicorn that keeps `most` connections, and none for long that only waits."""

    class Protocol(H11Protocol):
        """Serves one connection, within limits of time and number."""

        _deadline: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None
        since = 0.0  # when it began to wait for a request

        @property
        def waiting(self) -> bool:
            """Whether it has nothing to be answered: it sent no request, or half of one, or has its answer."""
            return (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing()

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Expects a request; if there are too many connections, drops the one that has waited longest."""
            super().connection_made(transport)
            self._expect_request()
            others = [one for one in self.connections if isinstance(one, Protocol)]
            if sum(not one.transport.is_closing() for one in others) > most:
                # The one that waits longest goes; where all others are being answered, that is this one.
                min((one for one in others if one.waiting), key=lambda one: one.since).transport.abort()

        def data_received(self, data: bytes) -> None:
            """Takes in data, and stops the deadline once the request is whole."""
            super().data_received(data)
            if not self.waiting:
                self._stop("_deadline")
            elif self._deadline is None:  # more of a request does not put it off
                self._expect_request()

        def on_response_complete(self) -> None:
            """Begins to wait for the next request."""
            self.since = self.loop.time()
            super().on_response_complete()

        def _expect_request(self) -> None:
            self.since = self.loop.time()
            self._deadline = self.loop.call_later(REQUEST_TIME, self.transport.abort)

        def pause_writing(self) -> None:
            """Pauses, and drops a viewer that reads nothing for too long."""
            super().pause_writing()
            self._see_progress(-1)

        def _see_progress(self, before: int) -> None:
            """Lets go of a reader that has read nothing for long."""
            left = self.transport.get_write_buffer_size()
            if left == before:
                self.transport.abort()
            else:
                self._stalled = self.loop.call_later(PATIENCE, self._see_progress, left)

        def resume_writing(self) -> None:
            """Resumes: the viewer reads again."""
            self._stop("_stalled")
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stops all timers of the connection."""
            self._stop("_deadline")
            self._stop("_stalled")
            super().connection_lost(exc)

        def _stop(self, timer: str) -> None:
            if running := getattr(self, timer):
                running.cancel()
                setattr(self, timer, None)

    return Protocol
