"""Records a real update of the run now and then, with all its numbers, for whoever watches.

`updates.jsonl` is a side record. No checkpoint knows it, only its length is read back, and whatever goes wrong with it
costs lines of it and nothing else.
"""

from td3.recording.allowance import Allowance, Clock
from td3.recording.recorder import Recorder

__all__ = ["Allowance", "Clock", "Recorder"]
