"""Which runs and which of their evaluations are compared, and why others are not."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from td3.errors import ConfigError
from td3.results.records import Run
from td3.results.tasks import Group, Score, Task
from td3.wording import counted


def usable(run: Run, last: int, left_out: dict[str, str]) -> bool:
    """Says whether a run has enough evaluations; if not, takes down the reason."""
    if not len(run.steps):
        failed = f"failed at step {run.reached:,}: {run.failed.rstrip('.')}" if run.failed else ""
        left_out[run.name] = failed or f"has no evaluation yet, at step {run.reached:,}"
    elif len(run.steps) < last:
        left_out[run.name] = f"has {counted(len(run.steps), 'evaluation')}, fewer than {last}"
    return run.name not in left_out


def without_copies(pairs: Sequence[tuple[str, Run]], left_out: dict[str, str]) -> list[tuple[str, Run]]:
    """Leaves out what is no seed of its own: of runs with one environment, setting and seed the longest counts."""
    best: dict[Any, Run] = {}
    for label, run in pairs:
        key = (run.env, label, run.name if run.seed is None else run.seed)
        if key not in best or run.reached > best[key].reached:
            best[key] = run
    names = {run.name for run in best.values()}
    for label, run in pairs:
        if run.name not in names:
            left_out[run.name] = f"has seed {run.seed} of {label}, as {best[run.env, label, run.seed].name} has"
    return [(label, run) for label, run in pairs if run.name in names]


def of_env(pairs: Sequence[tuple[str, Run]], env: str) -> list[tuple[str, Run]]:
    """Returns the runs of one environment."""
    return [(label, run) for label, run in pairs if run.env == env]


def task_at_step(
    env: str,
    pairs: Sequence[tuple[str, Run]],
    at: int | None,
    last: int,
    left_out: dict[str, str],
    notes: list[str],
) -> Task:
    """Compares the runs of one environment at one step: the one asked for, or the last that all of them evaluated."""
    step = at or int(min(run.steps[-1] for _, run in pairs))
    longest = int(max(run.steps[-1] for _, run in pairs))
    if at is None and step < longest:
        slowest = [run.name for _, run in pairs if run.steps[-1] == step]
        others = f" and {len(slowest) - 1} more" if len(slowest) > 1 else ""
        short = sum(run.reached < longest for _, run in pairs)
        notes.append(
            f"{env} is compared at step {step:,}, the last that every run evaluated: {slowest[0]}{others} got no "
            f"further, others to {longest:,}. --at {longest} leaves out {counted(short, 'run')}."
        )
    numbers = {}
    for _, run in pairs:
        if run.reached < step:
            failed = f", where it failed: {run.failed.rstrip('.')}" if run.failed else ""
            left_out[run.name] = f"is at step {run.reached:,}, before {step:,}{failed}"
        elif (number := run.evaluations_until(step)) < last:
            left_out[run.name] = f"has {counted(number, 'evaluation')} up to step {step:,}"
        else:
            numbers[run.name] = number
    groups = grouped(pairs, numbers, last, left_out)
    used = used_steps(groups)
    if len(used) > 1:
        notes.append(f"{env}: the evaluations that count are at steps {used[0]:,} to {used[-1]:,}.")
    return Task(env, step, groups, None, [])


def task_at_time(
    env: str, pairs: Sequence[tuple[str, Run]], seconds: float, last: int, left_out: dict[str, str], notes: list[str]
) -> Task:
    """Compares the runs of one environment after the same training time, at whatever step each was then."""
    numbers = {}
    for _, run in pairs:
        if not np.isfinite(run.seconds).all():
            left_out[run.name] = "has no times in its record"
        elif run.seconds[-1] < seconds:
            left_out[run.name] = (
                f"was last evaluated after {run.seconds[-1]:,.4g} s of training, before {seconds:,.4g} s"
            )
        elif (number := run.evaluations_within(seconds)) < last:
            left_out[run.name] = f"has {counted(number, 'evaluation')} in {seconds:,.4g} s of training"
        else:
            numbers[run.name] = number
    groups = grouped(pairs, numbers, last, left_out)
    for label, group in groups.items():
        used = used_steps({label: group})
        steps = f"step {used[0]:,}" if len(used) == 1 else f"steps {used[0]:,} to {used[-1]:,}"
        notes.append(f"{env}: {label} was at {steps} then.")
    return Task(env, min(used_steps(groups), default=0), groups, None, [], seconds)


def grouped(
    pairs: Sequence[tuple[str, Run]], numbers: dict[str, int], last: int, left_out: dict[str, str]
) -> dict[str, Group]:
    """Returns the groups of an environment: of each run the evaluation with the number by its name."""
    groups: dict[str, list[Score]] = {}
    for label, run in pairs:
        if run.name not in numbers:
            continue
        score = Score(run, *run.score(numbers[run.name], last))
        if math.isfinite(score.value):
            groups.setdefault(label, []).append(score)
        else:
            left_out[run.name] = f"has an evaluation that is no number, up to step {score.step:,}"
    return {label: Group(label, scores) for label, scores in groups.items()}


def used_steps(groups: dict[str, Group]) -> list[int]:
    """Returns the steps of the evaluations that count, each once."""
    return sorted({score.step for group in groups.values() for score in group.scores})


def nothing_left(left_out: dict[str, str], at: str | None) -> ConfigError:
    """Makes the error that refuses a comparison without runs, with the first reason."""
    name, reason = next(iter(left_out.items()))
    more = f" ({counted(len(left_out), 'run')} in all)" if len(left_out) > 1 else ""
    step = "" if at is None else f"--at {at} leaves nothing to compare: "
    return ConfigError(f"{step or 'There is nothing to compare: '}{name} {reason}{more}.")
