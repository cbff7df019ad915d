"""Probe environments whose values are known: the whole machine must find them, each within five per cent."""

import numpy as np
import pytest
import torch
from example_envs import Probe

from td3.config import Config
from td3.loop import advance
from td3.session import Session

GAMMA = 0.9


def trained(kind, steps=800):
    config = Config(
        env=lambda: Probe(kind),
        steps=steps,
        gamma=GAMMA,
        tau=0.05,
        hidden=(32, 32),
        batch_size=64,
        warmup_steps=100,
        actor_lr=3e-3,
        critic_lr=3e-3,
        eval_every=0,
        threads=1,
    )
    session = Session(config)
    for _ in advance(session, steps):
        pass
    session.close()
    return session.learner


def value(learner, observation, action=0.0):
    """Both critics' opinion."""
    with torch.no_grad():
        q1, q2 = learner.critics(torch.tensor([[observation]]), torch.tensor([[action]]))
    return [q1.item(), q2.item()]


def within(expected):
    return pytest.approx([expected, expected], rel=0.05, abs=0.05 if expected == 0 else None)


def test_a_constant_reward_of_one_is_worth_one():
    assert value(trained("constant"), 0.0) == within(1.0)


def test_a_reward_that_depends_on_the_state_is_told_apart():
    learner = trained("state")
    assert value(learner, 1.0) == within(1.0)
    assert value(learner, -1.0) == within(-1.0)


def test_a_reward_that_depends_on_the_action_teaches_the_actor():
    learner = trained("action", steps=1_500)
    assert learner.act(np.array([[-1.0], [1.0]], np.float32)).flatten() == pytest.approx([0.5, 0.5], abs=0.05)
    # −(a − 0.5)² at −0.5, in a range of values from 0 to −2.25
    assert value(learner, 1.0, -0.5) == pytest.approx([-1.0, -1.0], abs=0.05 * 2.25)


def test_a_reward_one_step_later_is_discounted_once():
    learner = trained("delayed")
    assert value(learner, 1.0) == within(1.0)
    assert value(learner, 0.0) == within(GAMMA)


def test_a_time_limit_is_not_the_end_of_the_world():
    learner = trained("endless", steps=1_500)
    assert value(learner, 0.0) == within(1 / (1 - GAMMA))  # with the limit as an end it would be at most 4.1
