"""Runs an exported file as its users will: by onnxruntime, by a C compiler, by Node; each returns the actions."""

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from td3.errors import ExportError
from td3.export.graph import Graph, Input
from td3.export.naming import class_name
from td3.export.observations import Arrays

CHUNK = 100  # observations at once: images take room


class Run(NamedTuple):
    """What a file does with observations, and what ran it."""

    actions: NDArray[np.float64]  # (n, size)
    tool: str


class NoTool(Exception):
    """Why nothing here can run a file, in words that end a sentence."""


Runner = Callable[[bytes, Graph, Arrays], Run]


def run_onnx(data: bytes, graph: Graph, arrays: Arrays) -> Run:
    """Runs an ONNX file by onnxruntime or, where that is not installed, by the reference implementation of onnx."""
    try:
        import onnxruntime
    except ImportError:
        import onnx
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(onnx.load_from_string(data))
        run: Any = evaluator.run
        tool = f"onnx {onnx.__version__}'s reference implementation"
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        run, tool = session.run, f"onnxruntime {onnxruntime.__version__}"
    kinds = {"image": np.uint8, "category": np.int64, "vector": np.float32}
    given = {one.name: arrays[one.name].astype(kinds[one.kind]) for one in graph.used_inputs}
    count = len(next(iter(given.values())))
    parts = [
        run(["action"], {name: array[start : start + CHUNK] for name, array in given.items()})[0]
        for start in range(0, count, CHUNK)
    ]
    return Run(np.concatenate(parts).reshape(count, -1).astype(np.float64), tool)


def compiler() -> list[str]:
    """Returns the command of the C compiler: CC, or the system's."""
    own = shlex.split(os.environ.get("CC", ""))
    found = own or [name for name in ("cc", "gcc", "clang") if shutil.which(name)][:1]
    if not found:
        raise NoTool("there is no C compiler here")
    if not shutil.which(found[0]):
        raise NoTool(f"the C compiler {found[0]!r}, which CC names, is not here")
    return found


def run_c(data: bytes, graph: Graph, arrays: Arrays) -> Run:
    """Compiles a C file with a program that feeds it, and runs that."""
    command = compiler()
    with tempfile.TemporaryDirectory(prefix="td3-export-") as place:
        folder = Path(place)
        (folder / "policy.c").write_bytes(data)
        kind = "float" if graph.action.dtype == "float32" else "double"
        main = C_MAIN.replace("SIZE", f"{graph.name.upper()}_ACTION_SIZE").replace("KIND", kind)
        (folder / "main.c").write_text(main.replace("NAME", graph.name))
        words = [command[0], "-std=c99", "-O2", *command[1:], "-o", str(folder / "main"), str(folder / "main.c")]
        done = subprocess.run(words, capture_output=True, cwd=folder)
        if done.returncode:
            said = [line for line in done.stderr.decode(errors="replace").splitlines() if "error" in line]
            raise ExportError(f"{command[0]} does not compile the file: {(said or ['it says nothing'])[0]}.")
        output = _fed([str(folder / "main")], folder, _records(graph, arrays).tobytes())
        version = subprocess.run([*command, "--version"], capture_output=True).stdout.decode(errors="replace")
    return Run(_last_actions(graph, output), f"compiled by {(version.splitlines() or command)[0].strip()}")


def run_js(data: bytes, graph: Graph, arrays: Arrays) -> Run:
    """Runs a JavaScript file by Node."""
    node = shutil.which("node")
    if node is None:
        raise NoTool("there is no node here")
    records = _records(graph, arrays)
    inner: Any = records.dtype["observation"]
    fields = [
        {"path": one.path, "kind": one.kind, "size": one.size, "offset": inner.fields[one.name][1]}
        for one in graph.used_inputs
    ]
    start = records.dtype.fields["observation"][1]  # type: ignore[index]
    spec = {"fields": fields, "start": start, "length": records.dtype.itemsize, "class": class_name(graph.name)}
    with tempfile.TemporaryDirectory(prefix="td3-export-") as place:
        folder = Path(place)
        (folder / "policy.cjs").write_bytes(data)
        (folder / "main.cjs").write_text(JS_MAIN.replace("SPEC", json.dumps(spec)))
        output = _fed([node, str(folder / "main.cjs")], folder, records.tobytes())
        version = subprocess.run([node, "--version"], capture_output=True).stdout.decode(errors="replace").strip()
    return Run(_last_actions(graph, output), f"node {version}")


