"""The fifteen steps, one test each, against numbers worked out by hand (see `tiny`)."""

import numpy as np
import pytest
import torch
from tiny import LR, batch, no_noise, numbers, same, tiny

from td3.config import Config
from td3.learner import Learner
from td3.types import Layout, Transitions

close = pytest.approx


def rows(first, count):
    """Transitions whose every field tells their number."""
    n = np.arange(first, first + count, dtype=np.float32)
    return Transitions.in_a_row(n[:, None], n[:, None] / 100, 10 * n, n[:, None] + 0.5, n % 2 == 1)


def test_step_01_the_memory_is_a_ring_that_forgets_the_oldest_first():
    memory = tiny().memory
    assert memory.capacity == 8 and len(memory) == 0
    memory.add(rows(0, 5))
    memory.add(rows(5, 5))
    assert len(memory) == 8
    held = memory.batch(np.arange(8))
    assert held.observation[:, 0].tolist() == [8, 9, 2, 3, 4, 5, 6, 7]
    assert held.reward.tolist() == [80, 90, 20, 30, 40, 50, 60, 70]
    assert held.next_observation[:, 0].tolist() == [8.5, 9.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    assert held.action[:, 0].tolist() == close([0.08, 0.09, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07])
    assert held.terminated.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_step_02_the_actor_and_its_target_are_born_equal_and_speak_in_minus_one_to_one():
    learner = Learner(Layout(3), 2, Config(env="X-v0", hidden=(8, 8), buffer_size=1), 0)
    assert same(numbers(learner.actor), numbers(learner.actor_target))
    shared = {p.data_ptr() for p in learner.actor.parameters()} & {
        p.data_ptr() for p in learner.actor_target.parameters()
    }
    assert not shared
    assert not any(p.requires_grad for p in learner.actor_target.parameters())
    far = learner.act(np.array([[1e4, -1e4, 1e4], [0, 0, 0]], np.float32))
    assert far.shape == (2, 2) and np.abs(far).max() <= 1
    assert tiny().act(np.array([[1.0]], np.float32))[0, 0] == close(np.tanh(1.5))  # tanh(0.5 · (1 + 2))


def test_step_03_the_critics_are_born_different_and_each_target_equal_to_its_critic():
    learner = Learner(Layout(3), 2, Config(env="X-v0", hidden=(8, 8), buffer_size=1), 0)
    for tensor in numbers(learner.critics):
        assert not torch.equal(tensor[0], tensor[1])
    assert same(numbers(learner.critics), numbers(learner.critic_targets))
    assert not any(p.requires_grad for p in learner.critic_targets.parameters())
    q1, q2 = learner.critics(torch.ones(5, 3), torch.ones(5, 2))
    assert q1.shape == q2.shape == (5,)  # one number per row
    q1, q2 = tiny().critics(torch.tensor([[1.0]]), torch.tensor([[0.5]]))
    assert (q1.item(), q2.item()) == close((3.5, 4.0))  # 1 + 0.5 + 2, and 2 · 3.5 − 3


def test_step_04_a_batch_is_drawn_uniformly_with_replacement_from_what_was_written():
    learner = tiny(batch_size=30_000)
    for column in list(learner.memory.columns.values())[:4]:
        column[:] = np.nan  # a slot that was never written must never be seen
    learner.memory.add(rows(0, 5))
    indices, noise, _ = learner.sample(np.random.default_rng(1), np.random.default_rng(2))
    drawn = learner.memory.batch(indices)
    seen, counts = np.unique(drawn.observation.numpy(), return_counts=True)
    assert seen.tolist() == [0, 1, 2, 3, 4]
    assert counts / 30_000 == close(np.full(5, 0.2), abs=0.01)
    assert torch.equal(drawn.reward, 10 * drawn.observation[:, 0])  # the fields of a row stay together
    assert torch.equal(drawn.next_observation, drawn.observation + 0.5)
    assert noise.shape == drawn.action.shape
    assert (noise.mean().item(), noise.std().item()) == close((0, 1), abs=0.02)
    again, *_ = learner.sample(np.random.default_rng(1), np.random.default_rng(2))
    assert again.tolist() == indices.tolist()


def test_step_05_the_actor_target_plays_the_next_action():
    done = tiny().update(batch(s2=(0.0, 2.0)), no_noise(2))
    assert done.next_action[:, 0].tolist() == close([np.tanh(0.5), np.tanh(1.0)])  # not the actor's 1.0 and 2.0


def test_step_06_every_row_gets_its_own_clipped_noise_and_stays_in_bounds():
    learner = Learner(Layout(1), 2, Config(env="X-v0", hidden=(1,), buffer_size=1), 0)
    with torch.no_grad():
        for one in learner.actor_target.parameters():
            one.zero_()
        learner.actor_target.layers[-1].bias.copy_(torch.atanh(torch.tensor([0.0, 0.9])))
    given = batch(s2=(0.0, 0.0, 0.0))._replace(action=torch.zeros(3, 2))
    noise = torch.tensor([[1.0, -1.0], [9.0, 0.25], [-9.0, 9.0]])
    done = learner.update(given, noise)
    expected = [[0.2, 0.7], [0.5, 0.95], [-0.5, 1.0]]  # 0.2 · noise, at most 0.5 either way, then within ±1
    assert done.next_action.numpy() == close(np.array(expected), abs=1e-6)


def test_step_07_both_critic_targets_evaluate_the_same_next_action():
    done = tiny().update(batch(s2=(1.0,)), torch.tensor([[0.5]]))
    action = np.tanh(0.75) + 0.1
    assert done.next_q1.item() == close(3 * (1 + action + 2))
    assert done.next_q2.item() == close((1 + action + 2) + 4)


def test_step_08_the_smaller_value_counts_row_by_row():
    done = tiny().update(batch(s2=(-1.5, 3.0)), no_noise(2))
    q1, q2 = done.next_q1.tolist(), done.next_q2.tolist()
    assert q1[0] < q2[0] and q1[1] > q2[1]
    assert done.target.tolist() == close([0.99 * q1[0], 0.99 * q2[1]])


def test_step_09_the_target_is_reward_plus_discounted_future_unless_terminated():
    given = batch(r=(1.0,), s2=(0.0,), terminated=(0.0, 1.0, 0.0), discount=(0.99, 0.99, 0.5))
    done = tiny().update(given, no_noise(3))
    future = (0 + np.tanh(0.5) + 2) + 4  # the second target's, the smaller one here
    assert done.target.tolist() == close([1 + 0.99 * future, 1.0, 1 + 0.5 * future])
    assert not done.target.requires_grad
    assert done.target.shape == (3,)


def test_step_10_both_critics_evaluate_the_stored_action():
    done = tiny().update(batch(s=(1.0, 0.0), a=(-0.5, 0.25)), no_noise(2))
    assert done.q1.tolist() == close([2.5, 2.25])
    assert done.q2.tolist() == close([2.0, 1.5])


def test_step_11_the_loss_is_the_sum_of_both_mean_squared_errors():
    done = tiny().update(batch(s=(1.0, 0.0), a=(-0.5, 0.25), r=(1.0, 2.0), terminated=(1.0, 1.0)), no_noise(2))
    first = ((2.5 - 1) ** 2 + (2.25 - 2) ** 2) / 2
    second = ((2.0 - 1) ** 2 + (1.5 - 2) ** 2) / 2
    assert done.critic_loss.item() == close(first + second)


def test_step_12_adam_moves_both_critics_against_their_own_error():
    learner = tiny()
    before = numbers(learner.critics)
    # Q1 = 3 and Q2 = 3 where the target is 4 for both: every slope is negative, Adam's first step is the rate itself.
    learner.update(batch(s=(1.0,), r=(4.0,), terminated=(1.0,)), no_noise())
    moved = [after - earlier for earlier, after in zip(before, numbers(learner.critics), strict=True)]
    weight, bias, out_weight, out_bias = moved
    assert weight[:, 0, 0].tolist() == close([LR, LR], rel=1e-3)  # of the observation, which is 1
    assert weight[:, 1, 0].tolist() == [0, 0]  # of the action, which is 0
    for one in (bias, out_weight, out_bias):
        assert one.flatten().tolist() == close([LR, LR], rel=1e-3)
    learner.update(batch(s=(1.0,), r=(-4.0,), terminated=(1.0,)), no_noise())
    assert learner.critics_optimizer.param_groups[0]["lr"] == LR
    # Adam's second step: gradients −2 and then about 14 for the output biases.
    mean = (0.9 * 0.1 * -2 + 0.1 * 14) / (1 - 0.9**2)
    square = (0.999 * 0.001 * 4 + 0.001 * 14**2) / (1 - 0.999**2)
    step = numbers(learner.critics)[3].flatten() - before[3].flatten() - LR
    assert step.tolist() == close([-LR * mean / np.sqrt(square)] * 2, rel=5e-3)


def test_step_13_every_second_update_the_actor_ascends_the_first_critic_alone():
    learner = tiny()
    with torch.no_grad():
        learner.critics.layers[-1].weight[1] = -5.0  # the second critic would pull the other way, harder
    before = numbers(learner.actor)
    given = batch(s=(1.0, 1.0, 1.0), r=(3.0,), terminated=(1.0,))  # three alike: a mean is no sum
    waited = learner.update(given, no_noise(3))
    assert waited.actor_loss is None and same(before, numbers(learner.actor))
    moved = learner.update(given, no_noise(3))
    # The critic has moved by a step or two of the rate since; Q1 = s + a + 2 with a = tanh(1.5).
    assert moved.actor_loss.item() == close(-(1 + np.tanh(1.5) + 2), abs=0.02)
    for earlier, after in zip(before, numbers(learner.actor), strict=True):
        assert (after - earlier).flatten().tolist() == close([LR], rel=1e-3)  # more of everything: uphill for Q1
    assert learner.update(given, no_noise(3)).actor_loss is None
    assert learner.update(given, no_noise(3)).actor_loss is not None
    for earlier, after in zip(before, numbers(learner.actor), strict=True):
        assert (after - earlier).flatten().tolist() == close([2 * LR], rel=5e-3)  # by the new slope alone


def test_step_14_the_actor_target_moves_by_tau_on_delayed_updates_only():
    learner = tiny(tau=0.1)
    before = numbers(learner.actor_target)
    learner.update(batch(), no_noise())
    assert same(before, numbers(learner.actor_target))
    learner.update(batch(), no_noise())
    # after the actor's own step: the new actor counts
    for old, new, target in zip(before, numbers(learner.actor), numbers(learner.actor_target), strict=True):
        assert target.flatten().tolist() == close((0.1 * new + 0.9 * old).flatten().tolist(), rel=1e-6)
    assert learner.actor_target.layers[-1].weight.item() == close(0.1 * 0.5 + 0.9 * 0.25, abs=3e-4)


def test_step_15_the_critic_targets_move_by_tau_on_delayed_updates_only():
    learner = tiny(tau=0.1)
    before = numbers(learner.critic_targets)
    learner.update(batch(), no_noise())
    assert same(before, numbers(learner.critic_targets))
    learner.update(batch(), no_noise())
    for old, new, target in zip(before, numbers(learner.critics), numbers(learner.critic_targets), strict=True):
        assert target.flatten().tolist() == close((0.1 * new + 0.9 * old).flatten().tolist(), rel=1e-6)
    # 0.1 · 1 + 0.9 · 3 and 0.1 · 2 + 0.9 · 1
    assert learner.critic_targets.layers[-1].weight.flatten().tolist() == close([2.8, 1.1], abs=3e-4)
