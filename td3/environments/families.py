"""Known families of environments that need a further package: their ids, and the module that registers them."""

from importlib.util import find_spec
from typing import NamedTuple


class Family(NamedTuple):
    """Environments of one package."""

    name: str
    ids: tuple[str, ...]  # how their ids begin
    module: str  # that registers them: what stands before the colon; nothing where Gymnasium does itself
    requires: str  # a module that is there once the package is
    install: str  # what pip installs


FAMILIES = (
    Family("dm_control", ("dm_control/",), "shimmy", "dm_control", "shimmy[dm-control]"),
    Family(
        "Gymnasium-Robotics",
        (
            *("FetchReach", "FetchPush", "FetchSlide", "FetchPickAndPlace", "HandReach", "HandManipulate"),
            *("AdroitHand", "AntMaze_", "PointMaze_", "FrankaKitchen"),
        ),
        "gymnasium_robotics",
        "gymnasium_robotics",
        "gymnasium-robotics",
    ),
    Family("Box2D", ("LunarLander", "BipedalWalker", "CarRacing"), "", "Box2D", "gymnasium[box2d]"),
)


def family_advice(env: str) -> str:
    """Says what an id of a known family lacks: its package, or the module before it; '' for any other id."""
    module, _, name = env.rpartition(":")
    for family in FAMILIES:
        if name.startswith(family.ids) and module in ("", family.module):
            id_ = f"{family.module}:{name}" if family.module else name
            needs_install = not _installed(family)
            if not needs_install and id_ == env:
                return ""  # something else is wrong with it
            install = f"pip install '{family.install}'" if needs_install else ""
            use = f"use {id_}" if id_ != env else ""
            return f"it is one of {family.name}: {', then '.join(filter(None, [install, use]))}."
    return ""


def _installed(family: Family) -> bool:
    return all(find_spec(module) is not None for module in (family.module, family.requires) if module)
