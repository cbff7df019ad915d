"""Run folders for tests, as training leaves them, without training; and questions to the page that reads them."""

import asyncio
import json

import httpx
import msgspec

from td3.config import Config
from td3.views.web.server import Page


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


def found_row(step=4_000, **changes):
    """A row of the record with a finding, as training writes it."""
    finding = {
        "name": "one_action",
        "step": step,
        "seen": "In 99 % of remembered states the actor plays the upper end of action[0].",
        "advice": "Begin a new run with --normalize-observations.",
        "chart": "health/one_end",
        "command": ["check", "ENV"],
        "numbers": {"share": 0.99},
    }
    return {"step": step, "finding": {**finding, **changes}}


def append(folder, rows, name="metrics.jsonl"):
    with (folder / name).open("ab") as file:
        file.write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def ask(root, path, *, headers=None, method="GET", host="127.0.0.1", token=None, base="http://127.0.0.1:8533"):
    async def go():
        transport = httpx.ASGITransport(Page(root, host, token), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(go())


def rows_of(root):
    return {one["name"]: one for one in ask(root, "/api/runs").json()["runs"]}


def id_of(root, name):
    return rows_of(root)[name]["id"]
