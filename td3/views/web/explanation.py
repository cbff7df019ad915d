"""Explains the fifteen steps: title, sentence, reason, formula and line of code of each.

The code is read from the algorithm's source at run time, as text: it is always current, and nothing here imports
PyTorch.
"""

import functools
import importlib.resources
import re
import textwrap
from typing import Any, NamedTuple

_CODE = "td3/learner/td3.py"
_DOCS = "docs/fifteen-steps.md"


class _Step(NamedTuple):
    title: str  # the same as the heading in the docs
    sentence: str
    why: str
    formula: str


_STEPS = (
    _Step(
        "The replay memory",
        "Every transition is stored in a ring: state, action, reward, next state, and whether the episode terminated "
        "there.",
        "Consecutive transitions are alike; from a memory they can be learned in any order, and more than once.",
        "row of transition n = n mod N",
    ),
    _Step(
        "The actor and its target",
        "The actor turns a state into an action, and its target is a second network that starts as an exact copy.",
        "The target follows slowly, so that what the critics learn does not jump with every step of the actor.",
        "π(s) = tanh(f(s))    π′ ← π",
    ),
    _Step(
        "Two critics and their targets",
        "Two critics with different initial weights each give a state and an action one value; each has a target that "
        "starts as its exact copy.",
        "Two equal critics would make equal errors for ever, and the smaller of two equal values changes nothing.",
        "Q₁(s, a), Q₂(s, a) ∈ ℝ    Q₁ ≠ Q₂    Q₁′ ← Q₁    Q₂′ ← Q₂",
    ),
    _Step(
        "Sample a batch",
        "Rows are sampled uniformly from everything the memory holds, with replacement: a row may come twice.",
        "A random order keeps consecutive transitions apart.",
        "i₁ … i_B ~ Uniform{0, …, size − 1}",
    ),
    _Step(
        "The next action",
        "For every next state s′ of the batch, the actor target gives the action a′ that it would play there.",
        "The value of an action depends on what is played next; the action really played there came from an older "
        "actor, with noise.",
        "a′ = π′(s′)",
    ),
    _Step(
        "Target smoothing",
        "Clipped Gaussian noise is added to every dimension of a′, and the sum is clamped to [−1, 1].",
        "The target becomes an average over nearby actions, where a narrow, false peak of a critic counts for little.",
        "a′ ← clip(a′ + clip(ε, −c, c), −1, 1)    ε ~ N(0, σ²)",
    ),
    _Step(
        "Two values of the next action",
        "Both critic targets evaluate the same pair of next state and smoothed next action.",
        "Two estimates of one thing can be compared; the targets change slowly, so the critics have a steady goal.",
        "Q₁′(s′, a′)    Q₂′(s′, a′)",
    ),
    _Step(
        "The smaller value counts",
        "Row by row, only the smaller of the two values is kept.",
        "The actor seeks actions whose value is overestimated; the smaller value keeps that error from spreading.",
        "q′ = min(Q₁′, Q₂′)",
    ),
    _Step(
        "The target",
        "The target is the reward plus the discounted future; where the episode terminated, only the reward is left.",
        "Nothing comes after termination. A time limit (truncated) is no such end: there the future still counts.",
        "y = r + γ · (1 − d) · min(Q₁′, Q₂′)",
    ),
    _Step(
        "Two values of the stored action",
        "The two critics that learn evaluate the state and the action exactly as they are stored in the memory.",
        "The reward and the next state followed from that action; for any other action the target would be wrong.",
        "Q₁(s, a)    Q₂(s, a)",
    ),
    _Step(
        "The loss",
        "The loss of each critic is its squared distance from the same target y, averaged over the batch; the two are "
        "added.",
        "A weight of the first critic occurs only in the first term, so the sum keeps the critics apart.",
        "L = mean (Q₁ − y)² + mean (Q₂ − y)²",
    ),
    _Step(
        "The critics learn",
        "The loss is backpropagated to every weight of both critics, and Adam takes one step.",
        "Only the two critics move here: the targets belong to no optimiser, and the actor has no part in this loss.",
        "φᵢ ← Adam(φᵢ, ∇L)    i = 1, 2",
    ),
    _Step(
        "The actor learns, every second update",
        "The actor moves so that the first critic gives its actions a higher value, but only on every second update.",
        "The critics settle a little before the actor follows them; the gradient passes through the first critic and "
        "does not change it.",
        "θ ← Adam(θ, −∇J)    J = mean Q₁(s, π(s))",
    ),
    _Step(
        "The actor target follows",
        "Right after the actor's step, its target moves a small part of the way towards it.",
        "A slow copy averages over many steps of the actor; a single one hardly changes it.",
        "θ′ ← τ · θ + (1 − τ) · θ′",
    ),
    _Step(
        "The critic targets follow",
        "Each critic target moves the same small part of the way towards its own critic.",
        "They too move only in delayed updates; in every update they would move twice as fast.",
        "φᵢ′ ← τ · φᵢ + (1 − τ) · φᵢ′    i = 1, 2",
    ),
)


def explanation() -> list[dict[str, Any]]:
    """Return the fifteen steps, in order."""
    return [
        {
            "number": number,
            "title": step.title,
            "sentence": step.sentence,
            "why": step.why,
            "formula": step.formula,
            "code": f"{_CODE}:{_sources()[number][0]}",
            "source": _sources()[number][1],
            "docs": f"{_DOCS}#{_anchor(number, step.title)}",
        }
        for number, step in enumerate(_STEPS, start=1)
    ]


def text(of: str) -> dict[str, Any] | None:
    """Return the lines of the algorithm (`code`) or of the document of the fifteen steps (`docs`)."""
    if of == "code":
        return {"path": _CODE, "lines": _lines_of(_CODE)}
    if of == "docs":  # in a checkout a link to the document; an installed package has a copy
        return {"path": _DOCS, "lines": _lines_of("td3/views/web/fifteen-steps.md")}
    return None


def _lines_of(path: str) -> list[str]:
    package, _, inside = path.partition("/")
    return importlib.resources.files(package).joinpath(inside).read_text(encoding="utf-8").splitlines()


@functools.cache
def _sources() -> dict[int, tuple[int, str]]:
    """For each step, the line of its `# n · …` comment and the code from there to the next empty line."""
    lines = _lines_of(_CODE)
    sources = {}
    for index, line in enumerate(lines):
        if match := re.match(r"\s*# (\d+) · ", line):
            end = next((n for n in range(index, len(lines)) if not lines[n].strip()), len(lines))
            sources[int(match[1])] = (index + 1, textwrap.dedent("\n".join(lines[index:end])))
    return sources


def _anchor(number: int, title: str) -> str:
    """The name under which a Markdown page knows the heading `n · title`."""
    return f"{number}--{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')}"
