"""`td3 explain`: shows the fifteen steps, moving, on a small agent that learns meanwhile."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import webbrowser
from argparse import Namespace
from pathlib import Path

from td3.views.commands.watch import add_address, port_of
from td3.views.extras import needs_page
from td3.views.flags import Parser
from td3.views.signals import ended_by_signals

HELP = "Show the fifteen steps, moving, on a small agent that learns meanwhile."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_address(parser)


def run(chosen: Namespace) -> int:
    """Trains a small agent in a temporary folder, and shows its updates step by step until Ctrl-C."""
    needs_page()
    port = port_of(chosen)
    from td3.views.page_host import Host, listening
    from td3.views.web.runs import Watched

    with contextlib.ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        temporary = tempfile.TemporaryDirectory(prefix="td3-explain-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        door = stack.enter_context(listening(chosen.host, port))
        run = folder / "Pendulum-v1"
        words = ["train", "Pendulum-v1", "--steps", "20000", "--run", str(run), "--quiet", "--threads", "1"]
        training = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import {train_beside.__name__} as train; train({words})"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for us alone
        )
        host = Host(folder, chosen.host, door, f"steps?id={Watched(folder, run).id}")
        host.announce("A small agent learns Pendulum-v1 while you look:", as_json=chosen.json)
        if at_a_screen():
            webbrowser.open(host.address)
        try:
            host.serve()
        finally:
            training.kill()
            training.wait()
    return 0


def train_beside(words: list[str]) -> None:
    """Trains in a process of its own, to the end or until the process that started it is gone."""
    from td3.views.cli import main

    def wait_for_the_end() -> None:
        """Exits when standard input is closed."""
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    main(words)


def at_a_screen() -> bool:
    """Says whether a browser can be opened here."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
