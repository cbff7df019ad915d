"""Reads what is to be compared: runs, folders with runs below them, studies, and files of results."""

from collections.abc import Iterable
from pathlib import Path

from td3.errors import ConfigError, RunError
from td3.results.files import ENDING, find_results, read_result
from td3.results.records import Run, read_run
from td3.storage.runs import find, in_order
from td3.wording import brief, one_line


def read_runs(paths: Iterable[str | Path]) -> tuple[list[Run], dict[str, str]]:
    """Reads every run at or below the paths, each once; and says of those that cannot be compared why, by name."""
    runs: list[Run] = []
    unread: dict[str, str] = {}
    known: set[Path] = set()
    for given in paths:
        root = folder_of(given)
        found = sorted([*find(root), *find_results(root)], key=lambda path: in_order(str(path)))
        if not found:
            raise ConfigError(f"RUN must be a run, a study or a folder with runs below it; {str(given)!r} has no run.")
        for path in found:
            if (real := path.resolve()) in known:
                continue
            known.add(real)
            name = str(given) if path == root else str(Path(given) / path.relative_to(root))
            try:
                read = read_result if path.suffix == ENDING and path.is_file() else read_run
                runs.append(read(one_line(name, 500), path))
            except RunError as problem:
                unread[one_line(name, 500)] = one_line(str(problem), 500).rstrip(".")
    return runs, unread


def folder_of(path: str | Path) -> Path:
    """Returns the path of a folder; refuses what is none."""
    try:
        folder = Path(path).absolute()
        there = folder.is_dir()
    except (OSError, ValueError, TypeError):
        raise ConfigError(f"RUN must be the path of a folder; got {brief(path)}.") from None
    if not there:
        raise ConfigError(f"RUN must be a run, a study or a folder with runs below it; {str(path)!r} is no folder.")
    return folder
