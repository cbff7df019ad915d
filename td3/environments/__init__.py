"""The only package that uses Gymnasium: ids and callables come in, checked rows in fixed units go out.

Outside of it every observation is a row of float32 numbers, or of bytes where there are images, and every action lies
in [−1, 1]; no other package knows spaces, bounds, autoreset modes or processes. Whatever an environment does wrong
ends here, in one `EnvironmentFailure` that names the environment, its step and the field.
"""

import contextlib
import ctypes
import os
import sys

# Without a display MuJoCo can draw only through EGL, where there is one, and it chooses once, when first imported.
if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    with contextlib.suppress(OSError):
        ctypes.CDLL("libEGL.so.1")
        os.environ.setdefault("MUJOCO_GL", "egl")
    # Those that draw with pygame would look for a screen and a sound card, and complain aloud that there is none.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")

from td3.environments.actions import ActionMap
from td3.environments.envs import Envs
from td3.environments.factory import (
    check_apart,
    in_this_process,
    make_envs,
    make_single,
    make_to_render,
    maker_to_render,
)
from td3.environments.observations import ObservationMap
from td3.environments.restarts import Restarts
from td3.environments.wrappers import Wrappers

__all__ = [
    "ActionMap",
    "Envs",
    "ObservationMap",
    "Restarts",
    "Wrappers",
    "check_apart",
    "in_this_process",
    "make_envs",
    "make_single",
    "make_to_render",
    "maker_to_render",
]
