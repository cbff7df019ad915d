"""`td3 watch` and `td3 explain`: start the live page, say where it is, and leave when told to."""

import contextlib
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import msgspec

from td3.errors import ConfigError
from td3.events import Event
from td3.views.signals import handled_by
from td3.views.speaking import answer, say
from td3.views.web.runs import Watched
from td3.views.web.safety import is_loopback

PORT = 8533
TRIES = 50  # ports tried from there on, where none is asked for
WAITING = 1_024  # connections that may wait to be accepted
AT_ONCE = 4  # of them that are accepted before any other is looked at: each takes a descriptor


def watch(folder: Path, host: str, port: int | None, *, as_json: bool = False, until_closed: bool = False) -> int:
    """Serves the page until Ctrl-C; with `until_closed` until whoever holds our standard input is gone."""
    with ended_by_signals(), listening(host, port) as door:
        token = None if is_here(host) else secrets.token_urlsafe(24)
        address = address_of(host, door.getsockname()[1], token)
        if as_json:
            answer({"address": address, "pid": os.getpid()})
        else:
            say(f"Watching {folder} at {address}", "Ctrl-C ends it.")
        serve(folder, host, token, door, until_closed=until_closed)
    return 0


def serve(folder: Path, host: str, token: str | None, door: socket.socket, *, until_closed: bool) -> None:
    import uvicorn

    from td3.views.web.connections import most_connections, protocol
    from td3.views.web.server import Page

    most = most_connections()
    page = Page(folder.absolute(), host, token, most_viewers=most * 3 // 4)  # the rest is for what they ask for

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            door.listen(WAITING)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            page.end()
            await super().shutdown(sockets)

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
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
            sys.stdin.buffer.read()
            server.should_exit = True

        threading.Thread(target=wait_for_the_end, daemon=True).start()
    with logged():
        server.run([door])


class Said(logging.Handler):
    """What the server's libraries log is said as everything is; the system's refusals without their traces."""

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        if isinstance(problem, OSError):
            say(f"td3 watch: {problem}")
        else:
            say(*self.format(record).splitlines())


@contextlib.contextmanager
def logged() -> Iterator[None]:
    handler = Said(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def explain(host: str, port: int | None, *, as_json: bool = False) -> int:
    """Trains a small agent on the spot, in a folder that goes with us, and shows its updates step by step."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="td3-explain-", ignore_cleanup_errors=True))
        )
        door = stack.enter_context(listening(host, port))
        run = folder / "Pendulum-v1"
        words = ["train", "Pendulum-v1", "--steps", "20000", "--run", str(run), "--quiet", "--threads", "1"]
        training = subprocess.Popen(
            [sys.executable, "-c", f"from td3.views.watching import {train_beside.__name__} as go; go({words})"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for us alone
        )
        token = None if is_here(host) else secrets.token_urlsafe(24)
        page = f"steps?id={Watched(folder, run).id}"
        address = address_of(host, door.getsockname()[1], token, page)
        if as_json:
            answer({"address": address, "pid": os.getpid()})
        else:
            say(f"A small agent learns Pendulum-v1 while you look: {address}", "Ctrl-C ends it.")
        if at_a_screen():
            webbrowser.open(address)
        try:
            serve(folder, host, token, door, until_closed=False)
        finally:
            training.kill()
            training.wait()
    return 0


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C, TERM and HUP end it alike: what is open is closed, what is temporary goes."""
    with handled_by(signal.default_int_handler), contextlib.suppress(KeyboardInterrupt):
        yield


def train_beside(words: list[str]) -> None:
    """In a process of its own: trains to its goal, or until whoever started it is gone, however that went."""
    from td3.views.cli import main

    def wait_for_the_end() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    main(words)


def begun(events: Iterator[Event]) -> Iterator[Event]:
    """The same events, of a run that has begun: what is refused, is refused before a page is started for it."""
    first = next(events)

    def all_events() -> Iterator[Event]:
        try:
            yield first
            yield from events
        finally:
            events.close()  # type: ignore[attr-defined]  # a generator: saves if it was left early

    return all_events()


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[str]:
    """A page of its own process, so that viewers cost training little; gone with us, however we go."""
    words = [sys.executable, "-m", "td3", "watch", str(folder), "--json", "--until-closed"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:  # it has said why on stderr
            raise ConfigError("The page could not be started; train without --watch.")
        address = str(msgspec.json.decode(line, type=dict[str, str | int])["address"])
        yield f"{address}run?id={Watched(folder.absolute(), folder.absolute()).id}"
    finally:
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def listening(host: str, port: int | None) -> Iterator[socket.socket]:
    """The door: the port that was asked for, or the first free one from ours on."""
    wanted = [port] if port is not None else range(PORT, PORT + TRIES)
    reason = ""
    for one in wanted:
        try:
            family = socket.getaddrinfo(host, one, type=socket.SOCK_STREAM)[0][0]
            door = socket.create_server((host, one), family=family, backlog=WAITING)
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
    return host == "localhost" or is_loopback(host)


def address_of(host: str, port: int, token: str | None, page: str = "") -> str:
    host = socket.gethostname() if host in ("0.0.0.0", "::") else host  # every address of this machine: its name
    name = f"[{host}]" if ":" in host else host
    if token is None:
        return f"http://{name}:{port}/{page}"
    return f"http://{name}:{port}/{page}{'&' if '?' in page else '?'}token={token}"


def at_a_screen() -> bool:
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
