"""`td3 watch`: shows runs on a live web page."""

import argparse
from argparse import Namespace
from pathlib import Path

from td3.errors import ConfigError
from td3.views.extras import needs_page
from td3.views.flags import Parser, whole_number
from td3.views.signals import ended_by_signals

HELP = "Show runs on a live web page, while they train and after."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.add_argument("runs", nargs="?", metavar="RUNS", help="a run, or a folder with runs below it (default: runs)")
    add_address(parser)
    parser.add_argument("--until-closed", action="store_true", help=argparse.SUPPRESS)  # for `train --watch`


def add_address(parser: Parser) -> None:
    """Adds the flags that say where the page is served."""
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, this machine alone); any other needs the token it prints",
    )
    parser.add_argument("--port", metavar="N", help="the port to listen on (default: the first free one from 8533 on)")


def port_of(chosen: Namespace) -> int | None:
    """Reads the port, if one is asked for."""
    return None if chosen.port is None else whole_number("--port", chosen.port, at_least=0, at_most=65_535)


def run(chosen: Namespace) -> int:
    """Serves the page until Ctrl-C; with `--until-closed`, until standard input is closed."""
    needs_page()
    folder = Path(chosen.runs or "runs")
    if chosen.runs and not chosen.until_closed and not folder.is_dir():
        raise ConfigError(f"RUNS must be a folder; {chosen.runs!r} is none.")
    port = port_of(chosen)
    from td3.views.page_host import Host, listening

    with ended_by_signals(), listening(chosen.host, port) as door:
        host = Host(folder, chosen.host, door)
        host.announce(f"Watching {folder} at", as_json=chosen.json)
        host.serve(until_closed=chosen.until_closed)
    return 0
