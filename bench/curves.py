"""Plots learning curves, thin seeds and a thick mean: `python -m bench.curves --help`.

    python -m bench.curves docs/pictures/halfcheetah.png docs/results/halfcheetah.json

plots the evaluations in a file of results, one chart for each preset. With `--runs RUN …` the file is first written
from these run folders; those of HalfCheetah were made with

    td3 train HalfCheetah-v5 --steps 100000 --engine native --threads 1 --preset PRESET --seed SEED

Published curves are not part of this repository. `--published PRESET=FILE` adds them to a chart: an `.npz` file with an
array of seeds × evaluations every 5,000 steps (`FILE.npz:NAME`), or a JSON list of objects with `every` and `evals`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from td3.results.pictures import COLOURS, PUBLISHED, plot_seeds, set_up
from td3.storage import read_metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("picture", type=Path)
    parser.add_argument("results", type=Path, help="JSON file with the evaluations")
    parser.add_argument("--runs", type=Path, nargs="+", metavar="RUN", help="write the file from these runs first")
    parser.add_argument("--published", nargs="+", default=[], metavar="PRESET=FILE=LABEL")
    chosen = parser.parse_args()
    if chosen.runs:
        chosen.results.write_text(lines_of(collected(chosen.runs)))
    plot(json.loads(chosen.results.read_text()), chosen.published, chosen.picture)


def collected(folders: list[Path]) -> dict[str, Any]:
    """Collect the evaluations of runs that differ only in preset and seed."""
    runs, shared = [], []
    for folder in folders:
        config, versions = (json.loads((folder / f"{name}.json").read_text()) for name in ("config", "versions"))
        steps, means, _ = curve(folder)
        runs.append({"preset": config["preset"], "seed": config["seed"], "returns": means.round(1).tolist()})
        about = {name: config[name] for name in ("env", "engine", "eval_episodes")}
        shared.append({**about, "versions": versions, "steps": steps.tolist()})
    if any(one != shared[0] for one in shared):
        raise SystemExit("The runs differ in more than preset and seed.")
    return {**shared[0], "runs": runs}


def lines_of(results: dict[str, Any]) -> str:
    """Write results as JSON with one line per field and per run."""
    fields = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in results.items() if name != "runs"]
    runs = ",\n    ".join(json.dumps(run) for run in results["runs"])
    return "{\n  " + ",\n  ".join(fields) + f',\n  "runs": [\n    {runs}\n  ]\n}}\n'


def final_scores(results: dict[str, Any], preset: str) -> list[float]:
    """Return the last evaluation of each seed."""
    return [run["returns"][-1] for run in results["runs"] if run["preset"] == preset]


def plot(results: dict[str, Any], published: list[str], picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    presets = list(dict.fromkeys(run["preset"] for run in results["runs"]))
    steps = results["steps"]
    figure, charts = plt.subplots(1, len(presets), figsize=(5.5 * len(presets), 4.6), dpi=150, sharey=True)
    for colour, preset, axes in zip(COLOURS, presets, np.atleast_1d(charts), strict=False):
        for words in published:
            whose, file, label = words.split("=")
            if whose == preset:
                plot_seeds(axes, *published_curves(file, steps[-1]), PUBLISHED, label)
        returns = [run["returns"] for run in results["runs"] if run["preset"] == preset]
        plot_seeds(axes, steps, returns, colour, f"td3, preset {preset}")
        finish(figure, axes, f"{results['env']}, preset {preset}", steps[-1], "upper left")
    for axes in np.atleast_1d(charts)[1:]:
        axes.set_ylabel("")
    figure.tight_layout()
    figure.savefig(picture)


def published_curves(file: str, upto: int) -> tuple[Any, Any]:
    """Return steps and seeds × returns of a file of published curves."""
    if file.endswith(".json"):
        runs = json.loads(Path(file).read_text())
        every, seeds = runs[0]["every"], np.array([run["evals"] for run in runs])
    else:
        path, _, name = file.rpartition(":")
        every, seeds = 5_000, np.load(path, allow_pickle=False)[name]
    many = upto // every + 1
    return every * np.arange(many), seeds[:, :many]


def finish(figure: Any, axes: Any, title: str, upto: int, legend: str = "best") -> None:
    """Set what all charts of learning curves share."""
    set_up(axes, title, upto, label="return, mean of 10 episodes without noise")
    axes.legend(frameon=False, fontsize=9, loc=legend)
    figure.tight_layout()


def curve(folder: Path) -> tuple[Any, Any, Any]:
    """Return the steps, means and standard deviations of a run's evaluations."""
    rows = [row for row in read_metrics(folder / "metrics.jsonl") if "eval/mean_return" in row]
    names = ("step", "eval/mean_return", "eval/std_return")
    steps, means, spreads = (np.array([row[name] for row in rows]) for name in names)
    return steps, means, spreads


if __name__ == "__main__":
    main()
