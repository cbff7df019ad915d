"""Draws the pictures of the fifteen steps: one diagram, in which each step lights up its own parts.

    python docs/pictures.py

Only the standard library is used, and the same bytes come out every time.
"""

from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

WIDTH, HEIGHT = 960, 664
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
CARD, EDGE, INK, SOFT = "#fcfcfd", "#d5dbe5", "#1e293b", "#64748b"
PALE_FILL, PALE_LINE, PALE_TEXT = "#f6f7f9", "#e3e7ed", "#b6bec9"

COLOURS = {  # kind: (fill, line)
    "environment": ("#d5f5ee", "#0f766e"),
    "learned": ("#dbe9ff", "#1d4ed8"),
    "target": ("#ebe4ff", "#6d28d9"),
    "noise": ("#fff0c2", "#b45309"),
    "number": ("#ffe3e8", "#be123c"),
    "optimiser": ("#dcf7e3", "#15803d"),
    "data": ("", "#334155"),
    "gradient": ("", "#15803d"),
    "copy": ("", "#6d28d9"),
}
DASHES = {"data": "", "gradient": "7 4", "copy": "2 4"}

Point = tuple[float, float]


class Part(NamedTuple):
    """A box of the diagram: its middle, its size, and what is written in it."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    name: str
    detail: str = ""


class Link(NamedTuple):
    """A line through these points, and where its label goes."""

    kind: str
    points: tuple[Point, ...]
    label_at: Point
    head: bool = True


class Step(NamedTuple):
    """What lights up: parts by name, and links with the data that moves along them."""

    title: str
    caption: str
    parts: tuple[str, ...]
    links: dict[str, str]
    badges: tuple[Point, ...]  # where the step's number stands in the overview


PARTS = {
    "environments": Part("environment", 97, 176, 130, 84, "environments", "one or many"),
    "memory": Part("environment", 97, 386, 130, 248, "replay memory", "s, a, r, s′,|terminated"),
    "actor": Part("learned", 291, 176, 138, 84, "actor", "π(s)"),
    "actor target": Part("target", 291, 360, 138, 72, "actor target", "π′(s′)"),
    "critic 1": Part("learned", 565, 176, 150, 84, "critic 1", "Q₁(s, a)"),
    "critic target 1": Part("target", 565, 296, 150, 68, "critic target 1", "Q₁′(s′, a′)"),
    "critic target 2": Part("target", 565, 424, 150, 68, "critic target 2", "Q₂′(s′, a′)"),
    "critic 2": Part("learned", 565, 548, 150, 84, "critic 2", "Q₂(s, a)"),
    "noise": Part("noise", 420, 282, 76, 34, "noise ε", ""),
    "plus": Part("noise", 420, 360, 36, 36, "+", ""),
    "min": Part("number", 694, 360, 46, 46, "min", ""),
    "y": Part("number", 769, 360, 48, 48, "y", ""),
    "loss": Part("number", 862, 360, 76, 56, "loss", ""),
    "Adam of the actor": Part("optimiser", 428, 105, 92, 36, "Adam", "actor"),
    "Adam of the critics": Part("optimiser", 862, 576, 92, 36, "Adam", "critics"),
}

LINKS = {
    # playing
    "environments → actor": Link("data", ((162, 153), (222, 153)), (191, 153)),
    "actor → environments": Link("data", ((222, 180), (162, 180)), (193, 180)),
    "environments → memory": Link("data", ((97, 218), (97, 262)), (97, 239)),
    # the batch
    "memory → actor": Link("data", ((162, 286), (193, 286), (193, 206), (222, 206)), (193, 222)),
    "memory → critic 1": Link(
        "data", ((162, 286), (193, 286), (193, 240), (468, 240), (468, 200), (490, 200)), (380, 240)
    ),
    "memory → actor target": Link("data", ((162, 360), (222, 360)), (190, 360)),
    "memory → critic target 1": Link("data", ((162, 424), (468, 424), (468, 296), (490, 296)), (0, 0)),
    "memory → critic target 2": Link("data", ((162, 424), (490, 424)), (315, 424)),
    "memory → y": Link("data", ((162, 484), (769, 484), (769, 384)), (315, 484)),
    "memory → critic 2": Link("data", ((97, 510), (97, 548), (490, 548)), (315, 548)),
    # the target
    "actor target → plus": Link("data", ((360, 360), (402, 360)), (380, 341)),
    "noise → plus": Link("noise", ((420, 299), (420, 342)), (420, 319)),
    "plus → pair": Link("data", ((438, 360), (468, 360)), (451, 339), head=False),
    "pair → critic target 1": Link("data", ((468, 360), (468, 296), (490, 296)), (0, 0)),
    "pair → critic target 2": Link("data", ((468, 360), (468, 424)), (0, 0), head=False),
    "critic target 1 → min": Link("data", ((640, 296), (694, 296), (694, 337)), (663, 296)),
    "critic target 2 → min": Link("data", ((640, 424), (694, 424), (694, 383)), (663, 424)),
    "min → y": Link("data", ((717, 360), (745, 360)), (731, 329)),
    "y → loss": Link("data", ((793, 360), (824, 360)), (808, 339)),
    # the critics
    "critic 1 → loss": Link("data", ((640, 194), (846, 194), (846, 332)), (769, 194)),
    "critic 2 → loss": Link("data", ((640, 530), (846, 530), (846, 388)), (720, 530)),
    "loss → Adam": Link("gradient", ((878, 388), (878, 558)), (878, 470)),
    "Adam → critic 1": Link("gradient", ((908, 576), (930, 576), (930, 158), (640, 158)), (769, 158)),
    "Adam → critic 2": Link("gradient", ((816, 576), (640, 576)), (720, 576)),
    # the actor
    "actor → critic 1": Link("data", ((360, 164), (490, 164)), (425, 164)),
    "critic 1 → Adam": Link("gradient", ((565, 134), (565, 105), (474, 105)), (521, 105)),
    "Adam → actor": Link("gradient", ((382, 105), (291, 105), (291, 134)), (336, 105)),
    # slow copies
    "actor → target": Link("copy", ((291, 218), (291, 324)), (291, 284)),
    "critic 1 → target": Link("copy", ((565, 218), (565, 262)), (565, 238)),
    "critic 2 → target": Link("copy", ((565, 506), (565, 458)), (565, 484)),
}

BATCH = {
    "memory → actor": "s",
    "memory → critic 1": "s, a",
    "memory → actor target": "s′",
    "memory → critic target 1": "",
    "memory → critic target 2": "s′",
    "memory → y": "r, terminated",
    "memory → critic 2": "s, a",
}
NEXT_VALUES = {"critic target 1 → min": "Q₁′", "critic target 2 → min": "Q₂′"}
CRITICS, CRITIC_TARGETS = ("critic 1", "critic 2"), ("critic target 1", "critic target 2")

STEPS = (
    Step(
        "The replay memory",
        "A ring of transitions (s, a, r, s′, terminated). When it is full, the oldest goes first.",
        ("environments", "memory"),
        {"environments → memory": "transition"},
        ((32, 262),),
    ),
    Step(
        "The actor and its target",
        "One architecture, two instances, equal at first. tanh keeps every action in [−1, 1].",
        ("actor", "actor target"),
        {"actor → target": "copy"},
        ((360, 134), (360, 324)),
    ),
    Step(
        "Two critics and their targets",
        "The critics start with different weights, each target as a copy of its critic. One number comes out.",
        CRITICS + CRITIC_TARGETS,
        {"critic 1 → target": "copy", "critic 2 → target": "copy"},
        ((640, 134), (640, 590)),
    ),
    Step(
        "Sample a batch",
        "256 rows, sampled uniformly and with replacement from those that are written.",
        ("memory",),
        BATCH,
        ((162, 510),),
    ),
    Step(
        "The next action",
        "a′ = π′(s′): the actor target gives an action for every next state of the batch.",
        ("memory", "actor target"),
        {"memory → actor target": "s′", "actor target → plus": "a′"},
        ((222, 396),),
    ),
    Step(
        "Target smoothing",
        "a′ ← clamp(a′ + clip(ε, ±0.5), ±1), with ε ~ N(0, 0.2²) for each row and each dimension.",
        ("noise", "plus"),
        {"actor target → plus": "a′", "noise → plus": "ε", "plus → pair": "a′"},
        ((458, 265),),
    ),
    Step(
        "Two values of the next action",
        "Both critic targets evaluate the same pair (s′, a′).",
        ("memory", *CRITIC_TARGETS),
        {
            "memory → critic target 1": "",
            "memory → critic target 2": "s′",
            "plus → pair": "a′",
            "pair → critic target 1": "",
            "pair → critic target 2": "",
            **NEXT_VALUES,
        },
        ((640, 262), (640, 390)),
    ),
    Step(
        "The smaller value counts",
        "min(Q₁′, Q₂′), row by row.",
        ("min",),
        {**NEXT_VALUES, "min → y": "min"},
        ((672, 341),),
    ),
    Step(
        "The target",
        "y = r + γ (1 − terminated) min(Q₁′, Q₂′). No gradient flows through y.",
        ("memory", "min", "y"),
        {"min → y": "min", "memory → y": "r, terminated"},
        ((793, 384),),
    ),
    Step(
        "Two values of the stored action",
        "Both critics evaluate the pair (s, a) as it was played.",
        ("memory", *CRITICS),
        {
            "memory → critic 1": "s, a",
            "memory → critic 2": "s, a",
            "critic 1 → loss": "Q₁",
            "critic 2 → loss": "Q₂",
        },
        ((490, 218), (490, 590)),
    ),
    Step(
        "The loss",
        "MSE(Q₁, y) + MSE(Q₂, y), each a mean over the batch.",
        ("y", "loss"),
        {"critic 1 → loss": "Q₁", "critic 2 → loss": "Q₂", "y → loss": "y"},
        ((900, 332),),
    ),
    Step(
        "The critics learn",
        "Backpropagate the loss; Adam moves the weights of both critics, and of nothing else.",
        ("loss", "Adam of the critics", *CRITICS),
        {"loss → Adam": "∇ loss", "Adam → critic 1": "step", "Adam → critic 2": "step"},
        ((908, 594),),
    ),
    Step(
        "The actor learns, every second update",
        "The actor ascends mean Q₁(s, π(s)). The gradient passes through critic 1 and does not move it.",
        ("memory", "actor", "critic 1", "Adam of the actor"),
        {
            "memory → actor": "s",
            "memory → critic 1": "s",
            "actor → critic 1": "π(s)",
            "critic 1 → Adam": "∇Q₁",
            "Adam → actor": "step",
        },
        ((474, 87),),
    ),
    Step(
        "The actor target follows",
        "θ′ ← τ θ + (1 − τ) θ′ with τ = 0.005, only when the actor has moved.",
        ("actor", "actor target"),
        {"actor → target": "τ"},
        ((316, 272),),
    ),
    Step(
        "The critic targets follow",
        "The same slow copy for both critic targets, on the same delayed updates.",
        CRITICS + CRITIC_TARGETS,
        {"critic 1 → target": "τ", "critic 2 → target": "τ"},
        ((590, 240), (590, 482)),
    ),
)

COLLECTING = Step(
    "Collecting transitions",
    "Random actions in the warm-up; then π(s) + Gaussian noise of 0.1, clipped to [−1, 1]. The target never acts.",
    ("environments", "memory", "actor"),
    {"environments → actor": "s", "actor → environments": "a", "environments → memory": "transition"},
    (),
)

OVERVIEW = Step(
    "Twin Delayed DDPG in fifteen steps",
    "1–3 once · 4 sample · 5–9 compute the target · 10–12 train the critics · 13–15 in every second update",
    tuple(PARTS),
    {
        **dict.fromkeys(LINKS, ""),
        **BATCH,
        **NEXT_VALUES,
        "environments → actor": "s",
        "actor → environments": "a",
        "noise → plus": "ε",
        "actor target → plus": "a′",
        "plus → pair": "a′",
        "critic 1 → loss": "Q₁",
        "critic 2 → loss": "Q₂",
        "actor → critic 1": "π(s)",
    },
    (),
)


def draw_all(folder: Path) -> None:
    """Writes the overview, the picture of collecting, and one picture for each step."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {"overview": picture(OVERVIEW, "TD3"), "collecting": picture(COLLECTING, "–")}
    for number, step in enumerate(STEPS, start=1):
        pictures[f"step-{number:02}"] = picture(step, str(number))
    for name, svg in pictures.items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8", newline="\n")


