"""A comparison as plain data: what `--json` prints."""

import math
from dataclasses import asdict
from typing import Any

from td3.results.curves import STEPS, TIME, curve_of
from td3.results.tasks import Compared, Summary, Task


def data_of(compared: Compared) -> dict[str, Any]:
    """Returns a comparison as plain data; numbers that are not known are None."""
    from td3.results.verdicts import method, verdicts

    data: dict[str, Any] = finite(
        {
            "baseline": compared.baseline,
            "settings": compared.settings,
            "last": compared.last,
            "normalized": compared.normalized,
            "environments": [task_data(task) for task in compared.tasks],
            "overall": [summary_data(one) for one in compared.overall],
            "verdicts": verdicts(compared),
            "method": method(compared),
            "left_out": [{"run": name, "reason": reason} for name, reason in compared.left_out.items()],
            "notes": compared.notes,
        }
    )
    return data


def task_data(task: Task) -> dict[str, Any]:
    """Returns one environment."""
    return {
        "env": task.env,
        "step": task.step if task.seconds is None else None,
        "seconds": task.seconds,
        "scale": task.scale._asdict() if task.scale else None,
        "settings": [{**summary_data(one), **runs_data(task, one.setting)} for one in task.summaries],
        "published": [{**figure._asdict(), "source": figure.source._asdict()} for figure in task.published],
    }


def runs_data(task: Task, setting: str) -> dict[str, Any]:
    """Returns the runs of a setting and its learning curves."""
    curves = {against: curve_of([task], setting, against) for against in (STEPS, TIME)}
    return {
        "runs": [
            {
                "run": score.run.name,
                "seed": score.run.seed,
                "step": score.step,
                "return": score.value,
                "score": task.scaled(score.value),
                "seconds": score.seconds,
            }
            for score in task.groups[setting].scores
        ],
        "curves": {name: curve and curve._asdict() for name, curve in curves.items()},
    }


def summary_data(one: Summary) -> dict[str, Any]:
    """Returns the statistics of one setting."""
    return asdict(one)


def finite(value: Any) -> Any:
    """Turns arrays and tuples into lists, and what is no finite number into None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {name: finite(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
