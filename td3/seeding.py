"""One seed becomes independent streams with names, so that no part of a run draws from another's."""

import numpy as np

# A stream is known by its place in this list: add at the end, never reorder, or old seeds change meaning.
STREAMS = (
    "weights",
    "exploration",
    "replay",
    "smoothing",
    "environments",
    "evaluation environments",
    "judging environments",
)


def sequence(seed: int, stream: str, *branch: int) -> np.random.SeedSequence:
    """The stream's own sequence, or one of its branches."""
    return np.random.SeedSequence(seed, spawn_key=(STREAMS.index(stream), *branch))


def generator(seed: int, stream: str) -> np.random.Generator:
    return np.random.default_rng(sequence(seed, stream))


def environment_seeds(seed: int, stream: str, count: int, *branch: int) -> list[int]:
    """Distinct seeds for `reset(seed=…)`: 32 bits, because many environments take no more."""
    source = np.random.default_rng(sequence(seed, stream, *branch))
    seeds: dict[int, None] = {}  # an ordered set
    while len(seeds) < count:
        seeds[int(source.integers(2**32))] = None
    return list(seeds)
