"""Writes `docs/results.md` and its pictures from the files below `results/v5`: `python docs/results.py`."""

from pathlib import Path

from td3.results import Comparison, compare
from td3.results.published import figures_for
from td3.studies import read_spec

ROOT = Path(__file__).parents[1]
DATA, PICTURES = ROOT / "results/v5", ROOT / "docs/pictures"
STEPS = (300_000, 1_000_000)

HEAD = """# Results

TD3 on the MuJoCo tasks of Gymnasium, version v5: every run with all its evaluations is one small file below
[`results/v5`](../results/v5), and this page is made from them by `python docs/results.py`. The study itself is
[`study.toml`](../results/v5/study.toml); this begins it, or continues it on any machine:

```console
$ td3 study results/v5/study.toml --study studies/v5
$ td3 compare studies/v5 --save results/v5 && python docs/results.py
```

A score is the mean return of ten episodes without noise at that step: the last evaluation, not the best on the way.
Beside the mean over seeds stands their standard deviation, and the interquartile mean (IQM) with its 95 % bootstrap
interval where there are at least three seeds. `td3 compare results/v5` compares the same files, with more statistics.
"""

PUBLISHED = """
**Published** figures are of other versions of the tasks: in v5 Walker2d has another friction at one foot; Ant,
Hopper, Humanoid and Walker2d are rewarded only while they are healthy; Ant and Humanoid have other observations.
Their sources are in [`td3/results/published.py`](../td3/results/published.py).

**Time** is what training took without evaluations, on one thread of a shared machine, beside other work at the lowest
priority: a machine of its own is much faster ([speed](speed.md)).
"""


def page() -> str:
    """Return the document."""
    parts = [HEAD]
    for step in STEPS:
        if rows := rows_at(step):
            head = "| task | setting | seeds | mean ± std | IQM | 95 % | published | time |\n" + "| --- " * 8 + "|\n"
            parts.append(f"\n## At {step:,} steps\n\n{head}{''.join(rows)}")
    parts += [PUBLISHED, "\n![Learning curves of every seed, and their mean](pictures/results-v5.png)\n", missing()]
    return "".join(parts)


def comparison(step: int) -> Comparison | None:
    """Return the comparison of all runs that got so far."""
    if not any(DATA.glob("*/*/seed-*.json")):
        return None
    from td3.errors import ConfigError

    try:
        return compare(DATA, at=step)
    except ConfigError:  # none got so far
        return None


def rows_at(step: int) -> list[str]:
    """Return a row for each task and setting."""
    found = comparison(step)
    rows = []
    for task in found.tasks if found else ():
        for one in task.summaries:
            digits = 0 if abs(one.mean) >= 1_000 else 1
            spread = f" ± {one.std:,.{digits}f}" if one.seeds > 1 else ""
            low, high = one.iqm_interval or (None, None)
            between = "–" if low is None else f"{low:,.{digits}f} to {high:,.{digits}f}"
            numbers = f"{one.mean:,.{digits}f}{spread} | {one.iqm:,.{digits}f} | {between}"
            hours = f"{one.seconds / 3600:.1f} h"
            rows.append(
                f"| {task.env} | `{one.setting}` | {one.seeds} | {numbers} | {published(task.env, step)} | {hours} |\n"
            )
    return rows


def published(env: str, step: int) -> str:
    """Return the published figures at that step."""
    figures = [figure for figure in figures_for(env, step) if figure.step == step]
    texts = [
        f"{one.mean:,.0f}{'' if one.std is None else f' ± {one.std:,.0f}'} ({one.source.label}, {one.source.version})"
        for one in figures
    ]
    return "; ".join(texts) or "–"


def missing() -> str:
    """Return what of the study is not there yet."""
    absent: dict[str, list[int]] = {}
    for run in read_spec(DATA / "study.toml").runs():
        env, setting, seed = run.name.split("/")
        if not (DATA / env / setting / f"{seed}.json").is_file():
            absent.setdefault(f"{env}, `{setting}`", []).append(run.config.seed)
    if not absent:
        return "\nThe study is complete.\n"
    lines = [f"- {name}: seed {', '.join(map(str, seeds))}\n" for name, seeds in absent.items()]
    return "\n## Not there yet\n\nThe commands above complete it.\n\n" + "".join(lines)


if __name__ == "__main__":
    (ROOT / "docs/results.md").write_text(page())
    if any(DATA.glob("*/*/seed-*.json")):
        compare(DATA).plot(PICTURES / "results-v5.png")
