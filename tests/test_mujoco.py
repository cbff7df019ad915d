"""What MuJoCo warns of is told once, where the user looks; it is never a file in the working folder."""

import logging

import gymnasium
import mujoco
import numpy as np
import pytest
from gymnasium import spaces

from td3.environments import make_envs, mujoco_warnings

XML = "<mujoco><worldbody><body><joint type='slide'/><geom size='1'/></body></worldbody></mujoco>"


class Unstable(gymnasium.Env):
    """Its third step in each episode meets a position that is no number."""

    observation_space = spaces.Box(-1, 1, (1,), np.float64)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self.model = mujoco.MjModel.from_xml_string(XML)
        self.data = mujoco.MjData(self.model)

    def reset(self, *, seed=None, options=None):
        mujoco.mj_resetData(self.model, self.data)
        self.count = 0
        return np.zeros(1), {}

    def step(self, action):
        self.count += 1
        if self.count == 3:
            self.data.qpos[0] = np.nan
        mujoco.mj_step(self.model, self.data)
        return np.zeros(1), 0.0, self.count == 4, False, {}


@pytest.fixture(autouse=True)
def _nothing_logged_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(mujoco_warnings, "_logged", set())
    monkeypatch.chdir(tmp_path)
    yield
    assert list(tmp_path.iterdir()) == []  # no MUJOCO_LOG.TXT


def play(workers):
    envs = make_envs(Unstable, num_envs=2, workers=workers)
    try:
        envs.reset([0, 1])
        for _ in range(12):
            envs.step(np.zeros((2, 1), np.float32))
    finally:
        envs.close()


def test_an_unstable_simulation_is_logged_once_and_not_printed(caplog, capfd):
    play(workers=0)
    assert [(one.name, one.levelno) for one in caplog.records] == [("td3", logging.WARNING)]
    assert "QPOS at DOF 0" in caplog.text
    assert capfd.readouterr() == ("", "")


def test_an_unstable_simulation_in_a_worker_process_is_one_line_on_stderr(capfd):
    play(workers=1)
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and "QPOS at DOF 0" in err


def test_a_deprecation_in_a_tasks_file_is_hidden_and_kinds_are_told_apart(caplog):
    mujoco_warnings.handle_mujoco_warnings()
    warn = mujoco.get_mju_user_warning()
    warn("compiler attribute 'settotalmass' is deprecated and will be removed in a future release")
    assert caplog.records == []
    for kind, number in (("QPOS", 1), ("QPOS", 2), ("QACC", 1)):
        warn(f"Nan, Inf or huge value in {kind} at DOF {number}. The simulation is unstable.")
    assert [one.getMessage().count("QACC") for one in caplog.records] == [0, 1]


def test_a_handler_of_the_users_own_stays(caplog):
    heard, before = [], mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        play(workers=0)
    finally:
        mujoco.set_mju_user_warning(before)
    assert len(heard) == 6 and caplog.records == []


def test_a_log_handler_that_raises_does_not_end_the_process(monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(logging.Logger, "warning", fail)
    play(workers=0)


def test_half_cheetah_is_made_here_and_in_a_worker_without_a_word(caplog, capfd):
    """Newer versions of MuJoCo warn when they read its file."""
    for settings in ({}, {"workers": 1}):
        envs = make_envs("HalfCheetah-v5", **settings)
        envs.reset([0])
        envs.close()
    assert caplog.records == [] and capfd.readouterr() == ("", "")
