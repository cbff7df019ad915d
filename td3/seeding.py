"""One seed becomes independent streams with names, so that no part of a run draws from another's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

# A stream is known by its place in this list: add at the end, never reorder, or old seeds change meaning.
STREAMS = (
    "weights",
    "exploration",
    "replay",
    "smoothing",
    "environments",
    "evaluation environments",
    "final evaluation environments",
    "predicting",
    "restarts",
)


Stream = np.random.Generator | np.random.RandomState


def sequence(seed: int, stream: str, *branch: int) -> np.random.SeedSequence:
    """The stream's own sequence, or one of its branches."""
    return np.random.SeedSequence(seed, spawn_key=(STREAMS.index(stream), *branch))


def generator(seed: int, stream: str) -> np.random.Generator:
    """Makes the generator of the stream with this name."""
    return np.random.default_rng(sequence(seed, stream))


def environment_seeds(seed: int, stream: str, count: int, *branch: int) -> list[int]:
    """Distinct seeds for `reset(seed=…)`: 32 bits, because many environments take no more."""
    source = np.random.default_rng(sequence(seed, stream, *branch))
    seeds: dict[int, None] = {}  # an ordered set
    while len(seeds) < count:
        seeds[int(source.integers(2**32))] = None
    return list(seeds)


def further_seeds(seed: int, stream: str, count: int, *branch: int) -> Iterator[int]:
    """Yields the seeds that follow the first `count` of `environment_seeds`."""
    while True:
        count += 1
        yield environment_seeds(seed, stream, count, *branch)[-1]


def state_of(generator: Stream) -> dict[str, Any]:
    """Where a stream stands, as plain data; its 128-bit numbers as text, which every JSON reader keeps whole."""
    if isinstance(generator, np.random.RandomState):  # as dm_control has
        _, key, place, has_gauss, gauss = generator.get_state()
        return {
            "key": np.asarray(key, "<u4").tobytes().hex(),
            "place": int(place),
            "has_gauss": int(has_gauss),
            "gauss": float(gauss),
        }
    state: Any = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise ValueError(f"{state['bit_generator']} is not a kind of stream that is kept")
    return {
        "state": hex(state["state"]["state"]),
        "inc": hex(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def load_state(generator: Stream, data: dict[str, Any]) -> None:
    """Puts a stream where `state_of` found it; what is no such place is a ValueError."""
    try:
        if isinstance(generator, np.random.RandomState):
            key, place = np.frombuffer(bytes.fromhex(data["key"]), "<u4"), int(data["place"])
            if len(key) != 624 or not 0 <= place <= 624:
                raise ValueError(f"{len(key)} words at {place} are no state")
            generator.set_state(("MT19937", key, place, int(bool(data["has_gauss"])), float(data["gauss"])))
            return
        generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": int(data["state"], 16), "inc": int(data["inc"], 16)},
            "has_uint32": int(data["has_uint32"]),
            "uinteger": int(data["uinteger"]),
        }
    except (KeyError, TypeError, ValueError, ArithmeticError) as problem:
        raise ValueError(f"the state of a random stream cannot be used: {problem}") from problem
