"""How much the page bears: many long runs, and many viewers beside a run that trains.

    python -m bench.watching                 # 100 runs × 1,000,000 rows × 5 metrics (20 GB of disk), 200 viewers
    python -m bench.watching --runs 5 --rows 100000 --viewers 20

Every figure is printed beside what it may be at most; the exit code is 1 if one is beyond it.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from td3.config import Config

METRICS = ("eval/mean_return", "train/critic_loss", "train/q1_mean", "train/q2_mean", "train/target_mean")
SPIKE = 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=6, help="of training with and without viewers")
    chosen = parser.parse_args()
    reported = [*many_long_runs(chosen.runs, chosen.rows), *many_viewers(chosen.viewers, chosen.rounds)]
    for name, value, most, unit in reported:
        print(f"{'ok  ' if value <= most else 'FAIL'} {name}: {value:,.2f} {unit} (at most {most:,g})")
    return 0 if all(value <= most for _, value, most, _ in reported) else 1


def many_long_runs(runs: int, rows: int) -> list[tuple[str, float, float, str]]:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = Path(place)
        record = rows_of_metrics(rows)
        for number in range(runs):
            fake_run(folder / f"run-{number:03}", record, seed=number)
        with page(folder) as (address, process):
            began = time.perf_counter()
            found = get(address, "api/runs")["runs"]
            listing = time.perf_counter() - began
            assert len(found) == runs
            charts = []
            for number, run in enumerate(found):
                metric = METRICS[number % len(METRICS)]
                began = time.perf_counter()
                series = get(address, f"api/series?id={run['id']}&metric={metric}&points=1000")["series"][metric]
                charts.append(time.perf_counter() - began)
                assert max(series["value"]) == SPIKE
            one = f"id={found[0]['id']}&metric={METRICS[0]}"
            zooms = []
            for width in (rows // 2, rows // 10, rows // 100, 100):
                first, last = rows // 2 - width // 2, rows // 2 + width // 2
                began = time.perf_counter()
                series = get(address, f"api/series?{one}&from={first}&to={last}")["series"][METRICS[0]]
                zooms.append(time.perf_counter() - began)
                assert max(series["value"]) == SPIKE, width
            before = bytes_read(process.pid)
            with (folder / found[0]["name"] / "metrics.jsonl").open("ab") as file:
                file.write(record[: record.index(b"\n") + 1])
            get(address, f"api/series?{one}&from={rows}")
            refreshed = bytes_read(process.pid) - before
            memory = peak_memory(process.pid)
    size = len(record) * runs / 1e9
    return [
        (f"list of {runs} runs with {rows:,} rows of {len(METRICS)} metrics each, {size:.1f} GB", listing, 2, "s"),
        ("a run's first chart, the middle one", float(np.median(charts)), 1, "s"),
        ("a closer look, the slowest", max(zooms), 1, "s"),
        (f"memory after a chart of each of {runs} runs", memory, 500, "MB"),
        ("read for one new row", refreshed / 1e6, 1, "MB"),
    ]


def rows_of_metrics(rows: int) -> bytes:
    """A record with one spike in each metric, in the middle."""
    values = np.random.default_rng(0).standard_normal((rows, len(METRICS)))
    values[rows // 2] = SPIKE
    names = [json.dumps(name) for name in METRICS]
    lines = (
        f'{{"step":{step},' + ",".join(f"{name}:{value!r}" for name, value in zip(names, row, strict=True)) + "}\n"
        for step, row in enumerate(values.tolist())
    )
    return "".join(lines).encode()


def fake_run(folder: Path, record: bytes, seed: int) -> None:
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(Config(seed=seed).to_data()))
    (folder / "metrics.jsonl").write_bytes(record)


@contextlib.contextmanager
def page(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    words = [sys.executable, "-m", "td3", "watch", str(folder), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout
    try:
        yield json.loads(process.stdout.readline())["address"], process
    finally:
        process.terminate()
        process.wait()


def get(address: str, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(address + path, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def peak_memory(pid: int) -> float:
    """Megabytes that process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1_000


def bytes_read(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def many_viewers(viewers: int, rounds: int) -> list[tuple[str, float, float, str]]:
    """A run that trains, with a page and without viewers, and with many, in turn; dead and slow ones among them."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        words = ["train", "HalfCheetah-v5", "--steps", "1000000", "--warmup-steps", "500", "--eval-every", "0"]
        training = subprocess.Popen(
            [sys.executable, "-m", "td3", *words, "--log-every", "50", "--run", str(run), "--quiet"]
        )
        try:
            with page(Path(place)) as (address, _):
                speeds = asyncio.run(alternate(address, run, viewers, rounds))
        finally:
            training.kill()
            training.wait()
    # Neighbouring rounds are compared with each other: the machine's own speed drifts.
    losses = [1 - crowded / quiet for quiet, crowded in zip(speeds[::2], speeds[1::2], strict=True)]
    return [
        (f"training lost to {viewers} viewers, the middle of {rounds} pairs", 100 * float(np.median(losses)), 5, "%")
    ]


async def alternate(address: str, run: Path, viewers: int, rounds: int) -> list[float]:
    while steps_done(run) < 1_500:
        await asyncio.sleep(0.2)
    id = get(address, "api/runs")["runs"][0]["id"]
    speeds = []
    for _ in range(rounds):
        speeds.append(await speed(run))
        async with crowd(address, id, viewers):
            speeds.append(await speed(run))
    return speeds


async def speed(run: Path) -> float:
    await asyncio.sleep(1)
    began, before = time.perf_counter(), steps_done(run)
    await asyncio.sleep(8)
    return (steps_done(run) - before) / (time.perf_counter() - began)


def steps_done(run: Path) -> int:
    """The last whole row's step; rows are written every 50 steps."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = (run / "metrics.jsonl").read_bytes()[-4_000:].split(b"\n")
        return max(json.loads(line)["step"] for line in lines[1:-1])
    return 0


@contextlib.asynccontextmanager
async def crowd(address: str, id: str, viewers: int) -> AsyncIterator[None]:
    """Two thirds read what they are sent, a sixth reads nothing, a sixth went away without a word."""
    kinds = ["dead" if number % 6 == 0 else "slow" if number % 6 == 1 else "live" for number in range(viewers)]
    tasks = [asyncio.create_task(view(address, id, kind)) for kind in kinds]
    await asyncio.sleep(1)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def view(address: str, id: str, kind: str) -> None:
    """As little work as can be: what the viewers themselves do is done on their own machines."""
    host = address.split("/")[2]
    reader, writer = await asyncio.open_connection(*host.split(":"))
    try:
        writer.write(f"GET /events?id={id} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        while await reader.read(2**16):
            if kind == "dead":
                return
            if kind == "slow":
                await asyncio.sleep(3_600)
    finally:
        writer.close()


if __name__ == "__main__":
    os.environ.setdefault("MUJOCO_GL", "egl")
    sys.exit(main())
