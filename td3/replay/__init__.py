"""The replay memory: stores transitions as typed arrays, and samples batches of them.

`Memory` stores rows of float32 observations, s and s' of each transition. `FrameMemory` stores each frame once, and
makes s, s' and their stacks when they are sampled. Both look n steps ahead by the same `Links`.
"""

from typing import Any

from td3.replay.frames import FrameMemory
from td3.replay.memory import Memory
from td3.replay.sampling import UniformSampler, check_indices
from td3.types import Layout

AnyMemory = Memory | FrameMemory

# By the dtype of a row, see `Layout`: whatever a part's kind, it is stored as float32 numbers or as frames of bytes.
MEMORIES: dict[str, Any] = {"float32": Memory, "uint8": FrameMemory}


def make_memory(capacity: int, layout: Layout, action_size: int, n_step: int, gamma: float) -> AnyMemory:
    """Makes the memory for such observations."""
    memory: AnyMemory = MEMORIES[layout.dtype.name](capacity, layout, action_size, n_step, gamma)
    return memory


def smallest_capacity(layout: Layout, num_envs: int) -> int:
    """Returns the capacity from which on a memory of such observations always has something to sample."""
    least: int = MEMORIES[layout.dtype.name].smallest_capacity(layout, num_envs)
    return least


def bytes_per_transition(layout: Layout, action_size: int, n_step: int = 1) -> int:
    """Computes what one transition costs; for HalfCheetah 165, about half of what float64 or a second copy needs."""
    return make_memory(1, layout, action_size, n_step, gamma=1.0).nbytes


__all__ = [
    "MEMORIES",
    "AnyMemory",
    "FrameMemory",
    "Memory",
    "UniformSampler",
    "bytes_per_transition",
    "check_indices",
    "make_memory",
    "smallest_capacity",
]
