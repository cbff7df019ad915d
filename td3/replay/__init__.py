"""The replay memory: what was played, remembered as typed arrays and drawn from uniformly."""

from td3.replay.memory import Memory, bytes_per_transition

__all__ = ["Memory", "bytes_per_transition"]
