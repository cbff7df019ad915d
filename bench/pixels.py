"""Learns two tasks from their drawings alone and draws the curves: `python -m bench.pixels --help`.

    python -m bench.pixels --picture docs/pictures/pixels.png

Each run is a `td3 train TASK --preset pixels` in a process of its own, whose time and memory are reported. Runs that
the folder has already are not made again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.curves import curve, finish
from bench.learning import EPISODES, td3
from td3.config import Config
from td3.environments import Wrappers, make_envs
from td3.results.pictures import COLOURS

GOALS = {"Pendulum-v1": -220.0, "InvertedPendulum-v5": 950.0}  # of the mean return


class Cost(NamedTuple):
    seconds: float
    megabytes: float  # at most, of the whole process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", default=",".join(GOALS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("runs/pixels"))
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    tasks = chosen.tasks.split(",")
    failed = 0
    for task in tasks:
        config = Config(env=task, preset="pixels")
        print(f"\n{task} from {config.pixels}×{config.pixels} pixels, {config.steps:,} steps of {config.action_repeat}")
        print("seed   first at goal   last evaluation     final mean   seconds   MB at most")
        for seed in range(chosen.seeds):
            folder = chosen.runs / f"{task}-{seed}"
            cost = trained(task, seed, folder)
            steps, means, _ = curve(folder)
            final = json.loads(td3("evaluate", str(folder), "--episodes", str(EPISODES), "--json"))["mean"]
            reached = steps[means >= GOALS[task]]
            first = f"{reached[0]:,}" if len(reached) else "–"
            reported = f"{cost.seconds:7.0f}   {cost.megabytes:10.0f}"
            print(f"{seed:4d}   {first:>13}   {means[-1]:15.1f}   {final:11.1f}   {reported}", flush=True)
            failed += final < GOALS[task]
    if chosen.picture:
        draw(tasks, chosen)
    return 1 if failed else 0


def trained(task: str, seed: int, folder: Path) -> Cost:
    """Trains unless it is done; what it cost is kept beside the run."""
    note = folder.with_suffix(".cost.json")
    if not note.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        words = (
            f"train {task} --preset pixels --seed {seed} --threads 1 --eval-episodes {EPISODES} --quiet --run {folder}"
        )
        began = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-m", "td3", *words.split()])
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(words)} failed")
        note.write_text(json.dumps({"seconds": time.perf_counter() - began, "megabytes": usage.ru_maxrss / 1000}))
    return Cost(**json.loads(note.read_text()))


def draw(tasks: list[str], chosen: argparse.Namespace) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, len(tasks), figsize=(5 * len(tasks), 6), dpi=150, height_ratios=(3, 1))
    for task, axes, strip in zip(tasks, np.atleast_1d(above), np.atleast_1d(below), strict=True):
        config = Config(env=task, preset="pixels")
        for seed, colour in zip(range(chosen.seeds), COLOURS, strict=False):
            steps, means, spreads = curve(chosen.runs / f"{task}-{seed}")
            axes.plot(steps, means, color=colour, linewidth=2, label=f"seed {seed}")
            axes.fill_between(steps, means - spreads, means + spreads, color=colour, alpha=0.12, linewidth=0)
        axes.axhline(GOALS[task], color="#64748b", linewidth=1, linestyle=":")
        finish(figure, axes, f"{task} from {config.pixels}×{config.pixels} pixels", config.steps)
        repeated = f", {config.action_repeat} steps of the simulator each" if config.action_repeat > 1 else ""
        axes.set(xlabel=f"decisions{repeated}", ylabel=f"return, mean of {EPISODES} episodes")
        strip.imshow(frames(config), cmap="gray", vmin=0, vmax=255)
        strip.set_title("three frames: all that the agent sees", fontsize=9)
        strip.axis("off")
    figure.tight_layout()
    figure.savefig(chosen.picture)


def frames(config: Config) -> Any:
    """A stack as the agent sees it, its frames side by side."""
    envs = make_envs(config.env, wrappers=Wrappers.of(config), env_args=config.env_args)
    envs.reset([1])
    for _ in range(4):
        seen = envs.step(np.full((1, envs.action.size), 0.6, np.float32)).next_observation
    envs.close()
    layout = envs.observation.layout
    stacked = layout.frames(seen)[0].reshape(layout.stack, config.pixels, config.pixels)
    return np.hstack([np.pad(frame, 1, constant_values=128) for frame in stacked])


if __name__ == "__main__":
    sys.exit(main())
