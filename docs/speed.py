"""Plots `docs/pictures/speed.png` from the tables in `docs/speed.md`, so that both show the same measurement.

`td3 bench --picture FILE` plots a new measurement the same way.
"""

import re
from pathlib import Path
from typing import Any

from td3.benchmark.cases import CASES
from td3.benchmark.report import draw

DOCS = Path(__file__).parent


def measured(text: str) -> dict[str, Any]:
    """Read the first measurement of the document, the one with the most threads."""
    head = text.split("Updates per second, ")[1]
    threads, rounds = map(int, re.findall(r"^(\d+) threads: the best of (\d+)", head)[0])
    peak = float(re.findall(r"reach ([\d,]+) GFLOPS", head)[0].replace(",", ""))
    cases = {case.words: case for case in CASES.values()}
    names, *rows = table(head)
    libraries = names[1 : names.index("of peak")]
    updates = {
        cases[row[0]].name: {
            "case": cases[row[0]]._asdict(),
            "speeds": {name: {"best": number(cell)} for name, cell in zip(libraries, row[1:], strict=False)},
        }
        for row in rows
    }
    growth = {}
    for section in text.split("Updates per second of td3 native with the ")[1:3]:
        (name, *sizes), _, (_, *shares) = table(section)
        growth[name] = {size: {"gflops": peak * number(share)} for size, share in zip(sizes, shares, strict=True)}
    run = {"threads": threads, "rounds": rounds, "libraries": libraries, "peak_gflops": peak}
    return {"runs": [{**run, "updates": updates, "growth": growth}]}


def table(text: str) -> list[list[str]]:
    """Return the cells of the first table, without the line below its head."""
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


def number(cell: str) -> float:
    return float(cell.split()[0].replace(",", ""))


if __name__ == "__main__":
    draw(measured((DOCS / "speed.md").read_text()), DOCS / "pictures/speed.png")
