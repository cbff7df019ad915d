"""What of a node must be as it is here for its runs to have the same bytes, and what is only worth a note."""

import contextlib
import socket
from typing import Any, NamedTuple

from td3.errors import ConfigError
from td3.storage.versions import versions

MUST = ("td3", "python", "gymnasium", "mujoco", "torch")
WORTH_A_NOTE = ("numpy", "kernels", "platform")


class Setup(NamedTuple):
    """A node, and the versions that it has."""

    host: str
    versions: dict[str, Any]


def setup() -> Setup:
    """Returns the versions of this machine."""
    return Setup(socket.gethostname(), {**versions(), "python": ".".join(versions()["python"].split(".")[:2])})


def setup_with_kernels() -> Setup:
    """Returns the versions of this machine, and loads the native engine to know its kernels."""
    found = setup()
    with contextlib.suppress(Exception):
        from td3.learner.native.library import kernels

        found.versions["kernels"] = kernels()
    return found


def check_setup(here: Setup, there: Setup) -> list[str]:
    """Refuses a node that would train differently; returns notes on what may."""
    for name in MUST:
        ours, theirs = here.versions.get(name), there.versions.get(name)
        if ours != theirs:
            raise ConfigError(
                f"{name} is {theirs or 'not installed'} on node {there.host} and {ours or 'not installed'} here: runs "
                "would differ. Install the same version on both."
            )
    return [
        f"{name} is {there.versions[name]} on node {there.host} and {here.versions.get(name, 'unknown')} "
        "here: runs that it trains may differ in their last bits."
        for name in WORTH_A_NOTE
        if name in there.versions and here.versions.get(name) != there.versions[name]
    ]
