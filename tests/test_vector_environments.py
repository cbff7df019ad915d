"""Many environments, one memory: every way to run them gives the same transitions as one by one."""

import numpy as np
import pytest
from example_envs import Counting, Spaces, ends
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from td3.collection import Collector
from td3.environments import make_envs
from td3.errors import ConfigError, SpaceError

N = 4
SEEDS = [101, 202, 303, 404]


def vector(mode, kind=SyncVectorEnv, make=Counting):
    return lambda: kind([make] * N, autoreset_mode=mode)


def ways():
    found = {mode.name.lower(): (vector(mode), 1, 0) for mode in AutoresetMode}
    return {**found, "in process": (Counting, N, 0)}


def process_ways():
    return {f"async {mode.name.lower()}": (vector(mode, AsyncVectorEnv), 1, 0) for mode in AutoresetMode}


def play(env, num_envs, workers, steps=60):
    """Every stored row, as numbers, of a policy that depends on what it sees."""
    envs = make_envs(env, num_envs, workers)
    try:
        collector = Collector(envs, SEEDS, np.random.default_rng(0), 0, 0.0)
        rows = [collector.collect(lambda o: np.sin(o[:, :2] + o[:, 2:])).transitions for _ in range(steps)]
    finally:
        envs.close()
    stored = [
        np.concatenate([one[field].reshape(len(one.reward), [3, 2, 1, 3, 1][field]) for one in rows])
        for field in range(5)
    ]
    assert collector.steps == len(stored[0])
    return np.concatenate(stored, axis=1)


def one_by_one(steps):
    """The same environments, each alone: the oracle, with no vector in sight."""
    rows = []
    for seed in SEEDS:
        env = Counting()
        seen, _ = env.reset(seed=seed)
        for _ in range(steps):
            action = np.sin(seen[:2].astype(np.float32) + seen[2:].astype(np.float32))
            led_to, reward, terminated, truncated, _ = env.step(action)
            rows.append([*seen, *action, reward, *led_to, terminated])
            seen = env.reset()[0] if terminated or truncated else led_to
    return np.array(rows)


def check_adjacency(rows):
    """Each row is one step of one episode of one environment, and ends where it really ended."""
    before, after, terminated = rows[:, :3], rows[:, 6:9], rows[:, 9]
    assert (before[:, :2] == after[:, :2]).all()  # same environment, same episode
    assert (after[:, 2] == before[:, 2] + 1).all()  # the next step of it
    assert terminated.tolist() == [ends(one)[0] for one in after]
    assert sum(ends(one)[1] for one in after) > 0  # time limits are among them, and are no ends
    assert (rows[:, 5] == rows[:, 3]).all()  # the reward tells the action that was executed


def check_same_transitions(rows):
    known = {tuple(np.float32(row)) for row in one_by_one(60)}
    found = [tuple(np.float32(row)) for row in rows]
    assert len(set(found)) == len(found)  # none twice
    assert set(found) <= known
    for seed in SEEDS:  # and none left out on the way
        mine = sorted((row[1], row[2]) for row in found if row[0] == seed)
        everything = sorted((row[1], row[2]) for row in known if row[0] == seed)
        assert mine == everything[: len(mine)] and len(mine) >= 45


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

    with pytest.raises(SpaceError, match=r"autoreset_mode.*NEXT_STEP, .*says 'sometimes'"):
        make_envs(make)


def test_a_ready_made_vector_environment_has_its_own_number_of_environments():
    with pytest.raises(ConfigError, match=r"num_envs must be left alone or 4.*got 3"):
        make_envs(vector(AutoresetMode.NEXT_STEP), 3)
    with pytest.raises(ConfigError, match="workers must be 0"):
        make_envs(vector(AutoresetMode.NEXT_STEP), 2, workers=1)
