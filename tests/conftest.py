"""What every test shares: small settings, and one thread so that the order of sums never changes."""

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _power_stays_on():
    """No test cuts the power: what is written need not reach the disk, which may be slow or busy with others."""
    with pytest.MonkeyPatch.context() as change:
        change.setattr(os, "fsync", lambda file: None)
        yield
