"""`td3 bench`: measures speed, side by side with the peers that are installed."""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from td3.benchmark.cases import CASES, SECTIONS
from td3.errors import ConfigError
from td3.views.extras import needs
from td3.views.flags import Parser, whole_number
from td3.views.speaking import answer, say
from td3.wording import brief, did_you_mean

HELP = "Measure speed, side by side with the peers that are installed."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.add_argument("--threads", metavar="N,N", help="numbers of threads (default: 1 and every core)")
    parser.add_argument("--sections", metavar="A,B", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--cases", metavar="A,B", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--rounds", metavar="N", default="40", help="interleaved rounds (default: 40)")
    parser.add_argument("--picture", metavar="FILE", help="draw a picture too, as .png or .svg")


def run(chosen: Namespace) -> int:
    """Measures; returns the exit code."""
    from td3.benchmark.report import draw, tables
    from td3.benchmark.running import bench
    from td3.machine import cores

    most = cores()
    threads = [whole_number("--threads", text, at_least=1) for text in items_of(chosen.threads)] or [1, most]
    if max(threads) > most:
        raise ConfigError(f"--threads must be at most {most}, the number of available cores; got {max(threads)}.")
    sections, cases = among("--sections", chosen.sections, SECTIONS), among("--cases", chosen.cases, CASES)
    rounds = whole_number("--rounds", chosen.rounds, at_least=1)
    if chosen.picture:
        needs("matplotlib", "plot")
        if Path(chosen.picture).suffix not in (".png", ".svg") or not Path(chosen.picture).absolute().parent.is_dir():
            raise ConfigError(f"--picture must be a .png or .svg in a folder that exists; got {chosen.picture!r}.")
    result = bench(sorted(set(threads)), sections=sections, cases=cases, rounds=rounds, seconds=0.1)
    if chosen.picture:
        draw(result, Path(chosen.picture))
    if chosen.json:
        answer(result)
    else:
        say(*tables(result).splitlines())
    return 0


def items_of(text: str | None) -> list[str]:
    """Splits a list with commas; nothing is an empty list."""
    return text.split(",") if text else []


def among(name: str, text: str | None, allowed: Iterable[str]) -> list[str]:
    """Returns the items of a list, each of them allowed; all that are allowed where none is given."""
    allowed = list(allowed)
    for item in items_of(text):
        if item not in allowed:
            known = ", ".join(allowed)
            raise ConfigError(f"{name} must be of {known}; got {brief(item)}.{did_you_mean(item, allowed)}")
    return items_of(text) or allowed
