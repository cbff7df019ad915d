"""The replay memory: stores transitions as typed arrays, and samples batches of them.

`Memory` stores rows of float32 observations, s and s' of each transition. `FrameMemory` stores each frame, or each
observation that is joined with others, once, and makes s, s' and their stacks when they are sampled. Both look n steps
ahead by the same `Links`.
"""

from functools import partial

from td3.config import Config
from td3.interfaces import MakeSampler
from td3.replay.frames import FrameMemory
from td3.replay.memory import Memory
from td3.replay.prioritized import PrioritizedSampler
from td3.replay.sampling import UniformSampler, check_indices
from td3.types import Layout

AnyMemory = Memory | FrameMemory
OWN_SAMPLERS = UniformSampler, PrioritizedSampler  # whose indices need no check


def memory_of(layout: Layout) -> type[AnyMemory]:
    """Returns the kind of memory for such observations: whatever is stacked when sampled is stored by time steps."""
    return FrameMemory if layout.frame or layout.history > 1 else Memory


def make_memory(capacity: int, layout: Layout, action_size: int, n_step: int, gamma: float) -> AnyMemory:
    """Makes the memory for such observations."""
    return memory_of(layout)(capacity, layout, action_size, n_step, gamma)


def smallest_capacity(layout: Layout, num_envs: int) -> int:
    """Returns the capacity from which on a memory of such observations always has something to sample."""
    return memory_of(layout).smallest_capacity(layout, num_envs)


def bytes_per_transition(layout: Layout, action_size: int, n_step: int = 1, sampling: str = "uniform") -> int:
    """Computes what one transition costs; for HalfCheetah 165, about half of what float64 or a second copy needs."""
    priority = 0 if sampling == "uniform" else 4
    return make_memory(1, layout, action_size, n_step, gamma=1.0).nbytes + priority


def sampler_of(config: Config) -> MakeSampler:
    """Returns what makes the sampler that the config asks for."""
    if config.sampling == "uniform":
        return UniformSampler
    return partial(PrioritizedSampler, alpha=config.priority_alpha, floor=config.priority_floor)


__all__ = [
    "OWN_SAMPLERS",
    "AnyMemory",
    "FrameMemory",
    "Memory",
    "PrioritizedSampler",
    "UniformSampler",
    "bytes_per_transition",
    "check_indices",
    "make_memory",
    "sampler_of",
    "smallest_capacity",
]
