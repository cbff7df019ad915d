"""Writes `docs/settings.md` from the fields of `td3.Config`."""

from pathlib import Path
from typing import Any

from td3.config import GROUPS, SETTINGS
from td3.config.presets import OF_PRESETS, PRESETS, TASKS
from td3.config.values import in_words
from td3.config.words import flag
from td3.synonyms import LIBRARIES, instead_of

HEAD = """# Settings

Made from [`td3/config`](../td3/config/config.py) and [`td3/synonyms.py`](../td3/synonyms.py) by
`python docs/settings.py`. Each is a field of `td3.Config`, a flag of `td3 train`, and a key of a run's `config.json`
and of a file for [`--config`](many-runs.md#settings-in-a-file). What is not given comes from the task, then the preset,
then the default.
"""
FOLLOWS = {"stop_at": "none", "update_after": "`warmup_steps`", "actor_hidden": "`hidden`", "critic_hidden": "`hidden`"}
TABLE = """
## {group}

| setting | flag | default | allowed | meaning | source |
| --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Returns the whole page: a table for each group, the presets, the tasks, and other libraries' names."""
    tables = [TABLE.format(group=group) + "".join(map(row, names)) for group, names in GROUPS.items()]
    return HEAD + "".join(tables) + presets() + tasks() + searched() + elsewhere()


def row(name: str) -> str:
    """Returns the row of one setting."""
    known = SETTINGS[name]
    flags = "`ENV`" if name == "env" else f"`{flag(name)}`"
    default = FOLLOWS[name] if known.default is None else shown(known.default)
    return f"| `{name}` | {flags} | {default} | {known.range_words} | {known.meaning} | {known.source} |\n"


def presets() -> str:
    """Returns the table of the presets."""
    changed = dict.fromkeys(name for values in PRESETS.values() for name in values)
    rows = [f"| `{name}` | " + " | ".join(chosen(preset, name) for preset in PRESETS) + " |\n" for name in changed]
    head = "| setting | " + " | ".join(f"`{preset}`" for preset in PRESETS) + " |\n"
    return f"\n## Presets\n\n{head}|{' --- |' * (len(PRESETS) + 1)}\n" + "".join(rows)


def chosen(preset: str, name: str) -> str:
    """Writes the value that a preset has for a setting."""
    value = PRESETS[preset].get(name, SETTINGS[name].default)
    return FOLLOWS[name] if value is None else shown(value)


def tasks() -> str:
    """Returns the table of the tasks with settings of their own."""

    def task_row(name: str, values: dict[str, Any], preset: str) -> str:
        settings = ", ".join(f"`{setting}` {shown(value)}" for setting, value in values.items())
        return f"| {name} | {preset} | {settings} |\n"

    rows = [task_row(name, values, "any") for name, values in TASKS.items()]
    rows += [
        task_row(name, values, f"`{preset}`") for preset, own in OF_PRESETS.items() for name, values in own.items()
    ]
    return "\n## Tasks\n\n| task, any version | preset | settings |\n| --- | --- | --- |\n" + "".join(rows)


def searched() -> str:
    """Returns the table of the settings that `td3 tune` can search."""
    rows = [
        f"| `{name}` | {known.search.words} | {'yes' if known.tuned else ''} |\n"
        for name, known in SETTINGS.items()
        if known.search is not None
    ]
    head = (
        "\n## Search\n\nThe settings that [`td3 tune`](many-runs.md#tune) can search. A range is widened to what the "
        "task has now;\n`warmup_steps` takes at most a quarter of a trial.\n\n"
    )
    return head + "| setting | usual range | searched by default |\n| --- | --- | --- |\n" + "".join(rows)


def elsewhere() -> str:
    """Returns other libraries' names; those that are settings of td3 too need no row."""
    sections = ["\n## Coming from another library\n\nA name that is not in a table is the same here.\n"]
    for library, names in LIBRARIES.items():
        rows = [
            f"| `{name}` | {instead_of(name, lambda setting: f'`{setting}`')} |\n"
            for name in names.split()
            if name not in SETTINGS
        ]
        sections.append(f"\n### From {library}\n\n| there | here |\n| --- | --- |\n{''.join(rows)}")
    return "".join(sections)


def shown(value: Any) -> str:
    """Writes a value for a table."""
    if value == {}:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else in_words(value)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
