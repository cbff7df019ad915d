"""Many environments played at once, in every way there is, and what must be true of the rows."""

import numpy as np
from example_envs import Counting, ends
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from td3.collection import Collector
from td3.environments import make_envs

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
