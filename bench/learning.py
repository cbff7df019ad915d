"""Trains a task with several seeds and prints the score of each: `python -m bench.learning --help`.

The claims of the README are made with it:

    python -m bench.learning Pendulum-v1 --seeds 5 --steps 15000 --at-least -200
    python -m bench.learning InvertedPendulum-v5 --steps 50000 --at-least 1000
    python -m bench.learning HalfCheetah-v5 --steps 100000 --preset paper
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from td3.storage import read_metrics

EPISODES = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("env")
    parser.add_argument("--seeds", type=int, default=1, help="how many: 0, 1, …")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--preset", default="author")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"))
    parser.add_argument("--jobs", type=int, default=2, help="runs at once, one thread each")
    parser.add_argument("--at-least", type=float, help="fail if a seed's best score, evaluated anew, is below this")
    chosen = parser.parse_args()

    folders = [chosen.out / f"{chosen.env}-{chosen.preset}-seed{seed}" for seed in range(chosen.seeds)]
    with ThreadPoolExecutor(chosen.jobs) as pool:
        scores = list(pool.map(lambda seed: score(chosen, seed, folders[seed]), range(chosen.seeds)))
    print(f"\n{chosen.env}, preset {chosen.preset}, {chosen.steps:,} steps; {EPISODES} fresh episodes without noise")
    print("seed   first at goal   last evaluation   last, evaluated anew   best, evaluated anew")
    failed = 0
    for seed, (curve, last, best) in enumerate(scores):
        reached = [step for step, value in curve if chosen.at_least is not None and value >= chosen.at_least]
        first = f"{reached[0]:,}" if reached else "–"
        print(f"{seed:4d}   {first:>13}   {curve[-1][1]:15.1f}   {last:17.1f}   {best:17.1f}")
        failed += chosen.at_least is not None and (best < chosen.at_least or not reached)
    if chosen.at_least is not None:
        print(f"{chosen.seeds - failed} of {chosen.seeds} seeds reach {chosen.at_least:g}")
    return 1 if failed else 0


def score(chosen: argparse.Namespace, seed: int, folder: Path) -> tuple[list[tuple[int, float]], float, float]:
    """Return the evaluations during training, and new evaluations of the last and the best checkpoint."""
    if not folder.exists():  # a finished run is not repeated
        flags = f"--seed {seed} --steps {chosen.steps} --preset {chosen.preset} --threads 1 --eval-episodes {EPISODES}"
        td3("train", chosen.env, *flags.split(), "--run", str(folder))
    curve = [
        (row["step"], row["eval/mean_return"])
        for row in read_metrics(folder / "metrics.jsonl")
        if "eval/mean_return" in row
    ]
    last, best = (
        json.loads(td3("evaluate", str(folder), "--checkpoint", which, "--episodes", str(EPISODES), "--json"))["mean"]
        for which in ("last", "best")
    )
    return curve, last, best


def td3(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", "td3", *words], stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
