"""The run folder: plain data that can be copied, moved and opened without running anything from it.

`config.json` and `versions.json` say how the run was begun, `metrics.jsonl` grows line by line, `checkpoints/`
holds numbered folders that appear whole or not at all and are never written again, and `memory/` the rows they share.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from td3.storage.checkpoint import Checkpoint, File, Snapshot
    from td3.storage.folder import RunFolder, verify
    from td3.storage.record import Record, read_metrics
    from td3.storage.writer import CheckpointWriter

__all__ = ["Checkpoint", "CheckpointWriter", "File", "Record", "RunFolder", "Snapshot", "read_metrics", "verify"]


_HOMES = {
    "Record": "record",
    "read_metrics": "record",
    "RunFolder": "folder",
    "verify": "folder",
    "CheckpointWriter": "writer",
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used: whoever only reads files needs no PyTorch."""
    if name not in __all__:
        raise AttributeError(f"module 'td3.storage' has no attribute {name!r}")
    return getattr(importlib.import_module(f"td3.storage.{_HOMES.get(name, 'checkpoint')}"), name)
