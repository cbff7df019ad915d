"""The runs below a folder as plain data, each with the settings in which they differ; nothing that trains is loaded."""

import contextlib
from pathlib import Path
from typing import Any

from td3.errors import RunError
from td3.storage.runs import find, in_order
from td3.views.web.runs import Watched

WORDS = {"live": "running"}  # what the page calls otherwise
NOT_COMPARED = ("env", "seed", "steps", "parts")  # each has a column of its own, or is no setting


def listed(folder: Path) -> list[dict[str, Any]]:
    """Returns a row for each run at or below a folder, in the order of their names."""
    found = [(run, config_of(run)) for run in (Watched(folder, path) for path in find(folder))]
    different = names_that_differ([config for _, config in found])
    return sorted((row_of(run, config, different) for run, config in found), key=lambda row: in_order(row["run"]))


def row_of(run: Watched, config: dict[str, Any], different: list[str]) -> dict[str, Any]:
    """Returns one run as plain data."""
    with contextlib.suppress(RunError, OSError):  # a record that cannot be read has no findings
        run.findings.search()
    row = run.row()
    return {
        "run": row.name,
        "env": row.env,
        "seed": row.seed,
        "step": row.step,
        "goal": row.goal,
        "last": row.last,
        "best": row.best,
        "state": WORDS.get(row.state, row.state),
        "problem": row.problem,
        "findings": row.findings,
        "settings": {name: config[name] for name in different if name in config},
    }


def config_of(run: Watched) -> dict[str, Any]:
    """Reads the settings that a run was begun with; none where they cannot be read."""
    try:
        return run.config()
    except (RunError, OSError):
        return {}


def names_that_differ(configs: list[dict[str, Any]]) -> list[str]:
    """Returns the settings that do not have the same value in all runs that have them."""
    names = dict.fromkeys(name for config in configs for name in config if name not in NOT_COMPARED)
    return [name for name in names if len({repr(config[name]) for config in configs if name in config}) > 1]
