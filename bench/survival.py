"""Kills runs, from inside and outside, and compares what is left with a run that was never killed.

    python -m bench.survival --kills 200

The kills are shared out over the kinds of runs in `KINDS`. Half of them are fired when the temporary name of a
checkpoint or of a memory segment appears, that is inside a save; the others at random moments. After each, the newest
checkpoint must be whole and the run must go on by itself; when it is finished its networks, optimisers, memory,
counters, random streams and metrics must be those of a run that nobody touched.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import td3
from td3.environments import ActionMap, Wrappers
from td3.environments.space_data import space_from_data
from td3.errors import RunError, TD3Error
from td3.replay import make_memory
from td3.storage import RunFolder, read_metrics, verify
from td3.storage.checkpoint import Checkpoint

STEPS = 100
SMALL = {
    "env": "Pendulum-v1", "warmup_steps": 30, "hidden": (8, 8), "batch_size": 8, "checkpoint_every": 40,
    "eval_every": 90, "eval_episodes": 1, "log_every": 25, "threads": 1, "buffer_size": 100, "film": False,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {  # what is killed, each for as long as a few kills need
    "vectors": {},
    "four environments in two workers": {"num_envs": 4, "workers": 2, "steps": 8_000},
    "images": {
        "preset": "author", "pixels": 8, "grey": True, "frame_stack": 2, "encoder_channels": (4,),
        "encoder_features": 8, "steps": 1_500, "checkpoint_every": 20,
    },
    "n-step returns, normalised": {"n_step": 3, "normalize_observations": True, "num_envs": 2},
    "torch, after each episode": {"engine": "torch", "update_schedule": "episode", "update_after": 0, "steps": 3_000},
}  # fmt: skip


def config(**settings: Any) -> td3.Config:
    return td3.Config(**{**SMALL, "steps": STEPS, **settings})


def words(run: Path, **settings: Any) -> list[str]:
    """The command line of the same run."""
    given = {**SMALL, "steps": STEPS, **settings}
    flags: list[str] = []
    for name, value in given.items():
        word = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{word}" if value else f"--no-{word}")
        elif name != "env":
            flags += [f"--{word}", ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return ["train", str(given["env"]), *flags, "--run", str(run)]


def networks(run: Path) -> dict[str, Any]:
    return RunFolder.open(run).newest(lambda one: one.arrays("networks"))[1]


def fingerprint(run: Path, env: str | None = None) -> str:
    """A hash of all that a finished run is, but for the time it took; `env` stands for its environment's name."""
    chosen, _, _ = RunFolder.open(run).newest(Checkpoint.check)
    digest = hashlib.sha256()
    state = chosen.state()
    del state["seconds"]
    state["config"]["env"] = env or state["config"]["env"]
    digest.update(json.dumps(state, sort_keys=True).encode())
    for group in ("networks", "optimizers", "playing"):
        for name, array in sorted(chosen.arrays(group).items()):
            digest.update(name.encode() + array.tobytes())
    settings = td3.Config.from_data({**state["config"], "env": "any"})
    observation = Wrappers.of(settings).map_of(space_from_data(state["spaces"]["observation"]))
    action = ActionMap(space_from_data(state["spaces"]["action"]))
    memory = make_memory(settings.buffer_size, observation.layout, action.size, settings.n_step, settings.gamma)
    chosen.fill(memory, state)
    for column in memory.rows(memory.oldest, memory.written).values():
        digest.update(column.tobytes())
    for row in read_metrics(run / "metrics.jsonl"):
        digest.update(json.dumps({k: v for k, v in row.items() if not k.startswith("time/")}).encode())
    return digest.hexdigest()


