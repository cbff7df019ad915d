"""Run folders for tests, as training leaves them, without training."""

import json

import msgspec

from td3.config import Config


def make_run(folder, rows=(), config=None, goal=None, score=None):
    """A run folder as training leaves it, without training."""
    (folder / "checkpoints").mkdir(parents=True)
    config = Config(steps=1_000).to_data() if config is None else config
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    (folder / "versions.json").write_text('{"td3": "0"}')
    (folder / "metrics.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    if goal is not None:
        place = folder / "checkpoints" / "000000500-0123456789abcdef"
        place.mkdir()
        (place / "manifest.json").write_text(json.dumps({"step": 500, "score": score, "serial": 1}))
        (place / "state.json").write_text(json.dumps({"config": {"steps": goal}, "best": score}))
    return folder


def append(folder, rows, name="metrics.jsonl"):
    with (folder / name).open("ab") as file:
        file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
