"""What `help(td3.Config)`, `--help` and the docs say about a setting."""

import inspect
import textwrap
from collections.abc import Mapping, Sequence

from td3.config.presets import PRESETS
from td3.config.settings import Setting
from td3.config.values import in_words


def explained(setting: Setting) -> str:
    """Returns meaning, range, default, what presets choose and the source, in one line."""
    facts = [setting.allowed, "" if setting.default in (None, {}) else f"default {in_words(setting.default)}"]
    facts += [f"{preset}: {in_words(own[setting.name])}" for preset, own in PRESETS.items() if setting.name in own]
    facts += [setting.source]
    return f"{setting.meaning} [{'; '.join(filter(None, facts))}]".removesuffix(" []")


class _Signature(inspect.Signature):
    """A signature that `help` shows in lines of a readable width."""

    def __str__(self) -> str:
        parameters = ", ".join(str(parameter).replace(" ", "\0") for parameter in self.parameters.values())
        return "(" + textwrap.fill(parameters, 64, subsequent_indent="    ").replace("\0", " ") + ")"


def explain_class(kind: type, settings: Mapping[str, Setting], groups: Mapping[str, Sequence[str]]) -> None:
    """Writes every setting into the class's docstring and signature, group by group, for `help`."""
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = [inspect.Parameter(name, place, default=setting.default) for name, setting in settings.items()]
    itself, others = inspect.Parameter("self", place), inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD)
    kind.__signature__ = _Signature(defaults)  # type: ignore[attr-defined]
    kind.__init__.__signature__ = inspect.Signature([itself, others])  # type: ignore[misc]
    sections = [inspect.cleandoc(kind.__doc__ or "")]
    for group, names in groups.items():
        entries = [f"{name}: {_type(settings[name])}\n{_wrapped(explained(settings[name]))}" for name in names]
        sections.append("\n".join([group, "-" * len(group), *entries]))
    kind.__doc__ = "\n\n".join(sections)


def _type(setting: Setting) -> str:
    none = " | None" if setting.default is None else ""
    return inspect.formatannotation(setting.type) + none


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 75, initial_indent="    ", subsequent_indent="    ")