def damaged(run: Path, path: Path, data: bytes, expected: dict[str, Any]) -> None:
    """With `data` in place of that file: the damage is reported, and no tensor is silently different. Then undone."""
    original = path.read_bytes()
    path.write_bytes(data)
    try:
        reported = list(verify(run).values())
        assert any(reported), f"{path.relative_to(run)}: not noticed"
        try:
            _, found, wrong = RunFolder.open(run).newest(lambda one: one.arrays("networks"))
        except RunError:
            return
        if not wrong:  # it is the newest: its tensors must be the right ones
            assert all((found[name] == array).all() for name, array in expected.items()), path
    finally:
        path.write_bytes(original)


def kill_and_resume(place: Path, kills: int, seed: int, **settings: Any) -> dict[str, int]:
    """Kills runs until `kills` have been killed and the last is finished; counts what happened."""
    longer = {"steps": 4_000, "checkpoint_every": 50, "eval_every": 1_000, **settings}
    list(td3.train(config(**longer), place / "reference"))
    expected = fingerprint(place / "reference")
    rng = random.Random(seed)
    counts = {"killed": 0, "inside a save": 0, "finished": 0, "different": 0, "not resumable": 0}
    number = 0
    while counts["killed"] < kills or counts["finished"] == 0:
        number += 1
        run = place / f"run-{number}"
        while True:
            begun = run.exists()
            command = ["resume", str(run)] if begun else words(run, **longer)
            process = subprocess.Popen(
                [sys.executable, "-m", "td3", *command, "--quiet"], stderr=subprocess.PIPE, start_new_session=True
            )
            killed = ""
            if counts["killed"] < kills:
                killed = kill(process, run, rng, counts["killed"] % 2 == 0)
            _, reported = process.communicate()
            if killed:
                counts["killed"] += 1
                counts["inside a save"] += killed == "save"
                if run.exists() and any((run / "checkpoints").glob("[0-9]*")) and list(verify(run).values())[-1]:
                    counts["not resumable"] += 1
                continue
            if process.returncode != 0:
                counts["not resumable"] += 1
                print(reported.decode(), file=sys.stderr)
                break
            counts["finished"] += 1
            try:
                counts["different"] += fingerprint(run) != expected
            except TD3Error:
                counts["different"] += 1
            shutil.rmtree(run)
            break
    return counts


def kill(process: "subprocess.Popen[bytes]", run: Path, rng: random.Random, inside: bool) -> str:
    """SIGKILL to the whole group: inside a save, or a random while after the run is under way. '' if it had ended."""
    skip, patience = rng.randrange(12), rng.uniform(0, 1.5)
    under_way: float | None = None
    seen: set[str] = set()
    known = names(run)
    while process.poll() is None:
        now = names(run)
        if now != known and under_way is None:
            under_way = time.monotonic()
        fresh = {name for name in now if ".tmp-" in name} - seen
        seen |= fresh
        if inside and fresh:
            if skip == 0:
                return fire(process, "save")
            skip -= 1
        if not inside and under_way is not None and time.monotonic() - under_way > patience:
            return fire(process, "anywhere")
    return ""


def names(run: Path) -> set[str]:
    found = set()
    for part in ("checkpoints", "memory"):
        try:
            found |= {entry.name for entry in os.scandir(run / part)}
        except OSError:
            continue
    return found


def fire(process: "subprocess.Popen[bytes]", where: str) -> str:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return where


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began = time.monotonic()
    total: dict[str, int] = {}
    for number, (kind, settings) in enumerate(KINDS.items()):
        share = chosen.kills * (number + 1) // len(KINDS) - chosen.kills * number // len(KINDS)
        with tempfile.TemporaryDirectory() as place:
            counts = kill_and_resume(Path(place), share, chosen.seed + number, **settings)
        print(f"{kind}: {said(counts)} ({time.monotonic() - began:.0f} s)", flush=True)
        total = {what: total.get(what, 0) + count for what, count in counts.items()}
    print(f"all: {said(total)}")
    return 1 if total["different"] or total["not resumable"] else 0


def said(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in counts.items())


if __name__ == "__main__":
    sys.exit(main())
