"""The web server: pages, static files, JSON answers and the stream of live events."""

import asyncio
import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from td3.errors import RunError
from td3.views.web import static
from td3.views.web.explanation import explanation, text
from td3.views.web.files import open_regular
from td3.views.web.live import MOST_VIEWERS, PATIENCE, Hub, Viewer
from td3.views.web.run_index import RunIndex, Unknown
from td3.views.web.safety import Safety, refuse

LARGEST_FILM = 64 * 2**20
MOST_POINTS = 20_000
MOST_NAMES = 50  # metrics in one request


class BadQuestion(Exception):
    """A value in the address that cannot be used."""


class Page:
    """The whole web page as one ASGI application."""

    def __init__(
        self, root: Path, host: str = "127.0.0.1", token: str | None = None, most_viewers: int = MOST_VIEWERS
    ) -> None:
        index = RunIndex(root)
        self._hub = Hub(index)
        answers: dict[str, Callable[[Request], Any]] = {
            "runs": lambda _: index.overview(),
            "run": lambda request: index.detail(id_of(request)),
            "series": lambda request: series(index, request),
            "updates": lambda request: index.updates(id_of(request)).overview(),
            "update": lambda request: update(index, request),
            "explanation": lambda _: {"steps": explanation()},
            "text": text_of,
        }
        routes = [
            Route("/", page("index")),
            *(Route(f"/{name}", page(name)) for name in ("run", "steps", "text")),
            Route("/static/{name}", static_file),
            *(Route(f"/api/{name}", in_thread(answer)) for name, answer in answers.items()),
            Route("/api/film", film(index)),
            Route("/events", Events(self._hub, min(most_viewers, MOST_VIEWERS))),
        ]
        self._app = Safety(Starlette(routes=routes, exception_handlers=REFUSALS), host, token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def farewell(self, impatient: Callable[[], bool] = lambda: False) -> None:
        """Lets every viewer fetch the last state before the server ends."""
        await self._hub.farewell(impatient)

    def end(self) -> None:
        """Every stream of news ends, so that the server can."""
        for viewer in self._hub.viewers:
            viewer.end()


def problem(status: int) -> Callable[[Request, Exception], Response]:
    """Returns a handler that refuses with this status and the exception's text."""
    return lambda _, why: refuse(status, str(why))


REFUSALS: dict[Any, Any] = {
    Unknown: problem(404),
    RunError: problem(404),
    BadQuestion: problem(400),
    404: lambda *_: refuse(404, "There is nothing here."),
    405: lambda *_: refuse(405, "This page is only read: GET and HEAD."),
    500: lambda *_: refuse(500, "Something went wrong in td3 watch."),
}


def page(name: str) -> Callable[[Request], Any]:
    """Returns a handler that answers with this page."""

    async def answer(request: Request) -> Response:
        return await static.answer(request, f"{name}.html")

    return answer


async def static_file(request: Request) -> Response:
    """Answers with one of the page's own files, or with the charts' library."""
    name = request.path_params["name"]
    if name not in static.names():
        raise Unknown("There is no such file here.")
    return await static.answer(request, name)


def in_thread(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Reading files may take a while: others are answered meanwhile."""

    async def answer_in_thread(request: Request) -> Response:
        found = await run_in_threadpool(answer, request)
        data = found if isinstance(found, bytes) else msgspec.json.encode(found)
        return Response(data, media_type="application/json")

    return answer_in_thread


def series(index: RunIndex, request: Request) -> Any:
    """Answers with points of the metrics that were asked for."""
    names = request.query_params.getlist("metric")
    if not names or len(names) > MOST_NAMES:
        raise BadQuestion(f"metric must be given 1 to {MOST_NAMES} times; got {len(names)}.")
    first, last = number(request, "from", -math.inf), number(request, "to", math.inf)
    points = number(request, "points", 1_000)
    if not 1 <= points <= MOST_POINTS:
        raise BadQuestion(f"points must be from 1 to {MOST_POINTS:,}; got {points:g}.")
    return index.series(id_of(request), names, first, last, int(points))


def update(index: RunIndex, request: Request) -> bytes:
    """Answers with one recorded update, as it is in the file."""
    wanted = request.query_params.get("update", "newest")
    if wanted != "newest" and not (wanted.isascii() and wanted.isdecimal() and len(wanted) <= 18):
        raise BadQuestion(f"update must be newest or a number; got {wanted[:40]!r}.")
    line = index.updates(id_of(request)).one(None if wanted == "newest" else int(wanted))
    if line is None:
        raise Unknown("No such update was recorded.")
    return line


def text_of(request: Request) -> Any:
    """Answers with the lines of the algorithm, or of the document of the fifteen steps."""
    found = text(request.query_params.get("of", ""))
    if found is None:
        raise Unknown("This text is not installed here.")
    return found


def film(index: RunIndex) -> Callable[[Request], Any]:
    """Returns a handler that answers with a run's film."""

    def read(request: Request) -> bytes:
        try:
            file = open_regular(index.run(id_of(request)).film)
        except OSError:
            raise Unknown("There is no film of this run.") from None
        with os.fdopen(file, "rb") as opened:
            return opened.read(LARGEST_FILM)

    async def answer(request: Request) -> Response:
        return Response(await run_in_threadpool(read, request), media_type="image/webp")

    return answer


def id_of(request: Request) -> str:
    """Returns the run's id in a request, or refuses."""
    id = request.query_params.get("id")
    if id is None:
        raise BadQuestion("id must name a run.")
    return id


def number(request: Request, name: str, default: float) -> float:
    """Returns a number from the query, or its default; refuses what is no number."""
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise BadQuestion(f"{name} must be a number; got {text[:40]!r}.")
    return value


class Events:
    """The stream of news, until the viewer leaves or reads no more."""

    def __init__(self, hub: Hub, most_viewers: int) -> None:
        self.hub, self.most_viewers = hub, most_viewers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if len(self.hub.viewers) >= self.most_viewers:
            await refuse(503, f"More than {self.most_viewers:,} viewers.")(scope, receive, send)
            return
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        if request.method == "HEAD":
            await send(start)
            await send({"type": "http.response.body"})
            return
        async with self.hub.viewer(request.query_params.get("id")) as viewer:
            await send(start)  # only now: nothing is lost between what the viewer fetches and what it is sent
            sending = asyncio.create_task(self._send_news(viewer, send))
            leaving = asyncio.create_task(left(receive))
            _, open_tasks = await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            for task in open_tasks:
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send_news(self, viewer: Viewer, send: Send) -> None:
        news: bytes | None = b"retry: 2000\n\n"
        with contextlib.suppress(TimeoutError, OSError):
            while news is not None:
                async with asyncio.timeout(PATIENCE):
                    await send({"type": "http.response.body", "body": news, "more_body": True})
                news = await viewer.next()
            await send({"type": "http.response.body"})


async def left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
