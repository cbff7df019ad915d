"""Environments in other processes: the same rows, and no failure that hangs, lies or leaves an orphan."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from example_envs import Counting, Unruly
from gymnasium.vector import AsyncVectorEnv
from many_envs import N, check_adjacency, check_same_transitions, play, process_ways
from refusals import UNSAID, refusal
from sessions import alive

from td3.environments import make_envs
from td3.errors import ConfigError, EnvironmentFailure
from td3.replay import Memory
from td3.types import Layout, Transitions

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that a worker need not import this file, and PyTorch


@pytest.mark.parametrize("way", list(process_ways()))
def test_every_row_is_one_step_of_one_episode_in_a_vectors_own_processes_too(way):
    rows = play(*process_ways()[way])
    check_adjacency(rows)
    check_same_transitions(rows)


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_workers_give_the_same_bytes_as_no_workers(workers):
    alone = play(Counting, N, 0)
    assert play(Counting, N, workers).tobytes() == alone.tobytes()


NAMED = {  # what a failure must name, beside the environment and the step
    "die": ("SIGKILL",),
    "exit": ("exit code", 7),
    "raise": ("step()", "KeyError", "no such joint", "example_envs.py"),
    "hang": ("step", "0.1 s"),
    "nan": ("observation['eye']", "nan", "index 1"),
    "nan reward": ("reward", "nan"),
    "shape": ("observation['eye']", (3,), (2,)),
    "dtype": ("observation['mode']", "float64", "int64"),
    "category": ("observation['mode']", 3, 2),
    "missing": ("observation['mode']", "missing"),
    "flag": ("terminated", "None"),
    "four": ("step()", "terminated", "truncated"),
}
LETHAL = ("die", "exit", "hang")


def play_until_failure(envs, memory, hangs=False):
    """Remembers what is played, as training does, until it fails at the fifth step."""
    seen = envs.reset([1, 2])
    for step in range(1, 20):
        if hangs and step == 5:
            envs.timeout = 0.1  # only now: a slow machine may take its time for the others
        result = envs.step(np.zeros((2, 1), np.float32))
        memory.add(
            Transitions.in_a_row(
                seen, np.zeros((2, 1), np.float32), result.reward, result.next_observation, result.terminated
            )
        )
        seen = result.observation


class ByPlace:
    """Makes well-behaved environments, but for the second one it is asked for."""

    def __init__(self, what):
        self.what, self.made = what, 0

    def __call__(self):
        self.made += 1
        return Unruly(self.what, after=4) if self.made == 2 else Unruly("raise", after=1_000)


@pytest.mark.parametrize("what", [what for what in NAMED if what not in LETHAL])
def test_a_misbehaving_environment_in_process_is_named_and_leaves_no_bad_row(what):
    envs, memory = make_envs(ByPlace(what), 2), Memory(100, Layout(5), 1)
    with refusal(EnvironmentFailure, "Environment 1", UNSAID, "step 5", *NAMED[what]):
        play_until_failure(envs, memory)
    assert len(memory) == 8 and np.isfinite(memory.columns["observation"][:8]).all()


@pytest.mark.parametrize("what", list(NAMED))
def test_a_misbehaving_worker_ends_in_one_error_and_leaves_no_orphan(what):
    envs, memory = make_envs(ByPlace(what), 2, workers=1, timeout=100), Memory(100, Layout(5), 1)
    processes = [worker.process for worker in envs._workers]
    whose = "Environments 0, 1" if what in LETHAL else "Environment 1"
    with refusal(EnvironmentFailure, whose, UNSAID, "step 5", *NAMED[what]):
        play_until_failure(envs, memory, hangs=what == "hang")
    envs.close()
    assert all(process.poll() is not None for process in processes)
    assert len(memory) == 8 and np.isfinite(memory.columns["observation"][:8]).all()


@pytest.mark.parametrize("what", ["die", "raise", "hang", "nan", "nan reward", "shape"])
def test_a_ready_made_asynchronous_vector_fails_as_clearly(what):
    make = partial(AsyncVectorEnv, [partial(Unruly, "raise", 1_000), partial(Unruly, what)], shared_memory=False)
    envs = make_envs(make, timeout=100)
    processes = list(envs.envs.processes)
    with pytest.raises(EnvironmentFailure, match=r"Environment .*1.*step 5: "):
        play_until_failure(envs, Memory(100, Layout(5), 1), hangs=what == "hang")
    envs.close()
    assert not any(process.is_alive() for process in processes)


def test_a_lambda_with_a_closure_and_what_was_registered_here_reach_the_workers():
    import gymnasium

    length = 3
    gymnasium.register("OnlyHere-v0", lambda: Unruly("raise", after=length))
    for env in (lambda: Unruly("raise", after=length), "OnlyHere-v0"):
        envs = make_envs(env, 2, workers=2)
        envs.reset([1, 2])
        assert envs.step(np.zeros((2, 1), np.float32)).valid.all()
        envs.close()
    del gymnasium.registry["OnlyHere-v0"]


def test_what_cannot_be_sent_to_a_worker_is_one_sentence():
    import threading

    lock = threading.Lock()
    with refusal(ConfigError, "env", UNSAID, "worker", "TypeError"):
        make_envs(lambda: lock and Unruly("raise"), 2, workers=1)


def test_an_environment_that_cannot_be_made_in_a_worker_is_one_sentence():
    def broken():
        raise FileNotFoundError("robot.xml")

    with refusal(ConfigError, "env", UNSAID, "FileNotFoundError", "robot.xml"):
        make_envs(broken, 2, workers=2)


PARENT = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from example_envs import Counting, Unruly
from td3.environments import make_envs
envs = make_envs({make}, 2, workers=2, timeout=600)
envs.reset([1, 2])
print(*(worker.process.pid for worker in envs._workers), flush=True)
{then}
"""


def start_parent(make, then):
    code = PARENT.format(tests=str(Path(__file__).parent), make=make, then=then)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    return parent, [int(pid) for pid in parent.stdout.readline().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("make", "then"),
    [
        ("Counting", "sys.stdin.read()"),
        ('lambda: Unruly("hang", 0)', "envs.step(np.zeros((2, 1), np.float32))"),
    ],
    ids=["waiting", "in a hanging step"],
)
def test_workers_do_not_outlive_a_killed_parent(make, then):
    parent, workers = start_parent(make, then)
    assert len(workers) == 2 and all(map(alive, workers))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    while any(map(alive, workers)):  # for ever, if they outlived it: then the time limit of the test ends it
        os.sched_yield()
