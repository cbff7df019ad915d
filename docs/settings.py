"""Writes `docs/settings.md` from the one home of every setting, `td3.config`."""

from pathlib import Path
from typing import Any

from td3.config import OF_PRESETS, PRESETS, SETTINGS, TASKS, in_words, range_words
from td3.synonyms import LIBRARIES, instead_of
from td3.views.cli import flag

HEAD = """# Settings

Made from [`td3/config.py`](../td3/config.py) and [`td3/synonyms.py`](../td3/synonyms.py) by
`python docs/settings.py`. Each is a field of `td3.Config`, a flag of `td3 train` and a key of a run's `config.json`.
What is not given comes from the task, then the preset, then the default.

| setting | flag | default | allowed | meaning | source |
| --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    rows = [
        f"| `{name}` | {'`ENV`' if name == 'env' else f'`{flag(name)}`'} | {shown(known.default)} | "
        f"{range_words(name)} | {known.meaning} | {known.source} |\n"
        for name, known in SETTINGS.items()
    ]
    return HEAD + "".join(rows) + presets() + tasks() + elsewhere()


def presets() -> str:
    changed = dict.fromkeys(name for values in PRESETS.values() for name in values)
    rows = [
        f"| `{name}` | " + " | ".join(shown(PRESETS[one].get(name, SETTINGS[name].default)) for one in PRESETS) + " |\n"
        for name in changed
    ]
    head = "| setting | " + " | ".join(f"`{one}`" for one in PRESETS) + " |\n"
    return f"\n## Presets\n\n{head}|{' --- |' * (len(PRESETS) + 1)}\n" + "".join(rows)


def tasks() -> str:
    def row(name: str, values: dict[str, Any], preset: str) -> str:
        told = ", ".join(f"`{setting}` {shown(value)}" for setting, value in values.items())
        return f"| {name} | {preset} | {told} |\n"

    rows = [row(name, values, "any") for name, values in TASKS.items()]
    rows += [row(name, values, f"`{preset}`") for preset, own in OF_PRESETS.items() for name, values in own.items()]
    return "\n## Tasks\n\n| task, any version | preset | settings |\n| --- | --- | --- |\n" + "".join(rows)


def elsewhere() -> str:
    """What other libraries' names are here; those that are settings of td3 too need no row."""
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
    if value is None:
        return "`warmup_steps`"
    if value == {}:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else in_words(value)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
