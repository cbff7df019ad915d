"""A finished run as one small file: every evaluation, the settings, the versions and the time, without the networks.

`td3 compare STUDY --save DIR` writes them, and `td3 compare DIR` reads them like the runs themselves.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from td3.errors import ConfigError, RunError
from td3.results.records import LARGEST_STEP, Run
from td3.storage import disk

FORMAT = 1
LARGEST = 2**24  # bytes
ENDING = ".json"
DEEPEST = 4  # folders from the one that is searched to its files


class Result(msgspec.Struct, forbid_unknown_fields=True):
    """What a file holds. An evaluation is its step, mean return, standard deviation, and seconds of training before."""

    format: int
    env: str
    seed: int | None
    goal: int | None
    step: int
    settings: dict[str, Any]
    versions: dict[str, str]
    evaluations: list[tuple[int, float | None, float | None, float | None]]


def find_results(root: Path) -> list[Path]:
    """Finds files of results below a folder, as `save` writes them; links are not followed."""
    patterns = (f"{'*/' * depth}seed-*{ENDING}" for depth in range(DEEPEST))
    return [path for one in patterns for path in root.glob(one) if path.is_file() and not path.is_symlink()]


def is_finished(run: Run) -> bool:
    """Whether a run is at its goal or stopped by itself, and no process writes it."""
    return not run.running and (run.stopped or (run.goal is not None and run.reached >= run.goal))


def save(runs: Iterable[tuple[str, Run]], folder: str | Path) -> list[Path]:
    """Writes a file for each finished run, as DIR/env/setting/seed-0.json; returns those that are new or changed."""
    place, changed = Path(folder), []
    files: dict[Path, Run] = {}
    for setting, run in runs:
        path = place / part_of(run.env) / part_of(setting) / f"seed-{run.seed}{ENDING}"
        other = files.setdefault(path, run)
        if other is not run:
            raise ConfigError(f"--save needs another name for {run.name}: {other.name} would have the same file.")
        check_same(path, run)
    try:
        for path, run in files.items():
            data = written(run)
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                disk.replace_whole(path, data)
                changed.append(path)
    except OSError as problem:
        raise ConfigError(f"--save {str(folder)!r} cannot be written: {problem.strerror}.") from None
    return changed


def check_same(path: Path, run: Run) -> None:
    """Refuses to write over the result of another run, or of the same run when it was further."""
    try:
        before = read_result(str(path), path)
    except RunError:  # there is none
        return
    different = [name for name in (*before.config, *run.config) if before.config.get(name) != run.config.get(name)]
    if different and different[0] != "steps":
        raise ConfigError(
            f"--save would write {run.name} over the result of another run in {str(path)!r}, with another "
            f"{different[0]}: name another folder."
        )
    if before.reached > run.reached:
        raise ConfigError(
            f"--save would write {run.name} over {str(path)!r}, which goes to step {before.reached:,}; the run is at "
            f"step {run.reached:,}."
        )


def part_of(text: str) -> str:
    """Returns a name as part of a path."""
    return "".join(one if one.isalnum() or one in "._-=" else "-" for one in text).lstrip(".")[:100] or "-"


def written(run: Run) -> bytes:
    """Writes a run as JSON, with a line for each evaluation; the same run gives the same bytes."""
    head = {
        "format": FORMAT,
        "env": run.env,
        "seed": run.seed,
        "goal": run.goal,
        "step": run.reached,
        "settings": run.config,
        "versions": run.versions,
    }
    columns = zip(run.steps, run.returns, run.spreads, run.seconds, strict=True)
    rows = [[int(step), *(rounded(one) for one in others)] for step, *others in columns]
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    evaluations = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    return "\n".join(["{", *lines, ' "evaluations": [', evaluations, " ]", "}", ""]).encode()


def rounded(value: float) -> float | None:
    """Returns a number with as many digits as anybody needs; None for what is no number."""
    return round(float(value), 3) if math.isfinite(value) else None


def read_result(name: str, path: Path) -> Run:
    """Reads a file as the run that it was; RunError if it is none."""
    try:
        found = msgspec.json.decode(disk.read(path, LARGEST), type=Result)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise RunError(f"is no result of a run: {problem}.") from None
    if found.format != FORMAT:
        raise RunError(f"is of format {found.format}; this is format {FORMAT}.")
    rows = sorted(found.evaluations, key=lambda row: row[0])
    if not all(0 <= row[0] <= LARGEST_STEP for row in rows) or not 0 <= found.step <= LARGEST_STEP:
        raise RunError("has a step that no run has.")
    numbers = np.array([[math.nan if one is None else one for one in row] for row in rows], np.float64).reshape(-1, 4)
    return Run(
        name=name,
        path=path,
        env=found.env,
        seed=found.seed,
        config=found.settings,
        versions=found.versions,
        steps=numbers[:, 0],
        returns=numbers[:, 1],
        spreads=numbers[:, 2],
        seconds=numbers[:, 3],
        reached=found.step,
        goal=found.goal,
        running=False,
    )
