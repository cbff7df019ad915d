"""Writes `docs/it-does-not-learn.md` from the rules of the diagnosis and what they found in real runs."""

import inspect
import json
from pathlib import Path
from typing import Any

from td3.diagnosis.rules import RULES, Rule

DOCS = Path(__file__).parent
MILD = ("coarse_evaluation", "plateau")
HEAD = """# It does not learn

```console
$ td3 doctor runs/mine
```

reads the folder of a run, live, finished or failed, and says what stands out: at most three findings, the worst first.
Each says what was seen, with its number and the name of its section here; what to try first; and which command or chart
shows it. A *row* is a transition in the replay memory, *remembered states* are a sample of them. A healthy run gets
"Nothing stands out". `--json` is for programs, and `--strict` exits with 1 if there is a finding. In Python,
`td3.diagnose("runs/mine")` returns a list of `td3.Finding`.

- Before a run, `td3 check ENV` looks for what shows without learning, in seconds.
- While a run trains, a finding is said once, as soon as it is certain: in the terminal, on the [web
  page](watching.md#what-stands-out), in the record, and as an event `td3.Found`. `--no-diagnose` switches that off,
  `--stop-when-sick` stops a run that cannot recover.
- Afterwards, `td3 doctor` looks at the whole record.

Causes come first: a broken environment makes networks look sick, too. What a rule needs is measured on 500 remembered
transitions every 1,000 steps, and every 5,000 after the first 50,000. That takes less than 0.5 % of the time of a
HalfCheetah run, and changes no bit of it.

The runs below are of one small task, a mass to be pushed to the middle of a plane, with one thing broken in each
([`bench/broken_envs.py`](../bench/broken_envs.py), [`bench/broken_runs.py`](../bench/broken_runs.py)). In each, this
finding came first, but for collapse, divergence and plateau, which come after their causes. The task is easy: where a
curve shows no harm, a harder task would. `python -m bench.doctor broken` makes these runs and pictures again. The
thresholds stand at the top of [`environment.py`](../td3/diagnosis/environment.py),
[`networks.py`](../td3/diagnosis/networks.py) and [`results.py`](../td3/diagnosis/results.py).

"""
TRAPS = (
    ("The time limit ends the episode as `terminated`", "return it as `truncated`", "limit_as_end"),
    ("There is no time limit", "`gymnasium.wrappers.TimeLimit`, or `max_episode_steps`", "never_ends"),
    ("`terminated` is true from the start", "reset what it is computed from", "ends_at_once"),
    ("Rewards far from 1, here × 1,000", "divide them, or `--reward-scale`", "reward_scale"),
    ("A reward at the goal alone", "reward the way there", "rare_rewards"),
    ("Pixels, metres and radians in one vector", "`--normalize-observations`", "unscaled_observations"),
    ("`step` returns the array that `reset` returned", "return a new array", "nothing_to_see"),
    ("`step` forgets its action, or one dimension of it", "use it", "actions_ignored"),
    ("The Box of actions is far wider than what `step` clips to", "declare the true range", "narrow_actions"),
    ("Random numbers from `np.random`", "`self.np_random`, which `reset(seed=…)` seeds", "not_reproducible"),
)
UNSEEN = """## What no record shows

Nothing stands out, and it still does not learn? Then look for what only you can know:

- **The goal is not in the observation.** An agent that cannot see where to go learns the mean of all goals.
- **A velocity is missing, or the action acts late.** `--history 3` joins the last three observations.
- **The reward pays for something else**, such as standing still where each move costs. Watch a [film](watching.md).
- **It needs more steps.** TD3 learns Pendulum in 5,000 steps, HalfCheetah in 100,000, Humanoid in a million and more.
- **The seed.** Train three; one that fails among three that learn is usual.

"""
SURE = """## How sure is it?

`python -m bench.doctor healthy` trains known tasks and looks at every tenth of each run, as `td3 doctor` would. Of
{runs} runs, {silent} had nothing at any tenth, or only what is mild (a plateau, a coarse evaluation). The others:

{others}
| run | steps | return: first, best, last | found, and at which tenths |
| --- | --- | --- | --- |
{rows}
The data are in [`docs/results/healthy_runs.json`](results/healthy_runs.json).
"""
OTHERS = {
    "ant-author-0": "- `ant-author-0`: some numbers of Ant's observation, contact forces of its torso, never change. "
    "That is so, and does no harm; it is not said while a run trains.\n",
    "humanoid-author-0": "- `humanoid-author-0`: the same; and some forces are several hundred where other numbers are "
    "around 1, so `--normalize-observations` is worth a try.\n",
    "inverteddoublependulum-author-0": "- `inverteddoublependulum-author-0`: constraint forces that are 0 until the "
    "cart first reaches the end of its rail.\n",
}


def page() -> str:
    """Return the document."""
    found: dict[str, Any] = json.loads((DOCS / "results" / "findings.json").read_text())
    healthy: dict[str, Any] = json.loads((DOCS / "results" / "healthy_runs.json").read_text())
    sections = [section(rule, found.get(rule.name)) for rule in RULES]
    return HEAD + traps(found) + UNSEEN + table() + "".join(sections) + sure(healthy)


def table() -> str:
    """Return the list of all findings, the worst first."""
    rows = [f"| [{rule.name}](#{rule.name}) | {meaning(rule)} |\n" for rule in RULES]
    return "## All findings, the worst first\n\n| finding | |\n| --- | --- |\n" + "".join(rows) + "\n"


def meaning(rule: Rule) -> str:
    """Return what a rule looks for."""
    return (inspect.getdoc(rule.find) or "").splitlines()[0]


def traps(found: dict[str, Any]) -> str:
    """Return the ten traps, each with the sentence that the tool says."""
    rows = [f"| {trap} | {cure} | {found[name]['seen']} |\n" for trap, cure, name in TRAPS]
    head = "## Ten traps of one's own environment\n\n| trap | cure | what `td3 doctor` says |\n| --- | --- | --- |\n"
    return head + "".join(rows) + "\n`td3 check` says the same of these before anything is learned.\n\n"


def section(rule: Rule, found: dict[str, Any] | None) -> str:
    """Return what the document says of one finding."""
    text = f"## {rule.name}\n\n{meaning(rule)}\n\n"
    if found is None:
        return text
    picture = f"pictures/finding-{rule.name.replace('_', '-')}.png"
    said = f"> {found['seen']}\n>\n> Try first: {found['advice']}\n\n"
    return f"{text}Here: {found['case']}.\n\n{said}![{found['picture']}, beside that of a healthy run]({picture})\n\n"


def sure(healthy: dict[str, Any]) -> str:
    """Return what was found in healthy runs."""
    rows, others = [], []
    for name, run in healthy.items():
        found = "; ".join(f"{finding} {', '.join(map(str, tenths))}" for finding, tenths in run["findings"].items())
        returns = ", ".join(f"{run[which]:,.0f}".replace("-", "−") for which in ("first", "best", "last"))
        rows.append(f"| {name} | {run['steps']:,} | {returns} | {found or '–'} |\n")
        if not set(run["findings"]) <= set(MILD):
            others.append(OTHERS.get(name, f"- `{name}`\n"))
    silent = len(healthy) - len(others)
    return SURE.format(runs=len(healthy), silent=silent, others="".join(others), rows="".join(rows))


if __name__ == "__main__":
    (DOCS / "it-does-not-learn.md").write_text(page())
