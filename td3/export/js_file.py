"""Writes a graph as one JavaScript file without dependencies: for a browser, a worker, Node or Deno."""

import base64
import math
from collections.abc import Iterator

import numpy as np

from td3.export.buffers import is_passed_on, place_values
from td3.export.graph import (
    Convolution,
    Graph,
    Input,
    Join,
    LayerNorm,
    Linear,
    Normalise,
    Op,
    ReadImage,
    ReadNumbers,
    Relu,
    Tanh,
    Unscale,
)
from td3.export.js_functions import functions
from td3.export.naming import as_json, class_name, comment


def write_js(graph: Graph) -> bytes:
    """Returns the text of a JavaScript file; the same graph gives the same bytes."""
    return ("\n".join(_lines(graph)) + "\n").encode("ascii")


def _lines(graph: Graph) -> Iterator[str]:
    name, about, weights = class_name(graph.name), graph.about, _Weights()
    body = list(_act(graph, weights))
    yield f"// {name}: a policy for {comment(about['env'])}, trained for {about['step']} steps."
    yield f"// Written by {about['made_by']}."
    yield "//"
    yield f"//   const policy = new {name}();"
    yield "//   policy.reset();                           at the beginning of each episode"
    yield "//   const action = policy.act(observation);   at each time step, in the environment's own units"
    yield "//"
    yield "// An observation is one time step: an array, nested or flat; for a Dict, an object of arrays."
    yield f"// {name}.about has names, shapes and bounds. The file works with <script src>, import and require."
    yield "(() => {"
    yield '"use strict";'
    yield ""
    yield f"const about = {as_json(about)};"
    yield ""
    yield f'const weights = decoded("{weights.text()}");'
    yield ""
    yield from functions("\n".join(body))
    yield from _class(graph, name, body)
    yield ""
    yield f"globalThis.{name} = {name};"
    yield f'if (typeof module === "object" && module.exports) module.exports = {name};'
    yield "})();"


class _Weights:
    """All float32 numbers of a file, one after the other."""

    def __init__(self) -> None:
        self._arrays: list[bytes] = []
        self._count = 0

    def place(self, array: np.ndarray) -> int:
        """Adds an array, and returns where it begins."""
        start = self._count
        self._arrays.append(np.ascontiguousarray(array, "<f4").tobytes())
        self._count += array.size
        return start

    def text(self) -> str:
        """Returns all of them in base 64."""
        return base64.b64encode(b"".join(self._arrays)).decode()


def _class(graph: Graph, name: str, body: list[str]) -> Iterator[str]:
    yield f"class {name} {{"
    yield "    static about = about;"
    yield ""
    yield "    constructor() {"
    yield f"        this.work = new Float32Array({place_values(graph).size});"
    for op in graph.ops:
        if isinstance(op, ReadNumbers) and op.shape[0] > 1:
            yield f"        this.numbers = new Float32Array({math.prod(op.shape)});"
        elif isinstance(op, ReadImage) and op.input.stack > 1:
            yield f"        this.frames_{op.input.name} = new Uint8Array({op.input.stack * op.input.size});"
    yield "        this.begun = false;"
    yield "    }"
    yield ""
    yield "    // Begins an episode: what was observed before is forgotten."
    yield "    reset() {"
    yield "        this.begun = false;"
    yield "    }"
    yield ""
    array = "Float32Array" if graph.action.dtype == "float32" else "Float64Array"
    shape = f"({', '.join(map(str, graph.action.shape))})"
    yield f"    // Returns the action as a flat {array}, of shape {shape}."
    yield "    act(observation) {"
    yield "        const work = this.work;"
    yield from (f"        {line}" for line in body)
    yield "        this.begun = true;"
    yield "        return action;"
    yield "    }"
    yield "}"


def _act(graph: Graph, weights: _Weights) -> Iterator[str]:
    """Yields the statements that make the action; every input is read and checked before anything changes."""
    places = place_values(graph).places
    for one in graph.used_inputs:
        yield f"const {_local(one)} = {_read(one)};"
    for number, op in enumerate(graph.ops):
        yield from _statements(graph, number, op, places, weights)


