"""The fifteen steps in words: a title, a sentence, the reason, the formula and the place in the code of each.

The lines of code are read from the page's own source at run time, as text, so they cannot grow old and
nothing here imports PyTorch.
"""

import functools
import importlib.resources
import re
import textwrap
from typing import Any, NamedTuple

_CODE = "td3/learner/td3.py"
_DOCS = "docs/fifteen-steps.md"


class _Told(NamedTuple):
    title: str  # the words of the heading in the docs
    sentence: str
    why: str
    formula: str


_STEPS = (
    _Told(
        "The replay memory",
        "Every transition that was lived is kept in a ring: state, action, reward, next state, and whether the world "
        "ended there.",
        "Neighbouring moments look alike; from a memory they can be learned in any order, and more than once.",
        "place of transition n = n mod N",
    ),
    _Told(
        "The actor and its target",
        "The actor turns a state into an action, and its target is a second network that starts as an exact copy.",
        "The target will follow slowly, so that what the critics aim at does not jump with every step of the actor.",
        "π(s) = tanh(f(s))    π′ ← π",
    ),
    _Told(
        "Two critics and their targets",
        "Two critics, born different, each judge a state and an action with one number; each has a target that "
        "starts as its exact copy.",
        "Two equal critics would make equal errors for ever, and the smaller of two equal numbers teaches nothing.",
        "Q₁(s, a), Q₂(s, a) ∈ ℝ    Q₁ ≠ Q₂    Q₁′ ← Q₁    Q₂′ ← Q₂",
    ),
    _Told(
        "Sample a batch",
        "Rows are drawn at random from everything the memory holds; each is equally likely, and one may come twice.",
        "Chance breaks up the order in which things were lived.",
        "i₁ … i_B ~ Uniform{0, …, size − 1}",
    ),
    _Told(
        "The next action",
        "For every next state s′ of the batch, the actor's target says which action a′ it would play there.",
        "To know what an action was worth, one must know how things go on; what was really played next came from an "
        "older actor.",
        "a′ = π′(s′)",
    ),
    _Told(
        "Target smoothing",
        "A little noise is added to every number of a′: drawn anew, clipped, and the sum is kept within −1 and 1.",
        "A narrow, false peak of a critic counts for little when its neighbourhood is judged with it.",
        "a′ ← clip(a′ + clip(ε, −c, c), −1, 1)    ε ~ N(0, σ²)",
    ),
    _Told(
        "Two judgements of the next action",
        "Both critic targets judge the very same pair of next state and smoothed next action.",
        "Two opinions on one question can be compared; the targets move slowly, so the aim is steady.",
        "Q₁′(s′, a′)    Q₂′(s′, a′)",
    ),
    _Told(
        "The smaller one counts",
        "Row by row, only the more modest of the two judgements is kept.",
        "An actor seeks out whatever is judged too well; leaning to the smaller side keeps that error from spreading.",
        "q′ = min(Q₁′, Q₂′)",
    ),
    _Told(
        "The target",
        "The target is the reward plus the discounted future; where the world ended, only the reward is left.",
        "Nothing comes after the end of the world, but a time limit is not the end of the world and keeps its future.",
        "y = r + γ · (1 − d) · min(Q₁′, Q₂′)",
    ),
    _Told(
        "Two judgements of the remembered action",
        "Now the two learning critics judge the state and the action exactly as they stand in the memory.",
        "The reward answered that very action; for any other action the target would answer a different question.",
        "Q₁(s, a)    Q₂(s, a)",
    ),
    _Told(
        "The loss",
        "Each critic is measured by its squared distance from the same target y, averaged over the batch, and the two "
        "are added.",
        "A weight of the first critic occurs only in the first term, so the sum keeps the critics apart.",
        "L = mean (Q₁ − y)² + mean (Q₂ − y)²",
    ),
    _Told(
        "The critics learn",
        "The loss is traced back to every weight of both critics, and Adam moves each weight a little way downhill.",
        "Only the two critics move here: the targets belong to no optimiser, and the actor has no part in this loss.",
        "φᵢ ← Adam(φᵢ, ∇L)    i = 1, 2",
    ),
    _Told(
        "The actor learns, every second update",
        "The actor moves so that the first critic judges its own actions better, but only on every second update.",
        "The critics get time to settle before somebody follows them; the gradient only passes through the first one.",
        "θ ← Adam(θ, −∇J)    J = mean Q₁(s, π(s))",
    ),
    _Told(
        "The actor target follows",
        "Right after the actor's step, its target moves a small part of the way towards it.",
        "A slow copy averages over many steps of the actor and does not sway with a single one.",
        "θ′ ← τ · θ + (1 − τ) · θ′",
    ),
    _Told(
        "The critic targets follow",
        "Each critic target moves the same small part of the way towards its own critic.",
        "They wait for the delayed updates as well; otherwise they would move twice as fast.",
        "φᵢ′ ← τ · φᵢ + (1 − τ) · φᵢ′    i = 1, 2",
    ),
)


def explanation() -> list[dict[str, Any]]:
    """The fifteen steps, in order."""
    return [
        {
            "number": number,
            "title": step.title,
            "sentence": step.sentence,
            "why": step.why,
            "formula": step.formula,
            "code": f"{_CODE}:{_places()[number][0]}",
            "source": _places()[number][1],
            "docs": f"{_DOCS}#{_anchor(number, step.title)}",
        }
        for number, step in enumerate(_STEPS, start=1)
    ]


def text(of: str) -> dict[str, Any] | None:
    """The page of the algorithm (`code`), or the document of the fifteen steps (`docs`)."""
    if of == "code":
        return {"path": _CODE, "lines": _lines_of(_CODE)}
    if of == "docs":  # in a checkout a link to the document; an installed package has a copy
        return {"path": _DOCS, "lines": _lines_of("td3/views/web/fifteen-steps.md")}
    return None


def _lines_of(path: str) -> list[str]:
    package, _, inside = path.partition("/")
    return importlib.resources.files(package).joinpath(inside).read_text(encoding="utf-8").splitlines()


@functools.cache
def _places() -> dict[int, tuple[int, str]]:
    """For each step, the line of its `# n · …` comment and the code from there to the next empty line."""
    lines = _lines_of(_CODE)
    places = {}
    for index, line in enumerate(lines):
        if found := re.match(r"\s*# (\d+) · ", line):
            end = next((n for n in range(index, len(lines)) if not lines[n].strip()), len(lines))
            places[int(found[1])] = (index + 1, textwrap.dedent("\n".join(lines[index:end])))
    return places


def _anchor(number: int, title: str) -> str:
    """The name under which a Markdown page knows the heading `n · title`."""
    return f"{number}--{re.sub(r'[^a-z0-9 -]', '', title.lower()).replace(' ', '-')}"
