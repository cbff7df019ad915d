"""The versions that a result depends on."""

import contextlib
import functools
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from td3.version import VERSION


@functools.cache  # the texts that name them are long
def versions() -> dict[str, Any]:
    """What a result depends on besides the config; MuJoCo's physics changes between releases."""
    packages = ("torch", "numpy", "gymnasium", "mujoco", "safetensors")
    found: dict[str, Any] = {"td3": VERSION, "python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return {**found, "platform": f"{sys.platform} {platform.machine()}"}
