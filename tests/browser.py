"""A real browser for the tests of the page: Chromium as the system has it, driven by Playwright."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

import pytest
import uvicorn

from td3.views.web import live, run_index
from td3.views.web.server import Page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def needed():
    """Skips where there is no Chromium; in CI that is a failure."""
    if CHROMIUM is None:
        why = "there is no chromium: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)


@contextlib.contextmanager
def serving(folder):
    """`td3 watch`, as a user starts it; gives its address."""
    words = [sys.executable, "-m", "td3", "watch", str(folder), "--json", "--port", "0", "--until-closed"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.stdin.close()
            process.wait()


@contextlib.contextmanager
def chromium(**context):
    """A browser that notes every request and every complaint of the console."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_context(**context).new_page()
            page.set_default_timeout(120_000)  # milliseconds: a busy machine is slow
            page.requested, page.complaints = [], []
            page.on("request", lambda request: page.requested.append(request.url))
            page.on(
                "console", lambda one: page.complaints.append(one.text) if one.type in ("error", "warning") else None
            )
            page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
            yield page
        finally:
            browser.close()


class Server:
    """Serves one folder after another at one address: there the browser keeps the charts' library compiled."""

    def __enter__(self):
        door = socket.create_server(("127.0.0.1", 0))
        self.address, self.page = f"http://127.0.0.1:{door.getsockname()[1]}/", None

        async def answer(scope, receive, send):
            self._loop = asyncio.get_running_loop()
            await self.page(scope, receive, send)

        self._server = uvicorn.Server(uvicorn.Config(answer, log_level="error", access_log=False, lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, args=([door],), daemon=True)
        self._thread.start()
        return self

    def end(self):
        """The page's streams end, without a word."""
        self._loop.call_soon_threadsafe(self.page.end)

    def farewell(self):
        """The page ends as the command ends it; returns when its viewers have left, or have taken too long."""
        asyncio.run_coroutine_threadsafe(self.page.farewell(), self._loop).result()
        return len(self.page._hub.viewers)

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()


@contextlib.contextmanager
def visiting(page, folder):
    """The page of this folder, on the server of this browser, which forgets it at the end."""
    server = page.server
    server.page = Page(folder)
    try:
        yield server.address
    finally:
        page.goto(f"{server.address}text?of=code")  # `about:blank` would be another process, without the library
        page.evaluate("localStorage.clear()")
        server.page.end()


@contextlib.contextmanager
def browsing():
    """A browser with a server of its own, which looks for news more often than for a user."""
    needed()
    with pytest.MonkeyPatch.context() as change, chromium(viewport={"width": 1280, "height": 850}) as page:
        change.setattr(live, "PERIOD", 0.1)  # seconds
        change.setattr(run_index, "LOOK_AROUND", 0.1)
        with Server() as page.server:
            yield page


@contextlib.contextmanager
def quiet(page):
    """No test may leave a complaint in the console, or ask anybody but the page's own server."""
    page.requested.clear()
    page.complaints.clear()
    yield
    assert page.complaints == []
    assert page.requested
    hosts = {url.split("/")[2].split(":")[0] for url in page.requested if url.startswith("http")}
    assert hosts == {"127.0.0.1"}


def opened(page, address):
    page.goto(address)
    page.wait_for_selector("html[data-ready=true]")
    return page
