"""Writes `docs/it-does-not-learn.md` from the rules of the diagnosis and what they found in real broken runs."""

import inspect
import json
from pathlib import Path

from td3.diagnosis.rules import RULES

DOCS = Path(__file__).parent
HEAD = """# It does not learn

```console
$ td3 doctor runs/mine
```

reads the folder of a run, live, finished or failed, and says what stands out: at most three findings, the worst first.
Each has what was seen, with its number; what to try first; and the command or chart that shows it. A healthy run gets
"Nothing stands out". `--json` is for programs, `--strict` exits with 1 if there is a finding, and
`td3.diagnose("runs/mine")` returns the same in Python.

While a run trains, a finding is said once, the moment it is certain: in the terminal, on the [web page](watching.md), in
the record, and as an event `td3.Found`. `--no-diagnose` switches it off. `--stop-when-sick` stops a run that cannot
recover. `td3 check ENV` looks for what shows before anything is learned, in seconds.

The causes come first: an environment that is broken makes networks look sick, too. What a rule needs is measured on up to
1,000 remembered transitions every 1,000 steps, later every 5,000; nothing of the run changes, not a bit of it.

Thresholds were set on real runs: [none of the healthy ones](#how-sure-is-it) is found sick, and each of the broken runs
below has its finding first. They are runs of one small environment, a mass to be pushed to the middle of a plane, with one
thing broken in each (`bench/broken_envs.py`); `python -m bench.doctor broken` makes them again, with these pictures.

"""
TAIL_FILE = DOCS / "results" / "healthy.md"


def page() -> str:
    """Return the document."""
    found = json.loads((DOCS / "results" / "findings.json").read_text())
    sections = [section(rule.name, inspect.getdoc(rule.find) or "", found.get(rule.name)) for rule in RULES]
    return HEAD + table(found) + "".join(sections) + TRAPS + SURE


def table(found: dict) -> str:
    """Return the list of all findings, the worst first."""
    rows = [
        f"| {place} | [{rule.name}](#{anchor(rule.name)}) | {meaning(rule.find)} |\n"
        for place, rule in enumerate(RULES, 1)
    ]
    return "| | finding | |\n| --- | --- | --- |\n" + "".join(rows) + "\n"


def meaning(find) -> str:
    """Return a rule's first line."""
    return (inspect.getdoc(find) or "").splitlines()[0]


def anchor(name: str) -> str:
    """Return the fragment of a section."""
    return name


def section(name: str, doc: str, found: dict | None) -> str:
    """Return what the document says of one finding."""
    text = f"## {name}\n\n{doc}\n\n"
    if found is None:
        return text
    picture = f"finding-{name.replace('_', '-')}.png"
    return (
        text
        + f"> {found['seen']}\n>\n> Try first: {found['advice']}\n\n"
        + f"Here: {found['case']}, found by step {found['step']:,}.\n\n"
        + (f"![{found['chart']} of a run with {found['case']}, beside a healthy one](pictures/{picture})\n\n")
    )
