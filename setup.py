"""Builds the native engine; where that fails, td3 installs without it and uses PyTorch alone."""

import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("td3/learner/native/source")

# Unlike -ffast-math these change no result; the kernels' loops need -O3 to be unrolled.
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0"]
SYSTEM = ["-mmacosx-version-min=11.0"] if sys.platform == "darwin" else []  # the first with C++17's aligned memory

# A plain C library, not a Python module; td3/learner/native/library.py loads it.
engine = Extension(
    "td3.learner.native._engine",
    sources=sorted(map(str, SOURCE.glob("*.cpp"))),
    depends=sorted(map(str, [*SOURCE.glob("*.h"), *SOURCE.glob("*.inl")])),
    language="c++",
    extra_compile_args=[*FLAGS, *SYSTEM],
    extra_link_args=["-pthread", *SYSTEM],
    optional=True,
)

setup(ext_modules=[engine])
