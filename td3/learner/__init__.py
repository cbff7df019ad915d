"""The learner: `td3.py` is the page with the fifteen steps; all else here serves it.

The update is a function of networks, batch and noise: whoever draws those owns the randomness. A faster
performer may stand beside the page, on the same parameter memory, if `td3 selftest` finds no difference.
"""

from td3.learner.td3 import Learner

# Who can perform the update, by the name in `Config.engine`; `auto` takes the first that applies.
ENGINES: dict[str, type[Learner]] = {"torch": Learner}

__all__ = ["ENGINES", "Learner"]
