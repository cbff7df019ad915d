"""What every test shares: small settings, and one thread so that the order of sums never changes."""

import os
import signal

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

# Where the tests are started in the background or by nohup these are ignored, and would be by all they start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)

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
