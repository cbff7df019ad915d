"""Loads the compiled library, if this installation has one, and declares its functions; see source/interface.h."""

import ctypes
import functools
import os
import sysconfig
from ctypes import POINTER, Structure, c_char_p, c_double, c_int64, c_void_p
from pathlib import Path
from typing import Any

INTERFACE = 5  # of source/interface.h
FOLDER = Path(__file__).parent
FORCE = "TD3_KERNELS"  # the environment variable that forces kernels other than the best


class Missing(Exception):
    """Why there is no native library here, in one sentence."""


class Tensor(Structure):
    """Holds the addresses of one parameter, its two moments and step count in Adam, and its target."""

    _fields_ = [(name, c_void_p) for name in ("value", "mean", "square", "step", "target")]


class Shape(Structure):
    """Holds the sizes of the networks."""

    _fields_ = [
        ("observations", c_int64),
        ("actions", c_int64),
        ("layers", c_int64),
        ("hidden", POINTER(c_int64)),
    ]


class Memory(Structure):
    """Holds the addresses of the columns that a batch is read from."""

    _fields_ = [
        (name, c_void_p) for name in ("observation", "action", "reward", "next_observation", "terminated", "discount")
    ]


# What an update reads of a Config, and the floor of its loss.
SETTINGS = ("gamma", "tau", "target_noise", "noise_clip", "actor_lr", "critic_lr", "loss_floor")


class Settings(Structure):
    """Holds the settings of an update."""

    _fields_ = [(name, c_double) for name in SETTINGS]


class TD7Shape(Structure):
    """Holds the sizes of the networks of TD7."""

    _fields_ = [
        *((name, c_int64) for name in ("observations", "actions", "embedding")),
        *((name, c_int64) for name in ("embedding_layers", "actor_layers", "critic_layers")),
        *((name, POINTER(c_int64)) for name in ("embedding_hidden", "actor_hidden", "critic_hidden")),
    ]


class TD7Settings(Structure):
    """Holds the settings of an update of TD7."""

    _fields_ = [
        *((name, c_double) for name in ("gamma", "rate", "target_noise", "noise_clip", "actor_lr", "critic_lr")),
        *((name, c_double) for name in ("loss_floor", "embedding_lr", "low", "high")),
        *((name, c_int64) for name in ("clip_targets", "both_critics")),
    ]


@functools.cache
def library() -> Any:
    """Loads the library and returns its functions; calling one releases the global interpreter lock."""
    path = FOLDER / f"_engine{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not path.exists():
        raise Missing("it could not be built when td3 was installed: install a C++ compiler, then td3 again")
    try:
        functions = ctypes.CDLL(str(path))
        functions.td3_interface.restype = c_int64
        if functions.td3_interface() != INTERFACE:
            raise Missing(f"{path.name} was built for another version of td3: install td3 again")
    except (OSError, AttributeError) as problem:
        raise Missing(f"{path.name} cannot be loaded: {problem}") from None
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "td3_tested": (c_char_p, []),
        "td3_kernels": (c_char_p, [c_int64]),
        "td3_new": (c_void_p, [c_char_p, POINTER(Shape), c_int64, c_int64]),
        "td3_free": (None, [c_void_p]),
        "td3_bind": (None, [c_void_p, POINTER(Tensor), POINTER(Tensor)]),
        "td3_refresh": (None, [c_void_p]),
        "td3_update": (None, [*[c_void_p] * 5, c_int64, c_void_p, c_void_p]),
        "td3_act": (c_int64, [c_void_p, c_void_p, c_int64, c_void_p]),
        "td7_new": (c_void_p, [c_char_p, POINTER(TD7Shape), c_int64, c_int64]),
        "td7_free": (None, [c_void_p]),
        "td7_bind": (None, [c_void_p, *[POINTER(Tensor)] * 4]),
        "td7_update": (None, [*[c_void_p] * 5, c_int64, c_int64, c_void_p, c_void_p]),
        "td7_act": (c_int64, [c_void_p, c_void_p, c_int64, c_void_p]),
        "td3_peak": (c_double, [c_char_p, c_int64, c_double]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    return functions


def kernels() -> str:
    """Returns the kernels in use: the best this processor has, or those that the environment variable forces."""
    names: list[str] = []
    while (name := library().td3_kernels(len(names))) is not None:
        names.append(name.decode())
    forced = os.environ.get(FORCE)
    if forced and forced not in names:
        raise Missing(f"{FORCE} must be one of {', '.join(names)} on this processor; got {forced!r}")
    return forced or names[0]


def tested() -> dict[str, str]:
    """Returns the Python functions that the library stands in for, each with the fingerprint it was tested with."""
    return dict(line.split() for line in library().td3_tested().decode().splitlines())


def peak(threads: int, seconds: float) -> float:
    """Measures the GFLOPS of fused multiply-adds alone, all threads together."""
    result: float = library().td3_peak(kernels().encode(), threads, seconds)
    return result
