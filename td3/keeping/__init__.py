"""The run folder: plain data that can be copied, moved and opened without running anything from it.

`config.json` and `versions.json` say how the run was made, `metrics.jsonl` grows line by line, and
`checkpoints/` holds numbered folders that appear whole or not at all and are never written again.
"""

from td3.keeping.folder import Checkpoint, RunFolder
from td3.keeping.record import read_metrics

__all__ = ["Checkpoint", "RunFolder", "read_metrics"]
