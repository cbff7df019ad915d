"""Words that findings are made of."""

from collections.abc import Sequence
from typing import Any

from td3.diagnosis.evidence import Evidence
from td3.types import Finding


def finding(
    name: str,
    evidence: Evidence,
    seen: str,
    advice: str,
    chart: str = "",
    command: tuple[str, ...] = (),
    **numbers: Any,
) -> Finding:
    """Makes a finding of this moment."""
    return Finding(name, evidence.step, seen, advice, chart, command, numbers)


def share(part: float) -> str:
    """Writes a share so that 'all' and 'nearly all' differ: 95 %, 99.97 %."""
    if part in (0, 1):
        return f"{part:.0%}".replace("%", " %")
    digits = 0 if part < 0.99 else 1 if part < 0.999 else 2
    return f"{min(100 * part, 99.99):.{digits}f} %"


def short(number: float) -> str:
    """Writes a number in three digits, with commas where it is large."""
    if abs(number) >= 1_000:
        return f"{float(f'{number:.3g}'):,.0f}"
    return f"{number:.3g}"


def listed(name: str, indices: Sequence[int]) -> str:
    """Writes items of an array as Python would: action[0] and action[2]."""
    return joined([f"{name}[{index}]" for index in indices])


def joined(names: Sequence[str], most: int = 3) -> str:
    """Joins names with commas and 'and'; of many, the first ones and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])
