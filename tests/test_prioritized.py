"""Prioritised replay: draws follow the priorities, sums follow the rows, and both come back to the bit."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from engines import needs_native
from refusals import refusal
from runs import SMALL, contents
from tiny import batch, no_noise, tiny

import td3
from td3.config import Config
from td3.learner import Learner
from td3.learner.losses import lap_loss
from td3.learner.native.engine import NativeLearner
from td3.replay import Memory, PrioritizedSampler
from td3.replay.prioritized import LARGEST, BlockSums
from td3.types import Layout, Transitions

close = pytest.approx


def rows(count):
    n = np.arange(count, dtype=np.float32)
    return Transitions.in_a_row(n[:, None], n[:, None], n, n[:, None], n > count)


def sampler_with(count, capacity=None, **settings):
    """A sampler of a memory in which so many rows were just written."""
    memory = Memory(capacity or count, Layout(1), 1)
    sampler = PrioritizedSampler(memory, **settings)
    memory.add(rows(count))
    sampler.added(np.arange(count))
    return sampler


def update_with(errors1, errors2=None):
    """An update in which both critics had these errors."""
    q1 = torch.tensor(errors1, dtype=torch.float32)
    q2 = torch.tensor(errors2 if errors2 is not None else errors1, dtype=torch.float32)
    return SimpleNamespace(q1=q1, q2=-q2, target=torch.zeros_like(q1))


def give(sampler, errors):
    sampler.updated(np.arange(len(errors)), update_with(errors))


@pytest.mark.parametrize("count", [7, 1_500, 40_000])  # one level of sums, two, and three
def test_draws_follow_the_priorities(count):
    sampler = sampler_with(count)
    errors = np.random.default_rng(1).exponential(30.0, count)
    errors[: count // 3] = 0.0  # below the floor: as likely as 1
    give(sampler, errors)
    draws = 200_000
    indices = np.concatenate([sampler.sample(np.random.default_rng(seed), draws // 4) for seed in range(4)])
    priority = np.maximum(errors, 1) ** 0.4
    order = np.argsort(priority, kind="stable")
    groups = np.array_split(order, min(count, 50))  # rows of like priorities: each group is expected often
    near = np.array_split(np.arange(count), min(count, 50))  # and neighbours, which share their sums
    for parts in (groups, near):
        expected = np.array([priority[part].sum() for part in parts]) / priority.sum() * draws
        counts = np.bincount(indices, minlength=count)
        drawn = np.array([counts[part].sum() for part in parts])
        chi2, freedom = ((drawn - expected) ** 2 / expected).sum(), len(parts) - 1
        assert chi2 < freedom + 5 * np.sqrt(2 * freedom)  # five standard deviations


def test_a_priority_is_the_larger_error_at_least_the_floor_to_the_power_alpha():
    sampler = sampler_with(4, alpha=0.5, floor=2.0)
    sampler.updated(np.array([0, 2, 3]), update_with([0.0, 9.0, 1.0], [-1.0, -4.0, 16.0]))
    assert sampler.priority.tolist() == close([2**0.5, 2**0.5, 3.0, 4.0])  # row 1 was not in the batch


def test_a_new_row_has_the_largest_priority_so_far_until_that_is_measured_again():
    sampler = sampler_with(4, capacity=8)
    assert sampler.priority.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]  # the floor's, before any error is known
    sampler.updated(np.array([0, 1]), update_with([32.0, 2.0]))
    sampler.updated(np.array([0]), update_with([1.0]))
    sampler.memory.add(rows(1))
    sampler.added(np.array([4]))
    assert sampler.priority[[0, 1, 4]].tolist() == close([1, 2**0.4, 4.0])
    sampler.updated(np.array([4]), update_with([1.0]))
    sampler.measure_largest()
    sampler.memory.add(rows(1))
    sampler.added(np.array([5]))
    assert sampler.priority[5] == close(2**0.4)


def test_the_sums_stay_those_of_the_rows_and_come_back_to_the_bit():
    sampler = sampler_with(40_000)
    rng = np.random.default_rng(0)
    for _ in range(300):
        indices = sampler.sample(rng, 64)
        sampler.updated(indices, update_with(rng.exponential(1e4, 64)))
        sampler.added(rng.integers(40_000, size=3))
    resumed = sampler_with(40_000)
    resumed.restore({name: array.copy() for name, array in sampler.capture().items()})
    assert resumed.largest == sampler.largest
    assert np.array_equal(
        resumed.sample(np.random.default_rng(9), 1_000), sampler.sample(np.random.default_rng(9), 1_000)
    )
    for mine, other in zip(resumed.sums.levels, sampler.sums.levels, strict=True):
        assert np.array_equal(mine, other)
    blocks = sampler.priority.reshape(-1, 32).sum(axis=1, dtype=np.float64)
    assert sampler.sums.levels[1][: len(blocks)] == close(blocks, rel=1e-15)


def test_a_share_is_found_where_the_running_sum_passes_it():
    sums = BlockSums(3_000)
    sums.numbers[[0, 31, 32, 2_999]] = [1, 2, 3, 2]
    sums.add_up_all()
    shares = np.array([0.0, 0.124, 0.125, 0.374, 0.375, 0.749, 0.75, 1 - 2**-53])
    assert sums.find(shares).tolist() == [0, 0, 31, 31, 32, 32, 2_999, 2_999]


def test_an_error_that_is_no_number_hides_no_other_row():
    sampler = sampler_with(4)
    give(sampler, [np.nan, np.inf, 1.0, 5.0])
    assert sampler.priority[:2].tolist() == [LARGEST, LARGEST] and np.isfinite(sampler.largest)
    assert set(sampler.sample(np.random.default_rng(0), 1_000)) == {0, 1}


def test_the_loss_is_quadratic_below_the_floor_and_straight_above():
    config = Config(env="X-v0", sampling="lap", priority_floor=2.0)
    q = torch.tensor([0.5, -1.0, 3.0, -6.0], requires_grad=True)
    loss = lap_loss(q, torch.zeros(4), config)
    assert loss.item() == close((0.125 + 0.5 + 6 + 12) / 4)
    loss.backward()
    assert q.grad.tolist() == close([0.5 / 4, -1 / 4, 2 / 4, -2 / 4])  # at most the floor


def test_the_critics_learn_by_the_huber_loss_only_with_sampling_lap():
    given = batch(s=(1.0, 0.0), a=(-0.5, 0.25), r=(1.0, 2.0), terminated=(1.0, 1.0))
    done = tiny(sampling="lap").update(given, no_noise(2))  # Q1 2.5 and 2.25, Q2 2.0 and 1.5
    assert done.critic_loss.item() == close((1.5 + 0.25**2 / 2) / 2 + (1.0 + 0.5**2 / 2) / 2)


LAP = {"sampling": "lap", "engine": "torch"}


@pytest.mark.parametrize(
    "settings", [{}, {"num_envs": 3}, {"n_step": 3}, {"pixels": 8, "frame_stack": 2}, {"history": 2}], ids=str
)
def test_a_stopped_run_continues_to_the_same_bytes(settings, tmp_path):
    config = Config(**{**SMALL, **LAP, **settings})
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    list(td3.train(config, whole))
    for event in td3.train(config, stopped):
        if isinstance(event, td3.Stepped) and event.step >= 69:
            break
    list(td3.resume(stopped))
    assert contents(whole) == contents(stopped)
    saved = np.frombuffer(contents(whole)[0]["sampler.priority"], np.float32)
    assert len(saved) == 100 and len(set(saved)) > 20  # most rows were sampled, and have their own


def test_every_error_of_a_batch_reaches_its_row():
    training = td3.train(Config(**{**SMALL, **LAP, "eval_every": 0, "steps": 60}))
    for _ in training:
        pass
    learner = training.learner
    indices = np.arange(len(learner.memory))
    before = learner.sampler.priority.copy()
    sample = learner.sample(np.random.default_rng(0), np.random.default_rng(1))
    assert learner.memory.can_sample(sample.indices).all() and len(indices) == 60
    update = learner.learn(np.random.default_rng(0), np.random.default_rng(1))
    error = torch.maximum((update.q1 - update.target).abs(), (update.q2 - update.target).abs()).numpy()
    last = {int(index): max(value, 1.0) ** 0.4 for index, value in zip(sample.indices, error, strict=True)}
    for index in indices:
        assert learner.sampler.priority[index] == close(last.get(int(index), before[index]), rel=1e-6)


def test_a_damaged_or_foreign_state_is_refused():
    sampler = sampler_with(4)
    good = sampler.capture()
    for name, wrong in (
        ("priority", np.ones(3, np.float32)),
        ("priority", np.ones(4)),
        ("priority", np.array([1, 1, -1, 1], np.float32)),
        ("largest", np.array(np.nan, np.float32)),
    ):
        with pytest.raises(ValueError, match=name):
            sampler.restore({**good, name: wrong})


def test_a_sampler_of_your_own_and_sampling_lap_exclude_each_other():
    with refusal(td3.ConfigError, "sampling", "lap"):
        next(td3.train(Config(**SMALL, **LAP), sampler=Own))


class Own(td3.UniformSampler):
    """A sampler of the user's own."""


