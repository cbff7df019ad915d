"""Compares how both engines learn: trains each with several seeds and plots the curves: `python -m bench.engines`.

Runs that the folder already has are resumed, so the campaign can be stopped at any time.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import td3
from bench.curves import curve, finish
from td3.results.pictures import plot_seeds

COLOURS = {"native": "#1d4ed8", "torch": "#c2410c"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("env", nargs="?", default="HalfCheetah-v5")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("runs/engines"))
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    curves = {
        engine: [trained(chosen.runs / f"{engine}-{seed}", chosen, engine, seed) for seed in range(chosen.seeds)]
        for engine in COLOURS
    }
    steps = next(iter(curves.values()))[0][0]
    for place in range(len(steps) // 4 - 1, len(steps), max(1, len(steps) // 4)):
        columns = (
            f"{engine} {' '.join(f'{means[place]:7.0f}' for _, means in seeds)}  (mean {mean_of(seeds)[place]:.0f})"
            for engine, seeds in curves.items()
        )
        print(f"step {steps[place]:>7,}: {'; '.join(columns)}")
    if chosen.picture:
        plot(curves, chosen)


def trained(folder: Path, chosen: argparse.Namespace, engine: str, seed: int) -> tuple[Any, Any]:
    config = td3.Config(env=chosen.env, steps=chosen.steps, seed=seed, engine=engine)
    for event in td3.resume(folder) if folder.exists() else td3.train(config, folder):  # a finished one ends at once
        if isinstance(event, td3.Evaluated):
            print(f"{folder.name}: step {event.step:,}, return {event.evaluation.mean:.0f}", flush=True)
    steps, means, _ = curve(folder)
    return steps, means


def mean_of(seeds: list[tuple[Any, Any]]) -> Any:
    return np.mean([means for _, means in seeds], axis=0)


def plot(curves: dict[str, list[tuple[Any, Any]]], chosen: argparse.Namespace) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.6), dpi=150)
    for engine, seeds in curves.items():
        plot_seeds(axes, seeds[0][0], [means for _, means in seeds], COLOURS[engine], engine)
    finish(figure, axes, f"{chosen.env}: both engines, {chosen.seeds} seeds each", chosen.steps)
    figure.savefig(chosen.picture)


if __name__ == "__main__":
    main()
