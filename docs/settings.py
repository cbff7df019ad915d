"""Writes `docs/settings.md` from the one home of every setting, `td3.config`."""

from pathlib import Path
from typing import Any

from td3.config import OF_PRESETS, PRESETS, SETTINGS, TASKS, type_words
from td3.views.cli import flag

HEAD = """# Settings

Made from [`td3/config.py`](../td3/config.py) by `python docs/settings.py`. Each is a field of `td3.Config`, a flag of
`td3 train` and a key of a run's `config.json`. What is not given comes from the task, then the preset, then the
default.

| setting | flag | default | allowed | meaning | source |
| --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    rows = [
        f"| `{name}` | {'`ENV`' if name == 'env' else f'`{flag(name)}`'} | {shown(known.default)} | "
        f"{allowed(name)} | {known.meaning} | {known.source} |\n"
        for name, known in SETTINGS.items()
    ]
    return HEAD + "".join(rows) + presets() + tasks()


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


def allowed(name: str) -> str:
    known = SETTINGS[name]
    if known.choices:
        return known.allowed
    return type_words(name) + (f", {known.allowed}" if known.allowed else "")


def shown(value: Any) -> str:
    if value is None:
        return "`warmup_steps`"
    if value == {}:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
