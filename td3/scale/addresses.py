"""The address of a Ray cluster, as a user gives it: `local`, `auto` or HOST:PORT."""

import contextlib
import socket

from td3.errors import ConfigError
from td3.wording import brief

LOCAL, AUTO = "local", "auto"
SECONDS = 5.0  # for a cluster to answer
WORDS = (
    "local (a cluster of this machine alone, for as long as the study), auto (the one this machine is in) or HOST:PORT"
)


def checked_address(text: str) -> str:
    """Returns an address that can be connected to; refuses any other in one sentence."""
    if text in (LOCAL, AUTO):
        return text
    if text.startswith("ray://"):
        raise ConfigError(
            "--ray takes no ray:// address, for then no process of the cluster would own the runs: start this command "
            "on a node of the cluster with --ray auto, or give it to the cluster with "
            f"ray job submit --address http://HEAD:8265 -- td3 study … --ray auto; got {brief(text)}."
        )
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise ConfigError(f"--ray must be {WORDS}; got {brief(text)}.")
    return text


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine alone. Ray must know that before it is imported."""
    return address.rpartition(":")[0].startswith(("127.", "localhost", "[::1]", "::1"))


def check_answers(address: str, seconds: float = SECONDS) -> None:
    """Refuses HOST:PORT where nothing listens: Ray itself would wait for it for a long time."""
    if address in (LOCAL, AUTO):
        return
    host, _, port = address.rpartition(":")
    try:
        with contextlib.closing(socket.create_connection((host.strip("[]"), int(port)), seconds)):
            pass
    except OSError as problem:
        why = problem.strerror or str(problem) or "no answer"
        raise ConfigError(
            f"--ray {address} does not answer ({why}): is the cluster up (ray start --head), and is this its address?"
        ) from None
