"""A real browser for the tests of the page: Chromium as the system has it, driven by Playwright."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import pytest

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
            process.wait(10)


@contextlib.contextmanager
def chromium(**context):
    """A browser that notes every request and every complaint of the console."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_context(**context).new_page()
            page.requested, page.complaints = [], []
            page.on("request", lambda request: page.requested.append(request.url))
            page.on(
                "console", lambda one: page.complaints.append(one.text) if one.type in ("error", "warning") else None
            )
            page.on("pageerror", lambda problem: page.complaints.append(str(problem)))
            yield page
        finally:
            browser.close()


@contextlib.contextmanager
def visiting(page, folder):
    """The same, seen by this page, which leaves before the server does."""
    with serving(folder) as address:
        try:
            yield address
        finally:
            page.goto("about:blank")


def opened(page, address):
    page.goto(address)
    page.wait_for_selector("html[data-ready=true]")
    return page
