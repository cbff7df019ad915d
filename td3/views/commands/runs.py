"""`td3 runs`: lists the runs below a folder."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from td3.config.values import in_words
from td3.errors import ConfigError
from td3.views.flags import Parser
from td3.views.speaking import answer, printable, say, write_out
from td3.wording import counted

HELP = "List the runs below a folder: how far each is, its evaluations, and the settings in which they differ."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = "td3 runs [FOLDER] [--filter TEXT] [--json]"
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="a folder with runs below it (default: runs)")
    parser.add_argument(
        "--filter",
        metavar="TEXT",
        default="",
        help="only runs in which each of these words stands: in name, environment, state or a setting that differs",
    )


def run(chosen: Namespace) -> int:
    """Lists the runs; returns 0."""
    from td3.views.run_list import listed

    folder = Path(chosen.folder or "runs")
    if not folder.is_dir():
        raise ConfigError(f"FOLDER must be a folder with runs below it; {str(folder)!r} is none.")
    rows = listed(folder.absolute())
    words = chosen.filter.casefold().split()
    kept = [row for row in rows if all(word in searched(row) for word in words)]
    if chosen.json:
        answer({"folder": str(folder), "runs": kept})
        return 0
    write_out("".join(f"{printable(line)}\n" for line in table(kept)))
    of = f" of {len(rows):,}" if words else ""
    states = [row["state"] for row in kept]
    counts = [f"{states.count(state):,} {state}" for state in dict.fromkeys(states)]
    say(f"{counted(len(kept), 'run')}{of} in {folder}{': ' if counts else ''}{', '.join(counts)}.")
    return 0


def searched(row: dict[str, Any]) -> str:
    """Returns the text of a row in which a filter looks."""
    return " ".join([row["run"], row["env"] or "", row["state"], settings_text(row)]).casefold()


def settings_text(row: dict[str, Any]) -> str:
    """Writes the settings in which runs differ."""
    parts = row["settings"].items()
    return " ".join(f"{name}={in_words(tuple(value) if isinstance(value, list) else value)}" for name, value in parts)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Writes rows in columns; nothing for no rows."""
    if not rows:
        return []
    head = ["run", "env", "seed", "step", "goal", "last", "best", "state", "findings", "settings"]
    cells = [head, *([shown(row, name) for name in head] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(head))]
    right = {"seed", "step", "goal", "last", "best", "findings"}

    def line(texts: list[str]) -> str:
        columns = zip(head, texts, widths, strict=True)
        return "  ".join(text.rjust(width) if name in right else text.ljust(width) for name, text, width in columns)

    return [line(texts).rstrip() for texts in cells]


def shown(row: dict[str, Any], name: str) -> str:
    """Writes one cell."""
    value = row[name]
    if name == "settings":
        return settings_text(row)
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and name != "seed" else str(value)
