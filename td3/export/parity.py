"""Compares an exported file with the agent: the same observations must lead to the same actions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.errors import ExportError
from td3.export.graph import Graph, Unscale
from td3.export.numpy_policy import perform
from td3.export.observations import Arrays
from td3.export.runners import NoTool, Run, Runner

LARGEST_ERROR = 1e-5  # of an action's range


class Parity(NamedTuple):
    """How far a file's actions are from the agent's."""

    error: float  # the largest difference, as a part of the action's range
    tool: str  # what ran the file; or the description, where nothing could
    unchecked: str  # why the file itself could not be run; or nothing


def check_parity(
    data: bytes, graph: Graph, arrays: Arrays, runner: Runner, act: Callable[[Arrays], NDArray[Any]]
) -> Parity:
    """Runs a file on observations, and refuses it where its actions are not those of `act`."""
    unchecked = ""
    try:
        run = runner(data, graph, arrays)
    except NoTool as problem:  # the numbers at least are tried
        unchecked = str(problem)
        actions = perform(graph, arrays).astype(np.float64)
        run = Run(actions.reshape(len(actions), -1), "NumPy")
    wanted = act(arrays)
    error, allowed = difference(run.actions, wanted.reshape(len(wanted), -1), graph.action)
    if not allowed:
        raise ExportError(
            f"The exported policy acts otherwise than the agent ({run.tool}): the largest difference is {error:.1e} of "
            f"the action's range, and at most {LARGEST_ERROR:.0e} is allowed."
        )
    return Parity(error, run.tool, unchecked)


def difference(actions: NDArray[Any], wanted: NDArray[Any], action: Unscale) -> tuple[float, bool]:
    """Returns the largest difference as a part of the action's range, and whether all are small enough.

    No difference need be smaller than the dtype of the actions can tell.
    """
    apart = np.abs(actions.astype(np.float64) - wanted.astype(np.float64))
    width = action.high - action.low
    largest = np.maximum(np.abs(action.low), np.abs(action.high)).astype(wanted.dtype)
    allowed = np.maximum(LARGEST_ERROR * width, np.spacing(largest).astype(np.float64))
    parts = apart / np.where(width > 0, width, np.inf)
    return float(parts.max()), bool((apart <= allowed).all())  # a NaN is not small enough
