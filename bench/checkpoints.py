"""What a checkpoint costs with a full memory: bytes written and seconds of pause, `python -m bench.checkpoints`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import td3
from td3.machine import human
from td3.session import Session
from td3.types import Transitions


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=5_000)
    parser.add_argument("--times", type=int, default=5)
    chosen = parser.parse_args()
    config = td3.Config(env=chosen.env, steps=2 * chosen.rows, buffer_size=chosen.rows, eval_every=0)
    with tempfile.TemporaryDirectory() as place:
        session = Session(config, Path(place) / "run")
        rng = np.random.default_rng(0)
        add_rows(session, rng, chosen.rows)
        session.learner.learn(rng, rng)
        session.learner.learn(rng, rng)  # both optimisers have something to remember
        print(f"{chosen.env}: the whole memory of {chosen.rows:,} rows at once: {cost(session, Path(place))}")
        for _ in range(chosen.times):
            add_rows(session, rng, chosen.every)
            print(f"{chosen.every:,} new rows with a full memory: {cost(session, Path(place))}")
        session.close()
    return 0


def add_rows(session: Session, rng: np.random.Generator, count: int) -> None:
    memory = session.learner.memory
    wide = session.learner.layout.size, session.learner.action_size
    floats = [rng.standard_normal((count, size), np.float32) for size in (wide[0], wide[1], wide[0])]
    reward, ends = rng.standard_normal(count, np.float32), np.zeros(count, np.bool_)
    memory.add(Transitions.in_a_row(floats[0], floats[1], reward, floats[2], ends))
    session.collector.steps += count


def cost(session: Session, place: Path) -> str:
    before = sizes(place)
    began = time.perf_counter()
    session.save()
    paused = time.perf_counter() - began
    written = sum(size for path, size in sizes(place).items() if path not in before)
    return f"{human(written)} written, {1_000 * paused:.0f} ms"


def sizes(place: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in place.rglob("*") if path.is_file()}


if __name__ == "__main__":
    sys.exit(main())
