"""MuJoCo's warnings. By default it prints each and appends it to MUJOCO_LOG.TXT in the user's working folder."""

import contextlib
import logging
import re

_logged: set[str] = set()  # kinds of warnings


def handle_mujoco_warnings() -> None:
    """Sends MuJoCo's warnings of this process to `log_once`; a handler that the user has set stays."""
    with contextlib.suppress(Exception):  # no MuJoCo, or one that cannot be imported: its own tasks will say so
        import mujoco

        if mujoco.get_mju_user_warning() is None:
            mujoco.set_mju_user_warning(log_once)


def log_once(warning: str) -> None:
    """Logs the first warning of each kind, but no deprecation: it concerns the author of a task, not its user.

    Never raises: MuJoCo would abort the process.
    """
    with contextlib.suppress(Exception):
        kind = re.split(r"\d", warning, maxsplit=1)[0]  # up to the number of a joint, or a time
        if "deprecated" not in kind and kind not in _logged:
            _logged.add(kind)
            logging.getLogger("td3").warning("MuJoCo warns: %s Further warnings of this kind are hidden.", warning)
