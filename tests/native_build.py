"""Compiles the native library's checks: the compiler, setup.py's flags, and running a command to its end."""

import ast
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY, CHECKS = ROOT / "td3/learner/native/source", ROOT / "tests/native"
COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)

# No kernels but the portable ones, whose source compiles in a second.
ABSENT = """
#include "kernels.h"
namespace td3 {
extern const Kernels wide_kernels;
const Kernels avx512_kernels = {"avx512", [] { return false; }, nullptr, nullptr, nullptr};
const Kernels avx2_kernels = {"avx2", [] { return false; }, nullptr, nullptr, nullptr};
const Kernels wide_kernels = {"wide", [] { return false; }, nullptr, nullptr, nullptr};
}
"""

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")


def flags_of_setup():
    """Returns the flags that setup.py compiles with."""
    (flags,) = (
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse((ROOT / "setup.py").read_text()))
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS"
    )
    return flags


def run(words, status=0, timeout=None):
    """Runs a command that must end with this status; returns its output. It ends the processes it started, too."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    assert process.returncode == status, f"{Path(words[0]).name} ended with {process.returncode}:\n{out}{err}"
    return out, err
