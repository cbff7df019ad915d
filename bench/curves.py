"""Draws learning curves of runs beside published ones: `python -m bench.curves --help`.

    python -m bench.curves docs/pictures/halfcheetah.png RUN=label … --band curves.npz:HalfCheetah=label

A band is an array of seeds × evaluations, one every 5,000 steps from 0, and is drawn as mean ± one standard
deviation; a line is a JSON list of objects with `env`, `seed`, `every` and `evals`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from td3.storage import read_metrics

OURS = ("#1d4ed8", "#c2410c", "#15803d", "#7e22ce")


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("picture", type=Path)
    parser.add_argument("runs", nargs="+", metavar="RUN=LABEL")
    parser.add_argument("--band", metavar="FILE.npz:TASK=LABEL")
    parser.add_argument("--lines", metavar="FILE.json=LABEL")
    parser.add_argument("--title", default="")
    parser.add_argument("--upto", type=int, default=100_000)
    chosen = parser.parse_args()

    figure, axes = plt.subplots(figsize=(8, 4.6), dpi=150)
    if chosen.band:
        draw_band(axes, chosen.band, chosen.upto)
    if chosen.lines:
        draw_lines(axes, chosen.lines, chosen.upto)
    for colour, named in zip(OURS, chosen.runs, strict=False):
        folder, _, label = named.partition("=")
        steps, means, spreads = curve(Path(folder))
        axes.plot(steps, means, color=colour, linewidth=2.2, label=label)
        axes.fill_between(steps, means - spreads, means + spreads, color=colour, alpha=0.12, linewidth=0)
    finish(figure, axes, chosen.title, chosen.upto)
    figure.savefig(chosen.picture)


def finish(figure: Any, axes: Any, title: str, upto: int) -> None:
    """What all pictures of learning curves share."""
    axes.set(xlabel="environment steps", ylabel="return, mean of 10 episodes without noise", title=title)
    axes.set_xlim(0, upto)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()


def curve(folder: Path) -> tuple[Any, Any, Any]:
    rows = [row for row in read_metrics(folder / "metrics.jsonl") if "eval/mean_return" in row]
    names = ("step", "eval/mean_return", "eval/std_return")
    steps, means, spreads = (np.array([row[name] for row in rows]) for name in names)
    return steps, means, spreads


def draw_band(axes: Any, words: str, upto: int) -> None:
    where, _, label = words.partition("=")
    file, _, task = where.rpartition(":")
    seeds = np.load(file, allow_pickle=False)[task][:, : upto // 5_000 + 1]
    steps, mean, spread = 5_000 * np.arange(seeds.shape[1]), seeds.mean(0), seeds.std(0)
    axes.fill_between(steps, mean - spread, mean + spread, color="#64748b", alpha=0.25, linewidth=0)
    axes.plot(steps, mean, color="#64748b", linewidth=1.5, label=label)


def draw_lines(axes: Any, words: str, upto: int) -> None:
    file, _, label = words.partition("=")
    for one in json.loads(Path(file).read_text()):
        steps = one["every"] * np.arange(len(one["evals"]))
        within = steps <= upto
        axes.plot(
            steps[within], np.array(one["evals"])[within], color="#0f172a", linewidth=1, linestyle=":", label=label
        )
        label = None


if __name__ == "__main__":
    main()
