"""Published results of TD3 with their sources, to plot and print beside one's own.

The versions of an environment differ: v1 to v4 are not v5. In v5 Walker2d has another friction at one foot; Ant,
Hopper, Humanoid and Walker2d are rewarded only while they are healthy; Ant and Humanoid have other observations. A
figure is always shown with the version it was made with.
"""

import re
from typing import NamedTuple


class Source(NamedTuple):
    """Where figures come from."""

    label: str
    version: str  # of the environments
    seeds: int
    origin: str


class Figure(NamedTuple):
    """One published result: mean return of the last evaluation, and its standard deviation over seeds."""

    task: str
    step: int
    mean: float
    std: float | None
    source: Source


AUTHOR_2018 = Source(
    "author's curves of 2018", "v1", 10, "learning curves of sfujim/TD3, preset paper; the last evaluation of each seed"
)
AUTHOR_V5 = Source(
    "author's current code", "v5", 2, "sfujim/TD3, preset author, run with MuJoCo 3.11.0; last evaluation of each seed"
)
TIANSHOU = Source("Tianshou", "v3", 10, "learning curves of thu-ml/tianshou at c302433f; last evaluation of each seed")
CLEANRL = Source("CleanRL", "v4", 3, "benchmark table of vwxyzjn/cleanrl")
TD7 = Source("TD7 paper", "v4", 10, "Fujimoto et al. 2023, arXiv 2306.02451: its TD3 baseline")

_AT = (100_000, 300_000, 1_000_000)
_TABLE: dict[Source, dict[str, tuple[tuple[float, float | None] | None, ...]]] = {
    AUTHOR_2018: {
        "HalfCheetah": ((5514, 554), (7697, 727), (9567, 833)),
        "Hopper": ((659, 752), (2410, 900), (3391, 378)),
        "Walker2d": ((770, 586), (3335, 957), (4413, 1030)),
        "Ant": ((586, 185), (1953, 1014), (4243, 1098)),
        "Reacher": ((-5, None), (-4, None), (-4.2, 0.6)),
        "InvertedPendulum": ((1000, 0), (1000, 0), (1000, 0)),
        "InvertedDoublePendulum": ((7181, 3384), (8440, 2361), (8483, 2578)),
    },
    AUTHOR_V5: {"HalfCheetah": ((4704, 182), None, None)},
    TIANSHOU: {
        "HalfCheetah": ((5336, 376), (7546, 717), (10127, 692)),
        "Hopper": ((597, 288), (1583, 639), (3133, 772)),
        "Walker2d": ((483, 174), (1663, 445), (3842, 543)),
        "Ant": ((828, 224), (2836, 523), (4911, 918)),
        "Humanoid": ((503, 43), (2311, 776), (5043, 286)),
        "Swimmer": ((45, None), (59, None), (96, None)),
        "InvertedDoublePendulum": ((9316, None), (9051, None), (9333, None)),
    },
    CLEANRL: {
        "HalfCheetah": (None, None, (9583, 126)),
        "Hopper": (None, None, (3135, 360)),
        "Walker2d": (None, None, (4058, 659)),
        "Humanoid": (None, None, (5035, 22)),
    },
    TD7: {
        "HalfCheetah": (None, None, (10574, None)),
        "Hopper": (None, None, (3226, None)),
        "Walker2d": (None, None, (3946, None)),
        "Ant": (None, None, (3942, None)),
        "Humanoid": (None, None, (5165, None)),
    },
}
SOURCES = tuple(_TABLE)
FIGURES = tuple(
    Figure(task, step, *figure, source)
    for source, tasks in _TABLE.items()
    for task, figures in tasks.items()
    for step, figure in zip(_AT, figures, strict=True)
    if figure is not None
)

# Returns of a policy that acts at random, and of TD3 after 1M steps on v4: the ends that papers normalise by.
ENDS = {
    "HalfCheetah": (-289.0, 10574.0),
    "Hopper": (19.0, 3226.0),
    "Walker2d": (3.0, 3946.0),
    "Ant": (-70.0, 3942.0),
    "Humanoid": (120.0, 5165.0),
}
ENDS_SOURCE = (
    "0 is a random policy and 1 is TD3 after 1M steps, both on v4: DAVIAN-Robotics/SimbaV2, scale_rl/envs/mujoco.py, "
    "after arXiv 2306.02451"
)


def task_of(env: str) -> str | None:
    """Returns the task that an environment is a version of, as Ant for Ant-v5; None where it has no version."""
    found = re.fullmatch(r"(\w+)-v\d+", env)
    return found[1] if found else None


def figures_for(env: str, step: int) -> list[Figure]:
    """Returns what is published about an environment's task: of each source the last figure up to a step."""
    latest: dict[Source, Figure] = {}
    for figure in FIGURES:  # of each source in the order of steps
        if figure.task == task_of(env) and figure.step <= step:
            latest[figure.source] = figure
    return list(latest.values())
