"""The replay memory: what was played, stored as typed arrays and sampled.

Vectors lie in a `Memory`, row beside row as the update reads them. Images lie in a `FrameMemory`, which keeps each
frame once and makes s, s' and their stacks when they are drawn. Both look n steps ahead by the same `Links`.
"""

from td3.replay.frames import FrameMemory
from td3.replay.memory import Memory
from td3.replay.sampling import MakeSampler, Sampler, UniformSampler
from td3.types import Layout

AnyMemory = Memory | FrameMemory


def make_memory(capacity: int, layout: Layout, action_size: int, n_step: int, gamma: float) -> AnyMemory:
    kind = FrameMemory if layout.pictures else Memory
    return kind(capacity, layout, action_size, n_step, gamma)


def bytes_per_transition(layout: Layout, action_size: int, n_step: int = 1) -> int:
    """What one remembered transition costs; for HalfCheetah 165, about half of what float64 or a second copy needs."""
    return make_memory(1, layout, action_size, n_step, gamma=1.0).nbytes


__all__ = [
    "AnyMemory",
    "FrameMemory",
    "MakeSampler",
    "Memory",
    "Sampler",
    "UniformSampler",
    "bytes_per_transition",
    "make_memory",
]
