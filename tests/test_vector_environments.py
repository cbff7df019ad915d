"""Many environments, one memory: every way to run them gives the same transitions as one by one."""

import numpy as np
import pytest
from example_envs import Counting, Spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from many_envs import SEEDS, N, check_adjacency, check_same_transitions, play, vector, ways
from refusals import UNSAID, refusal

from td3.environments import make_envs
from td3.errors import ConfigError, SpaceError


@pytest.mark.parametrize("way", list(ways()))
def test_every_row_is_one_step_of_one_episode(way):
    rows = play(*ways()[way])
    check_adjacency(rows)
    check_same_transitions(rows)


def test_the_rows_differ_only_by_the_resets_that_a_mode_spends_ticks_on():
    counts = {way: len(play(*how)) for way, how in ways().items()}
    assert counts["in process"] == counts["same_step"] == counts["disabled"] == 60 * N
    # episodes of 3, 4, 5, 6, 7 steps, each with one step lost behind it: two rounds are exactly 60 steps
    assert counts["next_step"] == 50 * N


def test_dict_observations_keep_their_final_part_in_same_step_mode():
    from gymnasium import spaces

    space = spaces.Dict(
        {"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3), "c": spaces.Tuple([spaces.Box(0, 1, ())])}
    )
    make = lambda: Spaces(space, spaces.Box(-1, 1, (2,)))
    envs = make_envs(vector(AutoresetMode.SAME_STEP, make=make))
    envs.reset(SEEDS)
    results = [envs.step(np.zeros((N, 2), np.float32)) for _ in range(10)]
    envs.close()
    assert results[-1].truncated.all() and results[-1].next_observation.shape == (N, 6)
    assert (results[-1].next_observation != results[-1].observation).any(axis=1).all()
    assert (results[0].next_observation == results[0].observation).all()


def test_an_unknown_autoreset_mode_is_refused():
    def make():
        envs = SyncVectorEnv([Counting] * 2)
        envs.metadata = {**envs.metadata, "autoreset_mode": "sometimes"}
        return envs

    with refusal(SpaceError, "autoreset_mode", "sometimes", "NEXT_STEP"):
        make_envs(make)


def test_a_ready_made_vector_environment_has_its_own_number_of_environments():
    with refusal(ConfigError, "num_envs", 3, 4):
        make_envs(vector(AutoresetMode.NEXT_STEP), 3)
    with refusal(ConfigError, "workers", UNSAID, 0):
        make_envs(vector(AutoresetMode.NEXT_STEP), 2, workers=1)