def picture(step: Step, number: str) -> str:
    """The whole diagram with this step's parts and links lit."""
    dark = [name for name in LINKS if name not in step.links]
    badges = [badge(at, str(n), 9.5) for n, each in enumerate(STEPS, start=1) for at in each.badges]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="{FONT}" role="img" aria-label="{escape(step.title)}">',
        rect(1, 1, WIDTH - 2, HEIGHT - 2, 18, CARD, EDGE, 1.5),
        *heading(step, number),
        *(draw_link(LINKS[name], lit=False) for name in dark),
        *(draw_part(part, lit=name in step.parts) for name, part in PARTS.items()),
        *(draw_link(LINKS[name], lit=True) for name in step.links),
        *(label(LINKS[name], words) for name, words in step.links.items() if words),
        *(badges if step is OVERVIEW else progress(number)),
        *legend(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def heading(step: Step, number: str) -> list[str]:
    wide = 52 if number == "TD3" else 38
    return [
        rect(32, 24, wide, 38, 12, INK),
        text(32 + wide / 2, 49, number, 17, "#ffffff", bold=True),
        text(46 + wide, 40, step.title, 19, INK, bold=True, anchor="start"),
        text(46 + wide, 60, step.caption, 13, SOFT, anchor="start"),
    ]


def draw_part(part: Part, lit: bool) -> str:
    fill, line = COLOURS[part.kind] if lit else (PALE_FILL, PALE_LINE)
    ink, soft = (INK, line) if lit else (PALE_TEXT, PALE_TEXT)
    kind, x, y, width, height, name, detail = part
    left, top = x - width / 2, y - height / 2
    weight = 2 if lit else 1.5
    if name in ("+", "min", "y"):
        shape = f'<circle cx="{x:g}" cy="{y:g}" r="{width / 2:g}" {paint(fill, line, weight)}/>'
        return shape + text(x, y + 5.5, name, 20 if name == "+" else 15, ink, bold=True)
    shape = rect(left, top, width, height, 12, fill, line, weight)
    if name == "environments":
        behind = "".join(rect(left + d, top - d, width - 2 * d, 30, 10, fill, line, weight) for d in (10, 5))
        return behind + shape + text(x, y + 1, name, 14, ink, bold=True) + text(x, y + 20, detail, 12, soft)
    if name == "replay memory":
        fields = "".join(text(x, top + 203 + 17 * n, words, 12, soft) for n, words in enumerate(detail.split("|")))
        return shape + text(x, top + 28, name, 13, ink, bold=True) + ring(x, y - 14, line) + fields
    if kind == "optimiser":
        return shape + text(x, y - 1, name, 13, ink, bold=True) + text(x, y + 13, detail, 11, soft)
    if kind in ("learned", "target"):
        words = text(left + 36, y - 3, name, 13, ink, bold=True, anchor="start")
        return shape + neurons(left + 19, y, line) + words + text(left + 36, y + 17, detail, 13, soft, anchor="start")
    return shape + text(x, y + 5, name, 14, ink, bold=True)


def neurons(x: float, y: float, colour: str) -> str:
    """A tiny network: two, three and one neuron."""
    layers = [[(x - 8, y - 6), (x - 8, y + 6)], [(x, y - 12), (x, y), (x, y + 12)], [(x + 8, y)]]
    wires = [(a, b) for here, there in pairwise(layers) for a in here for b in there]
    path = "".join(f"M{a[0]:g} {a[1]:g}L{b[0]:g} {b[1]:g}" for a, b in wires)
    dots = "".join(f'<circle cx="{a:g}" cy="{b:g}" r="2.6" fill="{colour}"/>' for layer in layers for a, b in layer)
    return f'<path d="{path}" {paint("none", colour, 0.8)}/>{dots}'


def ring(x: float, y: float, colour: str) -> str:
    """Sixteen slots in a circle, and the head that writes the next one."""
    radius, slot = 38.0, 2 * 3.14159265 * 38.0 / 16
    whole = f'stroke-dasharray="{slot - 3:.2f} 3" opacity="0.45"'
    head = f'stroke-dasharray="{slot - 3:.2f} {15 * slot + 3:.2f}" transform="rotate(-90 {x:g} {y:g})"'
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {paint("none", colour, 13)} '
    return f"{circle}{whole}/>{circle}{head}/>"


def draw_link(link: Link, lit: bool) -> str:
    colour = COLOURS[link.kind][1] if lit else PALE_LINE
    dash = f' stroke-dasharray="{DASHES[link.kind]}"' if DASHES.get(link.kind) else ""
    points = list(link.points)
    (x0, y0), (x1, y1) = points[-2], points[-1]
    length = abs(x1 - x0) + abs(y1 - y0)  # lines are horizontal or vertical
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    tip = ""
    if link.head:
        x1, y1 = x1 - 3 * dx, y1 - 3 * dy  # a little air before the box
        base_x, base_y = x1 - 9 * dx, y1 - 9 * dy
        points[-1] = (base_x, base_y)
        corners = f"{x1:g},{y1:g} {base_x - 5 * dy:g},{base_y + 5 * dx:g} {base_x + 5 * dy:g},{base_y - 5 * dx:g}"
        tip = f'<polygon points="{corners}" fill="{colour}"/>'
    return f'<path d="{rounded(points)}" {paint("none", colour, 2.2 if lit else 1.6)}{dash}/>{tip}'


def rounded(points: list[Point], radius: float = 10) -> str:
    """A path whose corners are round."""
    path = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        enter, leave = towards(corner, before, radius), towards(corner, after, radius)
        path.append(f"L{enter[0]:g} {enter[1]:g}Q{corner[0]:g} {corner[1]:g} {leave[0]:g} {leave[1]:g}")
    return "".join(path) + f"L{points[-1][0]:g} {points[-1][1]:g}"


def towards(start: Point, end: Point, distance: float) -> Point:
    length = abs(end[0] - start[0]) + abs(end[1] - start[1])
    share = min(distance, length / 2) / length
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def label(link: Link, words: str) -> str:
    colour = COLOURS[link.kind][1]
    (x, y), narrow = link.label_at, sum(letter in "₁₂′" for letter in words)
    wide = 7.4 * (len(words) - narrow) + 4.4 * narrow + 13
    pill = rect(x - wide / 2, y - 9.5, wide, 19, 9.5, "#ffffff", colour, 1)
    return pill + text(x, y + 4.2, words, 12, colour, bold=True)


def badge(at: Point, number: str, radius: float) -> str:
    circle = f'<circle cx="{at[0]:g}" cy="{at[1]:g}" r="{radius + 1:g}" {paint(INK, CARD, 1.5)}/>'
    return circle + text(at[0], at[1] + 4, number, 11, "#ffffff", bold=True)


def legend() -> list[str]:
    y, drawn = HEIGHT - 30, []
    for x, kind, words in ((32, "learned", "learned"), (118, "target", "target")):
        drawn += [rect(x, y - 7, 18, 14, 4, *COLOURS[kind], 1.5), text(x + 26, y + 4, words, 12, SOFT, anchor="start")]
    for x, kind, words in ((200, "data", "data"), (282, "gradient", "gradient"), (390, "copy", "slow copy")):
        drawn += [
            draw_link(Link(kind, ((x, y), (x + 34, y)), (0, 0)), lit=True),
            text(x + 40, y + 4, words, 12, SOFT, anchor="start"),
        ]
    return drawn


def progress(number: str) -> list[str]:
    """Fifteen dots, the current one dark."""
    dots = []
    for n in range(1, 16):
        x, here = 586 + 23.6 * (n - 1), str(n) == number
        dots.append(f'<circle cx="{x:g}" cy="{HEIGHT - 30}" r="9.5" fill="{INK if here else "#e8ebf0"}"/>')
        dots.append(text(x, HEIGHT - 26, str(n), 10.5, "#ffffff" if here else SOFT, bold=here))
    return dots


def rect(
    x: float, y: float, width: float, height: float, radius: float, fill: str, line: str = "none", weight: float = 0
) -> str:
    box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}"'
    return f"<rect {box} {paint(fill, line, weight)}/>"


def paint(fill: str, line: str, weight: float) -> str:
    return f'fill="{fill}"' + (f' stroke="{line}" stroke-width="{weight:g}"' if line != "none" else "")


def text(x: float, y: float, words: str, size: float, colour: str, bold: bool = False, anchor: str = "middle") -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}"{weight}>{escape(words)}</text>'


if __name__ == "__main__":
    draw_all(Path(__file__).parent / "pictures")
