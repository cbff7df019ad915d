"""Groups runs by setting: in a study by the names of its folders, elsewhere by the settings in which runs differ."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from td3.config import GROUPS, SETTINGS, Config
from td3.config.files import read_toml
from td3.config.values import in_words
from td3.errors import ConfigError
from td3.results.files import ENDING
from td3.results.records import Run
from td3.storage.study import SPEC
from td3.wording import one_line

LONGEST_LABEL = 80
# These do not change what a run learns up to a step; env and seed are no setting to compare.
NOT_COMPARED = {
    "env", "seed", "steps", "threads", "worker_timeout",
    *GROUPS["Evaluation"], *GROUPS["Stopping early"], *GROUPS["Run folder"],
}  # fmt: skip


def labelled(runs: Sequence[Run]) -> list[tuple[str, Run]]:
    """Returns each run with the label of its setting; settings in the order of their studies, then as they come."""
    studies = {run.name: study_of(run) for run in runs}
    alone = [run for run in runs if studies[run.name] is None]
    labels = {run.name: run.path.parent.name for run in runs if studies[run.name] is not None}
    if clash([run for run in runs if run.name in labels], labels, studies):
        labels = {name: f"{place_of(studies[name], studies.values())}/{label}" for name, label in labels.items()}
    taken = set(labels.values())
    for run, label in zip(alone, labels_by_difference(alone), strict=True):
        labels[run.name] = f"{label} (not in a study)" if label in taken else label
    order = {name: place for place, name in enumerate(names_in_studies(studies.values()))}
    last = len(order)
    ranks = {name: order.get(label, last) if studies[name] else last for name, label in labels.items()}
    shown = shortened(labels.values())
    return [(shown[labels[run.name]], run) for run in sorted(runs, key=lambda run: ranks[run.name])]


def shortened(labels: Iterable[str]) -> dict[str, str]:
    """Returns each label as it is shown, on one line and not too long; different ones stay different."""
    shown: dict[str, str] = {}
    for label in dict.fromkeys(labels):
        short, number = one_line(label, LONGEST_LABEL), 1
        while short in shown.values():
            number += 1
            short = f"{one_line(label, LONGEST_LABEL - 4)} #{number}"
        shown[label] = short
    return shown


def study_of(run: Run) -> Path | None:
    """Returns the folder of the study in which a run is, STUDY/env/setting/seed-0; files of results have that shape."""
    folder = run.path.parent.parent.parent
    return folder if (folder / SPEC).is_file() or run.path.suffix == ENDING else None


def names_in_studies(studies: Iterable[Path | None]) -> list[str]:
    """Returns the names of the settings of all studies, in the order of their files."""
    names: dict[str, None] = {}
    for study in dict.fromkeys(filter(None, studies)):
        try:
            settings = read_toml(study / SPEC).get("settings")
        except ConfigError:  # the folders have the names, too
            settings = None
        names.update(dict.fromkeys(settings if isinstance(settings, dict) else ()))
    return list(names)


def clash(runs: Sequence[Run], labels: dict[str, str], studies: dict[str, Path | None]) -> bool:
    """Says whether two studies use one name for different settings."""
    by_name: dict[tuple[str, str], dict[Path | None, list[Run]]] = {}
    for run in runs:
        by_name.setdefault((run.env, labels[run.name]), {}).setdefault(studies[run.name], []).append(run)
    firsts = [[own[0] for own in by_study.values()] for by_study in by_name.values()]
    return any(names_that_differ(several) for several in firsts)


def place_of(study: Path | None, studies: Iterable[Path | None]) -> str:
    """Returns the name of a study's folder; its path where another study has the same name."""
    assert study is not None
    same = {one for one in studies if one is not None and one.name == study.name}
    return study.name if len(same) == 1 else str(study)


def labels_by_difference(runs: Sequence[Run]) -> list[str]:
    """Returns a label for each run: the settings in which runs differ, as far as they are not the preset's own."""
    by_env: dict[str, list[Run]] = {}
    for run in runs:
        by_env.setdefault(run.env, []).append(run)
    names = dict.fromkeys(name for several in by_env.values() for name in names_that_differ(several))
    return [label_of(run, list(names)) for run in runs]


def names_that_differ(runs: Sequence[Run]) -> list[str]:
    """Returns the settings that do not have the same value in all runs; those of the user's own parts, too."""
    names = dict.fromkeys(name for run in runs for name in settings_of(run) if name not in NOT_COMPARED)
    return [name for name in names if len({repr(value_of(run, name)) for run in runs}) > 1]


def settings_of(run: Run) -> dict[str, Any]:
    """Returns the settings of a run, and the names of its own parts as if they were settings."""
    parts = run.config.get("parts")
    settings = {name: value for name, value in run.config.items() if name != "parts"}
    return {**settings, **(parts if isinstance(parts, dict) else {})}


def value_of(run: Run, name: str) -> Any:
    """Returns the value of a setting; one that is newer than the run has its default."""
    default = SETTINGS[name].default if name in SETTINGS else None
    value = settings_of(run).get(name, default)
    return list(value) if isinstance(value, tuple) else value


def label_of(run: Run, names: Sequence[str]) -> str:
    """Writes those of the settings that are not the preset's own in this environment; if none, the preset's name."""
    preset = run.config.get("preset")
    parts = [("preset", preset)] if "preset" in names else []
    given: dict[str, Any] = {"env": run.env, "preset": preset}
    usual = defaults(given)
    for name in names:
        value = value_of(run, name)
        if name == "preset" or (name in usual and value == usual[name]):
            continue
        parts.append((name, value))
        given[name] = value
        usual = defaults(given) or usual  # others follow from it: the end of the warm-up, say
    if not parts:
        return preset if isinstance(preset, str) and preset else "all runs"
    return " ".join(f"{name}={in_words(tuple(value) if isinstance(value, list) else value)}" for name, value in parts)


def defaults(given: dict[str, Any]) -> dict[str, Any]:
    """Returns all settings of a run for which these are given; none where they are no settings of ours."""
    try:
        return Config(**given).to_data()
    except (ConfigError, TypeError):
        return {}
