"""Exports a policy: describes it, writes it in the format of the ending, compares it with the agent, keeps it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.config import Config
from td3.environments import ActionMap, ObservationMap
from td3.environments.structure import assemble
from td3.errors import ConfigError
from td3.export.c_file import write_c
from td3.export.description import describe
from td3.export.endings import checked_path
from td3.export.graph import Graph
from td3.export.js_file import write_js
from td3.export.naming import file_identifier
from td3.export.observations import Arrays, arrays_of_rows, remembered_rows, sampled_arrays
from td3.export.onnx_file import write_onnx
from td3.export.parity import check_parity
from td3.export.runners import Runner, run_c, run_js, run_onnx
from td3.learner import Learner
from td3.replay import AnyMemory
from td3.storage.disk import replace_whole
from td3.wording import brief

OBSERVATIONS = 1_000  # that a file is tried on
ROOM = 2**27  # bytes of them
FEWEST = 10  # however large an image is
LARGEST_TEXT = 2**22  # numbers in a .c or .js file: 50 MB of text, and compilers need minutes


class Format(NamedTuple):
    """How a file is written, and what runs it."""

    write: Callable[[Graph], bytes]
    run: Runner


FORMATS = {".onnx": Format(write_onnx, run_onnx), ".c": Format(write_c, run_c), ".js": Format(write_js, run_js)}


class Exported(NamedTuple):
    """A policy that was exported, and how it was compared with the agent."""

    path: Path
    size: int  # bytes
    observations: int  # how many it was tried on
    remembered: int  # how many of those are from the replay memory; the others are sampled
    error: float  # the largest difference from agent.act, as a part of the action's range
    tool: str  # what ran the file; NumPy in its place where nothing could
    unchecked: str  # why the file itself could not be run; or nothing


class Source(NamedTuple):
    """What an agent is made of, as far as its export needs it."""

    learner: Learner
    observation: ObservationMap
    action: ActionMap
    config: Config
    step: int
    act: Callable[[Any], NDArray[Any]]
    memory: Callable[[int], AnyMemory | None]  # with so many observations at least, if there are any


def export_policy(source: Source, file: str | Path) -> Exported:
    """Writes the policy to a file; nothing is written where it cannot be exported or acts otherwise."""
    path = checked_path(file)
    form = FORMATS[path.suffix.lower()]
    graph = describe(*source[:5], file_identifier(path))
    if form.write is not write_onnx and graph.numbers > LARGEST_TEXT:
        raise ConfigError(
            f"file must end in .onnx here: the policy has {graph.numbers:,} numbers, and {path.suffix} takes at most "
            f"{LARGEST_TEXT:,}; got {brief(str(file))}."
        )
    data = form.write(graph)
    arrays, remembered = _observations(source, graph)
    parity = check_parity(data, graph, arrays, form.run, lambda given: _acted(source, graph, given))
    try:
        replace_whole(path, data)
    except OSError as problem:
        raise ConfigError(f"file {brief(str(file))} cannot be written: {problem.strerror}.") from problem
    return Exported(path, len(data), len(next(iter(arrays.values()))), remembered, *parity)


def _observations(source: Source, graph: Graph) -> tuple[Arrays, int]:
    """Returns observations to try a file on, and how many of them are remembered; the others are sampled."""
    each = sum(one.stack * one.size * (1 if one.kind == "image" else 8) for one in graph.inputs)
    count = max(FEWEST, min(OBSERVATIONS, ROOM // max(1, each)))
    rng = np.random.default_rng(0)
    rows = remembered_rows(source.memory(count), count, rng)
    if rows is None:
        return sampled_arrays(graph, count, rng), 0
    arrays, missing = arrays_of_rows(rows, source.observation.layout, graph.inputs), count - len(rows)
    if missing:
        more = sampled_arrays(graph, missing, rng)
        arrays = {name: np.concatenate([array, more[name]]) for name, array in arrays.items()}
    return arrays, len(rows)


def _acted(source: Source, graph: Graph, arrays: Arrays) -> NDArray[Any]:
    """Returns what the agent does, a part of the observations at a time."""
    count, parts = len(next(iter(arrays.values()))), []
    for start in range(0, count, 100):
        part = {name: array[start : start + 100] for name, array in arrays.items()}
        parts.append(source.act(assemble(source.observation, {one.path: part[one.name] for one in graph.inputs})))
    return np.concatenate(parts)
