"""Those who send half a request, or none, keep nobody else from the page."""

import asyncio
import json
import resource
import socket
import subprocess
import sys
import time
import urllib.request

import httpx
import pytest

from td3.views.web.connections import MOST, most_connections
from td3.views.web.server import Page

DESCRIPTORS, CROWD = 64, 100
# The time for a request is set by the test: long, so that it cannot help, or short, so that it does.
PAGE = """
import sys
from td3.views.cli import main
from td3.views.web import connections
connections.REQUEST_TIME = float(sys.argv[1])
sys.exit(main(["watch", sys.argv[2], "--json", "--port", "0"]))
"""


@pytest.fixture
def page(tmp_path, request):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    words = [sys.executable, "-c", PAGE, str(request.param), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=few) as process:
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()
        _, text = process.communicate(timeout=60)
        assert (process.returncode, text) == (0, b"")


def status(address):
    with urllib.request.urlopen(f"{address}api/runs", timeout=30) as answer:
        return answer.status


def connected(address, words):
    port = int(address.rstrip("/").rpartition(":")[2])
    one = socket.create_connection(("127.0.0.1", port), timeout=30)
    one.sendall(words)
    return one


def is_closed(one, words=b""):
    """Whether the page has let go of this connection."""
    try:
        one.sendall(words)
        return one.recv(65_536) == b""
    except TimeoutError:
        return False
    except (ConnectionResetError, BrokenPipeError):
        return True


HALVES = {
    "nothing": b"",
    "half a header": b"GET / HTTP/1.1\r\nHost: 127.",
    "half a body": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n",
}


@pytest.mark.parametrize("page", [600], indirect=True)
@pytest.mark.parametrize("half", HALVES)
def test_a_viewer_is_answered_while_more_wait_than_there_are_descriptors(page, half):
    crowd = [connected(page, HALVES[half]) for _ in range(CROWD)]
    assert status(page) == 200
    crowd += [connected(page, HALVES[half]) for _ in range(CROWD)]
    assert status(page) == 200
    for one in crowd:
        one.close()
    assert status(page) == 200


@pytest.mark.parametrize("page", [0.3], indirect=True)
def test_half_a_request_is_not_waited_for_even_if_it_grows(page):
    with connected(page, b"GET / HTTP/1.1\r\n") as one:
        one.settimeout(0.02)
        deadline = time.monotonic() + 60
        while not is_closed(one, b"X: y\r\n"):
            assert time.monotonic() < deadline


@pytest.mark.parametrize("page", [0.3], indirect=True)
def test_the_second_request_of_a_connection_has_no_more_time(page):
    with connected(page, b"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as one:
        assert one.recv(12) == b"HTTP/1.1 200"
        one.sendall(b"GET /api/ru")
        while not is_closed(one):
            pass  # reading the rest of the answer


def test_streams_of_news_leave_room_for_other_requests(tmp_path):
    async def ask(path):
        transport = httpx.ASGITransport(Page(tmp_path, most_viewers=0))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8533") as client:
            return (await client.get(path)).status_code

    assert asyncio.run(ask("/events")) == 503
    assert asyncio.run(ask("/api/runs")) == 200


def test_as_many_connections_are_allowed_as_descriptors_are_left_for():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        most = most_connections()
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft >= 256 and 4 <= most <= MOST and most <= soft - 32
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
