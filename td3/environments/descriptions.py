"""Describes spaces in words: bounds, what an agent observes, and what a user may not have meant."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from td3.environments.actions import ActionMap
from td3.environments.observations import ObservationMap
from td3.types import Layout
from td3.wording import counted

# What the numbers of a float32 part are called, by kind; those of another kind by its name: '2 angles'.
NOUNS = {"vector": "number", "category": "number"}


def describe_bounds(low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Writes '[-2, 2]' where all dimensions agree, else one pair per dimension."""
    pairs = [f"[{a:g}, {b:g}]" for a, b in zip(low.reshape(-1), high.reshape(-1), strict=True)]
    if len(set(pairs)) == 1:
        return pairs[0]
    return " ".join(pairs[:8]) + (f" … {len(pairs)} in all" if len(pairs) > 8 else "")


def describe_layout(layout: Layout) -> str:
    """Writes what an agent observes in a few words.

    '17 observations', '17 numbers × 4 observations', '3 frames of 84×84×3 and 5 numbers'.
    """
    texts = []
    if layout.frame_parts:
        sizes = ["×".join(map(str, (*part.shape[1:], part.shape[0]))) for part, _ in layout.frame_parts]
        frames = f"{layout.stack} frames" if layout.stack > 1 else "an image"
        texts.append(f"{frames} of {' and '.join(sizes)}")
    numbers: Counter[str] = Counter()
    for part, _ in layout.number_parts:
        numbers[NOUNS.get(part.kind, part.kind)] += part.size
    if not texts and layout.history == 1 and set(numbers) == {"number"}:
        return counted(layout.numbers, "observation")
    times = f" × {layout.history} observations" if layout.history > 1 else ""
    return " and ".join([*texts, *(f"{counted(many, noun)}{times}" for noun, many in numbers.items())])


def oddities(observation: ObservationMap, action: ActionMap) -> list[str]:
    """Returns what a user may not have meant, one sentence each."""
    notes = [note for leaf in observation.leaves for note in leaf.oddities()]
    if observation.layout.numbers > 10_000:
        notes.append(f"The observation is {observation.layout.numbers:,} numbers long: the memory will be large.")
    if action.constants:
        notes.append(f"{action.constants} action dimensions have low == high: they are constants, not choices.")
    if (np.diff(np.stack(action.bounds), axis=0) < 1e-3).any() and not action.constants:
        notes.append("Some action range is narrower than 0.001: are the bounds in the unit you meant?")
    return notes
