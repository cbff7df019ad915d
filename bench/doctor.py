"""Tries the diagnosis on whole runs: `python -m bench.doctor healthy` and `python -m bench.doctor broken`.

`healthy` trains known tasks and looks at every tenth of each run: nothing but a plateau or a coarse evaluation should
be found; it writes `docs/results/healthy_runs.json`. `broken` trains small broken environments and learners, and writes
what is found to `docs/results/findings.json` and a picture of each to `docs/pictures`. `python docs/does_not_learn.py`
makes the document from both. Runs that the folder already has are resumed, so all of it can be stopped at any time.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import td3
from bench.broken_runs import BROKEN, HEALTHY_TWIN, Case, trained_broken
from td3.diagnosis import Evidence, findings
from td3.diagnosis.reading import read_evidence
from td3.storage import read_metrics

ROOT = Path(__file__).parents[1]
MILD = {"coarse_evaluation", "plateau"}
SHORT_WARMUP = {"warmup_steps": 10_000}
SEEDS = (0, 1)


def healthy_cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields a name and the settings of every healthy run."""
    for seed in range(5):
        yield f"pendulum-author-{seed}", {"env": "Pendulum-v1", "steps": 12_000, "seed": seed}
    for seed in SEEDS:
        yield f"pendulum-paper-{seed}", {"env": "Pendulum-v1", "preset": "paper", "steps": 12_000, "seed": seed}
        pixels = {"env": "Pendulum-v1", "preset": "pixels", "pixels": 32, "steps": 8_000, "seed": seed}
        yield f"pendulum-pixels-{seed}", pixels
        for preset, extra in (("author", SHORT_WARMUP), ("paper", {})):
            of = {"preset": preset, "seed": seed, **extra}
            inverted = {"env": "InvertedPendulum-v5", "steps": 20_000, "eval_every": 2_000}
            yield f"inverted-{preset}-{seed}", {"preset": preset, "seed": seed, **inverted}
            yield f"hopper-{preset}-{seed}", {**of, "env": "Hopper-v5", "steps": 60_000}
            yield f"cheetah-{preset}-{seed}", {**of, "env": "HalfCheetah-v5", "steps": 60_000}
            yield f"swimmer-{preset}-{seed}", {**of, "env": "Swimmer-v5", "steps": 50_000}
    for env in ("Walker2d", "Ant", "Humanoid", "Reacher", "InvertedDoublePendulum"):
        yield f"{env.lower()}-author-0", {"env": f"{env}-v5", "steps": 40_000, **SHORT_WARMUP}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("healthy", "broken"))
    parser.add_argument("--runs", type=Path, default=Path("runs/doctor"))
    parser.add_argument("--only", default="", help="cases that have this in their name")
    chosen = parser.parse_args()
    {"healthy": try_healthy, "broken": try_broken}[chosen.what](chosen.runs, chosen.only)


def try_healthy(runs: Path, only: str) -> None:
    results = ROOT / "docs" / "results" / "healthy_runs.json"
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    for name, settings in healthy_cases():
        if only not in name:
            continue
        train(runs / name, td3.Config(film=False, threads=1, **settings))
        seen = at_every_tenth(runs / name)
        means = [one.mean for one in read_evidence(runs / name).evaluations]
        known[name] = {**settings, "first": means[0], "best": max(means), "last": means[-1], "findings": seen}
        print(f"{name}: {'' if seen.keys() <= MILD else 'ALARM '}{seen or 'nothing'}", flush=True)
    results.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def train(folder: Path, config: td3.Config) -> None:
    for _ in td3.resume(folder) if folder.exists() else td3.train(config, folder):  # a finished one ends at once
        pass


def at_every_tenth(run: Path) -> dict[str, list[int]]:
    """Returns which findings stood out at which tenths of a run."""
    config = read_evidence(run).config
    rows = list(read_metrics(run / "metrics.jsonl"))
    seen: dict[str, list[int]] = {}
    for tenth in range(1, 11):
        for name in names_in((row for row in rows if row["step"] <= tenth * config.steps / 10), config):
            seen.setdefault(name, []).append(tenth)
    return seen


def names_in(rows: Iterable[dict[str, Any]], config: td3.Config) -> list[str]:
    evidence = Evidence(config)
    for row in rows:
        evidence.add(row)
    return [finding.name for finding in findings(evidence, 99)]


def try_broken(runs: Path, only: str) -> None:
    results = ROOT / "docs" / "results" / "findings.json"
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    healthy = trained_broken(runs, HEALTHY_TWIN)
    for case in BROKEN:
        if only not in case.name:
            continue
        run = trained_broken(runs, case)
        found = td3.diagnose(run)
        print(f"{case.name}: {[finding.name for finding in found]}", flush=True)
        names = [finding.name for finding in found]
        assert case.finding in names[case.place :][:1], f"{case.finding} should be number {case.place} in {run}"
        known[case.finding] = {**found[case.place]._asdict(), "case": case.what, "picture": case.chart}
        draw(run, healthy, case)
    results.write_text(json.dumps(dict(sorted(known.items())), indent=2, ensure_ascii=False) + "\n")


def draw(run: Path, healthy: Path, case: Case) -> None:
    """Plots one metric of a broken run beside that of its healthy twin."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 1.9), dpi=110, layout="constrained")
    for folder, colour, label in ((healthy, "#94a3b8", "healthy"), (run, "#c2410c", case.what)):
        rows = [row for row in read_metrics(folder / "metrics.jsonl") if case.chart in row]
        steps, values = [row["step"] for row in rows], [row[case.chart] for row in rows]
        axes.plot(steps, values, color=colour, label=label, linewidth=1.6)
    if case.log:
        axes.set_yscale("log")
    axes.set_xlabel("steps", fontsize=8)
    axes.set_title(case.chart, fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(ROOT / "docs" / "pictures" / f"finding-{case.finding.replace('_', '-')}.png")
    plt.close(figure)


if __name__ == "__main__":
    main()
