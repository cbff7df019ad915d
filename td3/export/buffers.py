"""Where each value of a graph lies in one array of floats: a value's place is used again after its last use."""

import math
from typing import NamedTuple

from td3.export.graph import Graph, Join, Normalise, Op, Relu, Tanh, Unscale

IN_PLACE = (Normalise, Relu, Tanh)  # they may write over what they read


class Buffers(NamedTuple):
    """The place of every value, and the floats that all of them need."""

    places: tuple[int, ...]  # by the number of the value
    size: int


def place_values(graph: Graph) -> Buffers:
    """Gives each value the lowest place that is free while it is needed; the action has none."""
    last_use = list(range(len(graph.ops)))
    for number, op in enumerate(graph.ops):
        for taken in op.takes:
            last_use[taken] = number
    places: list[int] = []
    held: dict[int, tuple[int, int]] = {}  # the values still needed: their place and end
    size = 0
    for number, op in enumerate(graph.ops):
        place = _place(number, op, places, held, last_use)
        places.append(place)
        if not isinstance(op, Unscale):
            end = place + math.prod(op.shape)
            held[number], size = (place, end), max(size, end)
        held = {value: span for value, span in held.items() if last_use[value] > number}
    return Buffers(tuple(places), size)


def is_passed_on(op: Op) -> bool:
    """Returns whether an operation only gives its value another shape."""
    return isinstance(op, Join) and len(op.takes) == 1


def _place(number: int, op: Op, places: list[int], held: dict[int, tuple[int, int]], last_use: list[int]) -> int:
    if isinstance(op, IN_PLACE) or is_passed_on(op):
        assert last_use[op.takes[0]] == number, "nothing else reads what is written over"
        return places[op.takes[0]]
    place, needed = 0, math.prod(op.shape)
    for start, end in sorted(held.values()):
        if place + needed <= start:
            break
        place = max(place, end)
    return place
