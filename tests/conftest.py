"""What every test shares: small settings, and one thread so that the order of sums never changes."""

import os

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)
