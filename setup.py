"""Builds the native engine; where that cannot be done, td3 installs without it and learns with PyTorch alone."""

import sys
from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("td3/learner/native/source")

# Unlike -ffast-math these change no result; the kernels' loops must be unrolled, which -O2 does not do.
FLAGS = ["-std=c++17", "-O3", "-fno-math-errno", "-fvisibility=hidden", "-Wno-psabi", "-pthread", "-g0"]
SYSTEM = ["-mmacosx-version-min=11.0"] if sys.platform == "darwin" else []  # where C++17's aligned memory begins

# Not a Python module but a plain library, loaded by td3/learner/native/library.py.
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
