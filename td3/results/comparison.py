"""Compares settings over seeds: reads runs, groups them, and computes the statistics of each group."""

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from td3.config.values import whole_number_in
from td3.errors import ConfigError
from td3.results.grouping import labelled
from td3.results.published import Figure, figures_for
from td3.results.reading import read_runs
from td3.results.records import Run
from td3.results.scales import BASELINE, PUBLISHED, Scale, baseline_scale, published_scale, scales_in
from td3.results.selection import nothing_left, of_env, task_at_step, task_at_time, usable, without_copies
from td3.results.statistics import RESAMPLES
from td3.results.summaries import Bootstrap, compared, summaries_of_all, summary, versus_by_pair
from td3.results.tasks import Compared, Task
from td3.wording import brief, did_you_mean

LONGEST = 1e9  # seconds of training, some thirty years

VERSIONS = ("td3", "gymnasium", "mujoco")  # that change results


class Comparison(Compared):
    """What `compare` found: data, tables and pictures."""

    def table(self, format: str = "text") -> str:
        """Writes the comparison as `text`, `markdown` or `csv`."""
        from td3.results.tables import written

        return written(self, format)

    def verdicts(self) -> list[str]:
        """Says in a sentence for each setting whether it can be distinguished from the baseline."""
        from td3.results.verdicts import verdicts

        return verdicts(self)

    def to_data(self) -> dict[str, Any]:
        """Returns all of it as plain data, with the learning curves."""
        from td3.results.plain import data_of

        return data_of(self)

    def to_json(self) -> str:
        """Returns all of it as a JSON document."""
        return json.dumps(self.to_data(), allow_nan=False)

    def save(self, folder: str | Path) -> list[Path]:
        """Writes each finished run as one small file below a folder; returns those that are new or changed.

        Such a folder can be compared like the runs themselves.
        """
        from td3.results.files import is_finished, save

        groups = [group for task in self.tasks for group in task.groups.values()]
        return save([(group.setting, run) for group in groups for run in group.runs if is_finished(run)], folder)

    def unfinished(self) -> int:
        """Returns how many of the runs are not finished."""
        from td3.results.files import is_finished

        groups = [group for task in self.tasks for group in task.groups.values()]
        return sum(not is_finished(run) for group in groups for run in group.runs)

    def plot(self, path: str | Path, against: str = "steps") -> None:
        """Plots the learning curves to a .svg, .png or .pdf file, against `steps` or `time`."""
        from td3.results.pictures import plot_curves

        plot_curves(self, path, against)

    def plot_profile(self, path: str | Path) -> None:
        """Plots the performance profiles to a .svg, .png or .pdf file: the share of runs above each score."""
        from td3.results.pictures import plot_profiles

        plot_profiles(self, path)