@needs_native
def test_both_engines_learn_alike_by_errors():
    config = Config(env="X-v0", hidden=(16, 12), batch_size=32, buffer_size=64, sampling="lap", priority_floor=0.7)
    learners = [kind(Layout(3), 2, config, 0) for kind in (Learner, NativeLearner)]
    rng = np.random.default_rng(0)
    wide = [rng.standard_normal((64, size)).astype(np.float32) for size in (3, 2, 3)]
    reward, ends = 3 * rng.standard_normal(64).astype(np.float32), rng.random(64) < 0.1
    means = []
    for learner in learners:
        learner.store(Transitions.in_a_row(wide[0], np.clip(wide[1], -1, 1), reward, wide[2], ends))
        rngs = np.random.default_rng(1), np.random.default_rng(2)
        means.append([learner.learn(*rngs).means()[0].item() for _ in range(50)])
    assert means[0] == close(means[1], rel=1e-4)
    assert learners[0].sampler.priority == close(learners[1].sampler.priority, rel=1e-4)
    assert len(set(learners[0].sampler.priority)) > 30
    for name, network in learners[0].networks().items():
        for one, other in zip(network.parameters(), learners[1].networks()[name].parameters(), strict=True):
            assert (one - other).abs().max() <= 1e-4 * one.abs().max()


@needs_native
def test_the_native_engine_resumes_to_the_same_bytes(tmp_path):
    config = Config(**{**SMALL, "sampling": "lap", "engine": "native"})
    list(td3.train(config, tmp_path / "whole"))
    for event in td3.train(config, tmp_path / "stopped"):
        if isinstance(event, td3.Stepped) and event.step == 70:
            break
    list(td3.resume(tmp_path / "stopped"))
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
