"""Gymnasium's only door: ids and callables come in, checked float32 rows in fixed units go out.

Right of here every observation is a float32 vector and every action lies in [−1, 1]; nobody else knows
about spaces, bounds, autoreset modes or processes. Whatever an environment does wrong ends here, in one
`EnvironmentFailure` that names the environment, its step and the field.
"""

import os
import sys

# Without a display MuJoCo can only draw through EGL, and it chooses once, when it is first imported.
if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    os.environ.setdefault("MUJOCO_GL", "egl")

from td3.environments.making import make_worlds
from td3.environments.spaces import ActionMap, ObservationMap
from td3.environments.worlds import Worlds

__all__ = ["ActionMap", "ObservationMap", "Worlds", "make_worlds"]