def _fed(words: list[str], folder: Path, data: bytes) -> bytes:
    """Runs a program, and returns what it writes."""
    done = subprocess.run(words, input=data, capture_output=True, cwd=folder)
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[-300:]
        raise ExportError(f"The exported file failed when it was tried (exit code {done.returncode}): {said}.")
    return done.stdout


def depth_of(graph: Graph) -> int:
    """Returns the time steps that a policy with a memory of its own is fed for one observation."""
    return max(one.stack for one in graph.used_inputs)


def record_type(graph: Graph) -> np.dtype[Any]:
    """Returns one time step as C lays it out: whether an episode begins, then the observation."""
    kinds = {"image": "u1", "category": "i8", "vector": "f4"}
    fields = [(one.name, kinds[one.kind], (one.size,)) for one in graph.used_inputs]
    return np.dtype([("begins", "i4"), ("observation", np.dtype(fields, align=True))], align=True)


def _records(graph: Graph, arrays: Arrays) -> NDArray[Any]:
    """Returns each observation as the time steps that lead to it, the oldest first."""
    depth = depth_of(graph)
    count = len(arrays[graph.used_inputs[0].name])
    records = np.zeros((count, depth), record_type(graph))
    records["begins"][:, 0] = 1
    for one in graph.used_inputs:
        records["observation"][one.name] = _time_steps(one, arrays[one.name], depth)
    return records


def _time_steps(one: Input, values: NDArray[Any], depth: int) -> NDArray[Any]:
    """Returns (n, depth, size); an input with fewer time steps begins with its oldest one repeated."""
    steps = values.reshape(len(values), one.stack, one.size)
    return steps[:, np.maximum(np.arange(depth) - (depth - one.stack), 0)]


def _last_actions(graph: Graph, output: bytes) -> NDArray[np.float64]:
    """Returns the action at the last time step of each observation, (n, size)."""
    actions = np.frombuffer(output, np.float64).reshape(-1, depth_of(graph), len(graph.action.source))
    return actions[:, -1]


C_MAIN = """
#include "policy.c"
#include <stdio.h>

static NAME_state state;
static struct { int32_t begins; NAME_observation observation; } record;

int main(void)
{
    while (fread(&record, sizeof record, 1, stdin) == 1) {
        KIND action[SIZE];
        if (record.begins) NAME_reset(&state);
        if (NAME_act(&state, &record.observation, action)) return 3;
        for (int i = 0; i < SIZE; i++) {
            double wide = (double)action[i];
            if (fwrite(&wide, sizeof wide, 1, stdout) != 1) return 4;
        }
    }
    return 0;
}
"""

JS_MAIN = """
const fs = require("fs");
const Policy = require("./policy.cjs");
const spec = SPEC;
const data = fs.readFileSync(0);
const policy = new Policy();
const written = [];
const readers = {
    image: (at, size) => data.subarray(at, at + size),
    vector: (at, size) => Array.from({ length: size }, (_, i) => data.readFloatLE(at + 4 * i)),
    category: (at, size) => Array.from({ length: size }, (_, i) => Number(data.readBigInt64LE(at + 8 * i))),
};
for (let at = 0; at < data.length; at += spec.length) {
    let observation;
    for (const { path, kind, size, offset } of spec.fields) {
        const value = readers[kind](at + spec.start + offset, size);
        if (path.length === 0) {
            observation = value;
            continue;
        }
        observation ??= Object.create(null);
        let inner = observation;
        for (const key of path.slice(0, -1)) inner = inner[key] ??= Object.create(null);
        inner[path.at(-1)] = value;
    }
    if (data.readInt32LE(at)) policy.reset();
    written.push(Buffer.from(Float64Array.from(policy.act(observation)).buffer));
}
fs.writeFileSync(1, Buffer.concat(written));
"""
