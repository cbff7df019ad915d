"""Writes a graph as one C99 file: weights inside, three functions, no allocation, no library to link."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from td3.export.buffers import is_passed_on, place_values
from td3.export.c_functions import DECLARATIONS, functions
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
from td3.export.naming import as_json, c_string, comment

WIDTH = 116


def write_c(graph: Graph) -> bytes:
    """Returns the text of a C99 file; the same graph gives the same bytes."""
    return ("\n".join(_lines(graph)) + "\n").encode("ascii")


def _lines(graph: Graph) -> Iterator[str]:
    name, large = graph.name, graph.name.upper()
    yield _declarations(graph)
    yield ""
    yield f"#ifndef {large}_DECLARATIONS"
    yield ""
    yield "#include <float.h>"
    yield ""
    for number, op in enumerate(graph.ops):
        yield from _arrays(f"{name}_", number, op)
    body = list(_act(graph))
    yield from functions(name, "\n".join(body))
    yield from _reset(graph)
    yield from body
    yield f"const char *{name}_about(void)"
    yield "{"
    yield f"    return {c_string(as_json(graph.about))};"
    yield "}"
    yield ""
    yield "#endif"


def _declarations(graph: Graph) -> str:
    action, about = graph.action, graph.about
    return DECLARATIONS.substitute(
        name=graph.name,
        large=graph.name.upper(),
        env=comment(about["env"]),
        step=about["step"],
        made_by=about["made_by"],
        kind=_kind(graph),
        size=len(action.source),
        shape=_dimensions(action.shape),
        fields="\n".join(
            f"    {_c_type(one)} {one.name}{_extent(one)}; /* {_explained(one)} */" for one in graph.used_inputs
        ),
        state="\n".join(_state(graph)),
    ).strip()


def _state(graph: Graph) -> Iterator[str]:
    """Yields the fields of what a policy remembers, and of its values."""
    yield "    int begun;"
    for op in graph.ops:
        if isinstance(op, ReadNumbers) and op.shape[0] > 1:
            yield f"    float numbers[{math.prod(op.shape)}]; /* of {op.shape[0]} time steps, the oldest first */"
        elif isinstance(op, ReadImage) and op.input.stack > 1:
            one = op.input
            yield f"    uint8_t frames_{one.name}[{one.stack * one.size}]; /* {one.stack} frames, the oldest first */"
    yield f"    float work[{place_values(graph).size}];"


def _kind(graph: Graph) -> str:
    return "float" if graph.action.dtype == "float32" else "double"


def _c_type(one: Input) -> str:
    return {"image": "uint8_t", "category": "int64_t", "vector": "float"}[one.kind]


def _extent(one: Input) -> str:
    return f"[{one.size}]" if one.shape else ""


def _explained(one: Input) -> str:
    """Says in a comment what a field is."""
    place = comment("observation" + "".join(f"[{key!r}]" for key in one.path))
    if one.categories:
        ranges = [f"{first} to {first + count - 1}" for first, count in one.categories]
        return f"{place}, {', '.join(ranges[:4])}{', ...' if len(ranges) > 4 else ''}"
    return f"{place}, shape {_dimensions(one.shape)}"


def _dimensions(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _arrays(prefix: str, number: int, op: Op) -> Iterator[str]:
    """Yields the constants of an operation."""
    match op:
        case Linear():
            yield from _array(f"{prefix}weight_{number}", op.weight.T)  # one input after the other: see the function
            yield from _array(f"{prefix}bias_{number}", op.bias)
        case Convolution() | LayerNorm():
            yield from _array(f"{prefix}weight_{number}", op.weight)
            yield from _array(f"{prefix}bias_{number}", op.bias)
        case Normalise():
            mean = op.mean.astype(np.float32)
            yield from _array(f"{prefix}mean_{number}", mean)
            yield from _array(f"{prefix}mean_rest_{number}", (op.mean - mean.astype(np.float64)).astype(np.float32))
            yield from _array(f"{prefix}scale_{number}", op.scale.astype(np.float32))
        case Unscale():
            yield from _array(f"{prefix}source_{number}", op.source, "size_t")
            for field in ("centre", "half", "low", "high"):
                yield from _array(f"{prefix}{field}_{number}", getattr(op, field), "double")


def _array(name: str, values: NDArray[np.generic], kind: str = "float") -> Iterator[str]:
    ending = "f" if kind == "float" else ""
    words = [f"{value!s}{ending}" for value in values.reshape(-1)]  # the shortest text that reads as the same number
    yield f"static const {kind} {name}[{len(words)}] = {{"
    line = "   "
    for word in words:
        if len(line) + len(word) + 2 > WIDTH:
            yield line
            line = "   "
        line += f" {word},"
    yield line
    yield "};"
    yield ""


def _reset(graph: Graph) -> Iterator[str]:
    yield f"void {graph.name}_reset({graph.name}_state *state)"
    yield "{"
    yield "    state->begun = 0;"
    yield "}"
    yield ""


def _act(graph: Graph) -> Iterator[str]:
    name, places = graph.name, place_values(graph).places
    yield f"int {name}_act({name}_state *state, const {name}_observation *observation, {_kind(graph)} *action)"
    yield "{"
    yield "    float *work = state->work;"
    for number, one in enumerate(graph.used_inputs, 1):
        field = f"observation->{one.name}" if one.shape else f"&observation->{one.name}"
        if one.kind == "vector":
            yield f"    if (!{name}_finite({field}, {one.size})) return {number};"
        for entry, (first, count) in enumerate(one.categories):
            value = f"observation->{one.name}{f'[{entry}]' if one.shape else ''}"
            yield f"    if ({value} < {_int64(first)} || {value} > {_int64(first + count - 1)}) return {number};"
    for number, op in enumerate(graph.ops):
        yield from (f"    {line}" for line in _statements(graph, number, op, places))
    yield "    state->begun = 1;"
    yield "    return 0;"
    yield "}"
    yield ""


def _statements(graph: Graph, number: int, op: Op, places: tuple[int, ...]) -> Iterator[str]:
    name, here = graph.name, f"work + {places[number]}"
    before = f"work + {places[op.takes[0]]}" if op.takes else ""
    match op:
        case ReadNumbers():
            yield from _read_numbers(name, op, places[number])
        case ReadImage():
            yield from _read_image(name, op, places[number])
        case Normalise():
            arrays = ", ".join(f"{name}_{part}_{number}" for part in ("mean", "mean_rest", "scale"))
            yield f"{name}_normalise({arrays}, {op.clip}f, {op.shape[0]}, {op.shape[1]}, {here});"
        case Join() if not is_passed_on(op):
            start = places[number]
            for taken in op.takes:
                size = math.prod(graph.ops[taken].shape)
                yield f"{name}_copy(work + {places[taken]}, {size}, work + {start});"
                start += size
        case Linear():
            outputs, inputs = op.weight.shape
            yield f"{name}_linear({name}_weight_{number}, {name}_bias_{number}, {inputs}, {outputs}, {before}, {here});"
        case Convolution():
            channels, height, width = graph.ops[op.takes[0]].shape
            kernel = ", ".join(map(str, op.weight.shape[2:]))
            sizes = (
                f"{channels}, {height}, {width}, {', '.join(map(str, op.shape))}, {kernel}, {op.stride}, {op.padding}"
            )
            yield f"{name}_convolve({name}_weight_{number}, {name}_bias_{number}, {sizes}, {before}, {here});"
        case LayerNorm():
            sizes = f"{op.epsilon!r}, {math.prod(op.shape)}"
            yield f"{name}_layer_norm({name}_weight_{number}, {name}_bias_{number}, {sizes}, {before}, {here});"
        case Relu():
            yield f"{name}_relu({math.prod(op.shape)}, {here});"
        case Tanh():
            yield f"{name}_tanh_all({math.prod(op.shape)}, {here});"
        case Unscale():
            centre, half, low, high, source = (
                f"{name}_{part}_{number}[i]" for part in ("centre", "half", "low", "high", "source")
            )
            yield f"for (size_t i = 0; i < {len(op.source)}; i++) {{"
            yield f"    double scaled = {centre} + {half} * (double)({before})[{source}];"
            yield f"    if (scaled < {low}) scaled = {low};"
            yield f"    if (scaled > {high}) scaled = {high};"
            yield f"    action[i] = {'(float)' if op.dtype == 'float32' else ''}scaled;"
            yield "}"


def _read_numbers(name: str, op: ReadNumbers, place: int) -> Iterator[str]:
    """Copies numbers into the newest time step; where there is a history, the older ones move up first."""
    steps, width = op.shape
    target, start = ("state->numbers", (steps - 1) * width) if steps > 1 else ("work", place)
    if steps > 1:
        yield f"if (state->begun) {name}_copy(state->numbers + {width}, {(steps - 1) * width}, state->numbers);"
    for one in op.inputs:
        field = f"observation->{one.name}" if one.shape else f"&observation->{one.name}"
        if not one.categories:
            yield f"{name}_copy({field}, {one.size}, {target} + {start});"
            start += one.size
        for entry, (first, count) in enumerate(one.categories):
            value = f"observation->{one.name}{f'[{entry}]' if one.shape else ''}"
            yield f"{name}_one_hot((size_t)({value} - {_int64(first)}), {count}, {target} + {start});"
            start += count
    if steps > 1:  # an episode's first observation stands for those there were not yet
        newest = f"state->numbers + {(steps - 1) * width}"
        yield f"for (size_t step = 0; !state->begun && step < {steps - 1}; step++)"
        yield f"    {name}_copy({newest}, {width}, state->numbers + step * {width});"
        yield f"{name}_copy(state->numbers, {steps * width}, work + {place});"


def _read_image(name: str, op: ReadImage, place: int) -> Iterator[str]:
    one = op.input
    planes, strides = (", ".join(map(str, four)) for four in (one.planes, one.strides))
    if one.stack == 1:
        yield f"{name}_pixels(observation->{one.name}, {planes}, {strides}, work + {place});"
        return
    frames, older, size = f"state->frames_{one.name}", (one.stack - 1) * one.size, one.size
    yield f"for (size_t i = 0; state->begun && i < {older}; i++) {frames}[i] = {frames}[i + {size}];"
    yield f"for (size_t i = state->begun ? {older} : 0; i < {older + size}; i++)"
    yield f"    {frames}[i] = observation->{one.name}[i % {size}];"
    yield f"for (size_t frame = 0; frame < {one.stack}; frame++)"
    yield f"    {name}_pixels({frames} + frame * {size}, {planes}, {strides}, work + {place} + frame * {size});"


def _int64(number: int) -> str:
    """Writes a whole number of 64 bits; the lowest one has no literal of its own."""
    return f"(-INT64_C({-number - 1}) - 1)" if number < 0 else f"INT64_C({number})"
