"""What a run left on the disk, to compare one with another."""

import json

import numpy as np
from safetensors.numpy import load_file


def newest(run):
    return max((run / "checkpoints").iterdir())


def contents(run):
    """All arrays of the newest checkpoint and of the memory, and the metrics but for the speeds."""
    folder = newest(run)
    arrays = {path.stem: load_file(path) for path in folder.glob("*.safetensors")}
    segments = [load_file(path) for path in sorted((run / "memory").iterdir())]
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    metrics = [{name: value for name, value in row.items() if not name.startswith("time/")} for row in rows]
    memory = {name: np.concatenate([segment[name] for segment in segments]).tobytes() for name in segments[0]}
    return (
        {f"{group}.{name}": a.tobytes() for group, named in arrays.items() for name, a in named.items()},
        memory,
        metrics,
    )


SMALL = {  # settings of a run that takes a second; the ring wraps
    "env": "Pendulum-v1",
    "steps": 120,
    "warmup_steps": 20,
    "hidden": (8, 8),
    "batch_size": 16,
    "buffer_size": 100,
    "log_every": 20,
    "eval_every": 60,
    "eval_episodes": 1,
    "checkpoint_every": 40,
    "film": False,
}