def compare(
    paths: str | Path | Iterable[str | Path],
    *,
    baseline: str | None = None,
    at: int | str | None = None,
    last: int = 1,
    normalize: str | Path | None = None,
    published: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compares the settings of runs, of folders with runs below them, and of studies.

    `at` is the step at which runs are compared, or the training time as `90s`, `10min` or `2h`; by default it is the
    last evaluation that every run of an environment has. `last` averages so many evaluations of each run. `normalize`
    is `published`, `baseline` or the path of a TOML file with low and high for each environment. The same runs give the
    same numbers: `seed` is that of the bootstrap.

    >>> print(results.compare("studies/networks").table())
    """
    if isinstance(last, bool) or not isinstance(last, int) or last < 1:
        raise ConfigError(f"--last must be a whole number, at least 1; got {brief(last)}.")
    step, seconds = place_of(at)
    runs, left_out = read_runs([paths] if isinstance(paths, str | Path) else paths)
    if not runs and not left_out:
        raise ConfigError("RUN must be at least one run, study or folder with runs below it; got none.")
    notes: list[str] = []
    enough = [run for run in runs if usable(run, last, left_out)]
    kept = without_copies(labelled(enough), left_out)
    chosen = {env: own for env in dict.fromkeys(run.env for _, run in kept) if (own := of_env(kept, env))}
    tasks = [
        task_at_time(env, own, seconds, last, left_out, notes)
        if seconds
        else task_at_step(env, own, step, last, left_out, notes)
        for env, own in chosen.items()
    ]
    tasks = [task for task in tasks if task.groups]
    if not tasks:
        raise nothing_left(left_out, None if at is None else str(at))
    settings = list(dict.fromkeys(label for label, _ in kept if any(label in task.groups for task in tasks)))
    if baseline is not None and baseline not in settings:
        known = ", ".join(settings)
        raise ConfigError(
            f"--baseline must be one of {known}; got {brief(baseline)}.{did_you_mean(baseline, settings)}"
        )
    baseline = settings[0] if baseline is None else baseline
    tasks = with_scales(tasks, normalize, baseline)
    if published:
        tasks = [replace(task, published=figures_of(task)) for task in tasks]
    bootstrap = Bootstrap(resamples, seed)
    pairs = [(task, setting) for task in tasks for setting in task.groups if compared(task, setting, baseline)]
    comparisons = max(1, len(pairs))
    against = versus_by_pair(pairs, baseline, comparisons, bootstrap)
    tasks = [
        replace(task, summaries=[summary(task, one, against, bootstrap) for one in settings if one in task.groups])
        for task in tasks
    ]
    overall = summaries_of_all(tasks, settings, baseline, bootstrap) if len(tasks) > 1 else []
    notes += notes_about([score.run for task in tasks for group in task.groups.values() for score in group.scores])
    how = None if normalize is None else str(normalize)
    return Comparison(tasks, settings, baseline, last, how, overall, left_out, notes, len(pairs))


def place_of(at: Any) -> tuple[int | None, float | None]:
    """Returns the step or the seconds of training at which runs are compared; neither if it is not given."""
    if at is None:
        return None, None
    if isinstance(at, str) and (found := re.fullmatch(r"([0-9.]+) ?(s|min|h)", at)):
        with contextlib.suppress(ValueError):
            seconds = float(found[1]) * {"s": 1, "min": 60, "h": 3_600}[found[2]]
            if 0 < seconds <= LONGEST:
                return None, seconds
    with contextlib.suppress(ValueError):
        step = whole_number_in(at) if isinstance(at, str) else at
        if isinstance(step, int) and not isinstance(step, bool) and step >= 1:
            return step, None
    raise ConfigError(f"--at must be a step, or a training time as 90s, 10min or 2h; got {brief(at)}.")


def with_scales(tasks: list[Task], normalize: str | Path | None, baseline: str) -> list[Task]:
    """Returns the tasks with the scale of each, if scores are to be normalised."""
    if normalize is None:
        return tasks
    if normalize == PUBLISHED:
        scales = {task.env: published_scale(task.env) for task in tasks}
    elif normalize == BASELINE:
        scales = {task.env: scale_by_baseline(task, baseline) for task in tasks}
    elif str(normalize).endswith(".toml"):
        scales = scales_in(normalize, [task.env for task in tasks])
    else:
        raise ConfigError(
            f"--normalize must be published, baseline or the path of a .toml file; got {brief(normalize)}."
        )
    return [replace(task, scale=scales[task.env]) for task in tasks]


def scale_by_baseline(task: Task, baseline: str) -> Scale:
    """Returns the scale of one environment by its baseline."""
    if baseline not in task.groups:
        raise ConfigError(f"--normalize baseline needs runs of {baseline} on {task.env}: there are none.")
    group = task.groups[baseline]
    firsts = np.array([run.returns[0] for run in group.runs])
    return baseline_scale(task.env, baseline, float(firsts.mean()), float(group.values.mean()))


def figures_of(task: Task) -> list[Figure]:
    """Returns published figures; none where an environment was made with arguments, for that is another task."""
    changed = any(run.config.get("env_args") for group in task.groups.values() for run in group.runs)
    return [] if changed else figures_for(task.env, task.step)


def notes_about(runs: Sequence[Run]) -> list[str]:
    """Says what makes runs less comparable than they look: versions, changed settings, runs that still train."""
    notes = []
    for package in VERSIONS:
        found = sorted({run.versions[package] for run in runs if package in run.versions})
        if len(found) > 1:
            notes.append(f"The runs were made with different versions of {package}: {', '.join(found[:5])}.")
    for run in runs:
        for step, names in run.changes.items():
            notes.append(f"{run.name} changed {', '.join(names)} at step {step:,}; it counts as it was begun.")
    running = [run.name for run in runs if run.running]
    if running:
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        notes.append(f"{running[0]}{more} still {'train' if more else 'trains'}: the figures will change.")
    return notes
