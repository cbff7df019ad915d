"""Playing: what is executed is what is stored, noise is everybody's own, and only true ends are ends."""

import numpy as np
import pytest
from example_envs import Counting, ends, with_actions

from td3.collection import Collector
from td3.environments import make_envs
from td3.environments.serial import SerialEnvs
from td3.types import StepResult


def make_collector(envs, warmup=0, noise=0.1, seed=0):
    seeds = list(range(100, 100 + envs.num_envs))
    return Collector(envs, seeds, np.random.default_rng(seed), warmup, noise)


def steady(action):
    return lambda observation: np.full((len(observation), 2), action, np.float32)


def test_warm_up_is_uniform_over_the_whole_range_and_then_the_actor_plays():
    collector = make_collector(make_envs(Counting, 10), warmup=5_000)
    drawn = np.concatenate([collector.collect(steady(0.0)).transitions.action for _ in range(500)])
    assert collector.steps == 5_000
    assert np.histogram(drawn, 4, (-1, 1))[0] / drawn.size == pytest.approx(np.full(4, 0.25), abs=0.02)
    afterwards = collector.collect(steady(0.3)).transitions.action
    assert np.abs(afterwards - 0.3).max() < 0.5


def test_exploration_noise_has_its_size_and_differs_between_environments_and_dimensions():
    collector = make_collector(make_envs(Counting, 5), noise=0.1)
    drawn = np.stack([collector.collect(steady(0.25)).transitions.action for _ in range(400)]) - 0.25  # (400, 5, 2)
    assert drawn.std() == pytest.approx(0.1, rel=0.05)
    together = np.corrcoef(drawn.reshape(400, 10).T) - np.eye(10)
    assert np.abs(together).max() < 0.25


def test_the_action_stored_is_the_one_executed_and_stays_in_bounds():
    collector = make_collector(make_envs(Counting, 3), noise=2.0)
    for _ in range(50):
        rows = collector.collect(steady(0.9)).transitions
        assert np.abs(rows.action).max() <= 1
        assert rows.reward.tolist() == rows.action[:, 0].tolist()  # Counting pays what it was told to do


def test_stored_actions_map_to_what_an_environment_with_odd_bounds_received():
    env = with_actions([[-3, 0, 5], [1, -0.5, -2]], [[7, 1, 5], [2, 0.5, 9]])
    envs = SerialEnvs("odd", [env])
    collector = make_collector(envs, warmup=1_000)
    rows = [collector.collect(lambda observation: observation).transitions for _ in range(30)]
    executed = np.stack(env.actions)
    assert executed.shape == (30, 2, 3)
    assert (executed[:, 0, 2] == 5).all()  # low == high is a constant, and no choice of the agent's
    assert envs.action.size == 5
    stored = np.concatenate([row.action for row in rows])
    assert envs.action.to_env(stored) == pytest.approx(executed)
    low, high = np.array([-3, 0, 1, -0.5, -2]), np.array([7, 1, 2, 0.5, 9])
    by_hand = low + (stored + 1) / 2 * (high - low)
    assert by_hand == pytest.approx(executed.reshape(30, 6)[:, [0, 1, 3, 4, 5]], abs=1e-6)


def test_only_termination_is_stored_as_an_end():
    collector = make_collector(make_envs(Counting, 2))
    rows = [collector.collect(steady(0.0)).transitions for _ in range(100)]
    terminated = np.concatenate([row.terminated for row in rows])
    shown = np.concatenate([row.next_observation for row in rows])
    assert terminated.tolist() == [ends(one)[0] for one in shown]
    assert sum(ends(one)[1] for one in shown) > 10  # time limits there were


def test_episodes_are_tallied_with_their_return_and_length():
    collector = make_collector(make_envs(Counting, 2), noise=0.0)
    ended = [one for _ in range(12) for one in collector.collect(steady(0.5)).episodes]
    assert [one[:3] for one in ended] == [(0, 1.5, 3), (1, 1.5, 3), (0, 2.0, 4), (1, 2.0, 4), (0, 2.5, 5), (1, 2.5, 5)]
    assert [one.terminated for one in ended[::2]] == [True, False, True]  # every other one is truncated


class OnlyResets:
    """A vector environment whose second row is resetting in every second step."""

    name, num_envs = "resets", 2
    observation = make_envs(Counting).observation
    action = make_envs(Counting).action
    ticks = 0

    def reset(self, seeds):
        return np.zeros((2, 3), np.float32)

    def step(self, actions):
        self.ticks += 1
        valid = np.array([True, self.ticks % 2 == 1])
        no = np.zeros(2, np.bool_)
        return StepResult(
            np.ones((2, 3), np.float32), np.ones(2, np.float32), no, no, valid, np.ones((2, 3), np.float32)
        )

    def close(self):
        pass


def test_reset_ticks_are_neither_stored_nor_counted():
    collector = make_collector(OnlyResets())
    stored = [len(collector.collect(steady(0.0)).transitions.reward) for _ in range(6)]
    assert stored == [2, 1, 2, 1, 2, 1]
    assert collector.steps == 9
    assert collector._returns.tolist() == [6, 3] and collector._lengths.tolist() == [6, 3]
