"""Serves the live web page from this process: the port, the address with its token, and the server."""

import contextlib
import logging
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from td3.errors import ConfigError
from td3.views.signals import handled_by
from td3.views.speaking import answer, say
from td3.views.web.safety import is_loopback

PORT = 8533
TRIES = 50  # ports tried from there on, where none is asked for
WAITING = 1_024  # connections that may wait to be accepted
AT_ONCE = 4  # of them that are accepted before any other is looked at: each takes a descriptor


class Host:
    """A page on a port that is open already: where it is, and serving it."""

    def __init__(self, folder: Path, host: str, door: socket.socket, page: str = "") -> None:
        """Chooses a token where other machines can reach the port; `page` is the part of the page to open first."""
        self.folder, self.host, self.door = folder, host, door
        self.token = None if is_here(host) else secrets.token_urlsafe(24)
        self.address = address_of(host, door.getsockname()[1], self.token, page)

    def announce(self, text: str, *, as_json: bool) -> None:
        """Says where the page is."""
        if as_json:
            answer({"address": self.address, "pid": os.getpid()})
        else:
            say(f"{text} {self.address}", "Ctrl-C ends it.")

    def serve(self, *, until_closed: bool = False) -> None:
        """Serves until a signal; with `until_closed`, until standard input is closed, too."""
        import uvicorn

        from td3.views.web.connections import most_connections, protocol
        from td3.views.web.server import Page

        most, door = most_connections(), self.door
        viewers = most * 3 // 4  # the rest is for what they ask for
        page = Page(self.folder.absolute(), self.host, self.token, most_viewers=viewers)

        class Server(uvicorn.Server):
            """Sets the length of its queue of connections, and lets viewers fetch the last state before it stops."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                door.listen(WAITING)

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await page.farewell(lambda: self.force_exit)  # a second signal
                page.end()
                await super().shutdown(sockets)

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                """Handles signals as the other commands do."""
                with handled_by(self.handle_exit):
                    yield

        server = Server(
            uvicorn.Config(
                page,
                loop="asyncio",
                http=protocol(most),
                ws="none",
                log_config=None,
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=1,
                backlog=AT_ONCE,
            )
        )
        if until_closed:

            def wait_for_the_end() -> None:
                """Stops the server when standard input is closed."""
                sys.stdin.buffer.read()
                server.should_exit = True

            threading.Thread(target=wait_for_the_end, daemon=True).start()
        with logged():
            server.run([door])


class LogHandler(logging.Handler):
    """Says what the server's libraries log; the system's refusals without their traces."""

    def emit(self, record: logging.LogRecord) -> None:
        """Says one record."""
        problem = record.exc_info[1] if record.exc_info else None
        if isinstance(problem, OSError):
            say(f"td3 watch: {problem}")
        else:
            say(*self.format(record).splitlines())


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """Handles errors that are logged, for as long as the block takes."""
    handler = LogHandler(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


@contextlib.contextmanager
def listening(host: str, port: int | None) -> Iterator[socket.socket]:
    """Opens the port that was asked for, or the first free one from ours on."""
    wanted = [port] if port is not None else range(PORT, PORT + TRIES)
    reason = ""
    for number in wanted:
        try:
            family = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0][0]
            door = socket.create_server((host, number), family=family, backlog=WAITING)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            if isinstance(problem, socket.gaierror):
                break  # no other port makes the name known
            continue
        with door:
            yield door
        return
    ports = f"port {port}" if port is not None else f"ports {PORT} to {PORT + TRIES - 1}"
    raise ConfigError(f"host {host!r}, {ports} cannot be listened on: {reason}.")


def is_here(host: str) -> bool:
    """Says whether only this machine can reach the address."""
    return host == "localhost" or is_loopback(host)


def address_of(host: str, port: int, token: str | None, page: str = "") -> str:
    """Writes the address that a browser opens."""
    host = socket.gethostname() if host in ("0.0.0.0", "::") else host  # every address of this machine: its name
    name = f"[{host}]" if ":" in host else host
    if token is None:
        return f"http://{name}:{port}/{page}"
    return f"http://{name}:{port}/{page}{'&' if '?' in page else '?'}token={token}"
