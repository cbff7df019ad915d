"""Which engines are here: tests of the native one are skipped where it was not built."""

import pytest

from td3.learner.native import library

WHY_NOT = ""
try:
    library.kernels()
except library.Missing as problem:
    WHY_NOT = f"there is no native engine here, for {problem}"

needs_native = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
BOTH = [pytest.param("native", marks=needs_native), "torch"]