def _local(one: Input) -> str:
    return f"input_{one.name}"


def _read(one: Input) -> str:
    path = "".join(f"?.[{as_json(key)}]" for key in one.path)
    name = as_json("observation" + "".join(f"[{key!r}]" for key in one.path))
    if one.categories:
        return f"categories(observation{path}, {as_json([list(pair) for pair in one.categories])}, {name})"
    reader = "bytes" if one.kind == "image" else "numbers"
    return f"{reader}(observation{path}, {one.size}, {name})"


def _statements(graph: Graph, number: int, op: Op, places: tuple[int, ...], weights: _Weights) -> Iterator[str]:
    here, before = places[number], places[op.takes[0]] if op.takes else 0
    match op:
        case ReadNumbers():
            yield from _read_numbers(op, here)
        case ReadImage():
            yield from _read_image(op, here)
        case Normalise():
            mean, scale = (as_json(array.tolist()) for array in (op.mean, op.scale))
            yield f"normalise({mean}, {scale}, {op.clip}, {op.shape[0]}, work, {here});"
        case Join() if not is_passed_on(op):
            for taken in op.takes:
                size = math.prod(graph.ops[taken].shape)
                yield f"work.copyWithin({here}, {places[taken]}, {places[taken] + size});"
                here += size
        case Linear():
            outputs, inputs = op.weight.shape
            weight, bias = weights.place(op.weight), weights.place(op.bias)
            yield f"linear({weight}, {bias}, {inputs}, {outputs}, work, {before}, {here});"
        case Convolution():
            sizes = [*graph.ops[op.takes[0]].shape, *op.shape, *op.weight.shape[2:], op.stride, op.padding]
            weight, bias = weights.place(op.weight), weights.place(op.bias)
            yield f"convolve({weight}, {bias}, {', '.join(map(str, sizes))}, work, {before}, {here});"
        case LayerNorm():
            weight, bias = weights.place(op.weight), weights.place(op.bias)
            yield f"layerNorm({weight}, {bias}, {op.epsilon!r}, {math.prod(op.shape)}, work, {before}, {here});"
        case Relu():
            yield f"relu({math.prod(op.shape)}, work, {here});"
        case Tanh():
            yield f"tanh({math.prod(op.shape)}, work, {here});"
        case Unscale():
            array = "Float32Array" if op.dtype == "float32" else "Float64Array"
            fields = (op.source, op.centre, op.half, op.low, op.high)
            lists = ", ".join(as_json(field.tolist()) for field in fields)
            yield f"const action = unscaled(new {array}({len(op.source)}), {lists}, work, {before});"


def _read_numbers(op: ReadNumbers, place: int) -> Iterator[str]:
    """Yields what copies numbers into the newest time step; where there is a history, the older ones move up first."""
    steps, width = op.shape
    target, start = ("this.numbers", (steps - 1) * width) if steps > 1 else ("work", place)
    newest = start
    if steps > 1:
        yield f"this.numbers.copyWithin(0, {width});"
    for one in op.inputs:
        yield f"{target}.set({_local(one)}, {start});"
        start += one.width
    if steps > 1:  # an episode's first observation stands for those there were not yet
        yield f"for (let step = 0; !this.begun && step < {steps - 1}; step++)"
        yield f"    this.numbers.copyWithin(step * {width}, {newest}, {newest + width});"
        yield f"work.set(this.numbers, {place});"


def _read_image(op: ReadImage, place: int) -> Iterator[str]:
    one = op.input
    sizes = ", ".join(map(str, (*one.planes, *one.strides)))
    if one.stack == 1:
        yield f"pixels({_local(one)}, 0, {sizes}, work, {place});"
        return
    frames = f"this.frames_{one.name}"
    yield f"{frames}.copyWithin(0, {one.size});"
    yield f"for (let frame = this.begun ? {one.stack - 1} : 0; frame < {one.stack}; frame++)"
    yield f"    {frames}.set({_local(one)}, frame * {one.size});"
    yield f"for (let frame = 0; frame < {one.stack}; frame++)"
    yield f"    pixels({frames}, frame * {one.size}, {sizes}, work, {place} + frame * {one.size});"
