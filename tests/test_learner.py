"""The learner as a whole: against the reference, gradients that stay where they belong, no hidden rng."""

import re

import numpy as np
import pytest
import torch
from engines import WHY_NOT
from tiny import batch, no_noise, numbers, same, tiny

from td3.config import Config
from td3.learner import Learner
from td3.learner.reference import NumpyReference, actor_layers, critic_layers
from td3.learner.selftest import compare, difference, selftest
from td3.types import Batch, Layout


def test_two_hundred_updates_agree_with_the_independent_retelling():
    results = {(re.sub(" (avx2|avx512|portable)", "", one.engine), one.precision): one for one in selftest()}
    native = set() if WHY_NOT else {("native", "float32"), ("native, td7", "float32")}
    torch_results = {(engine, precision) for engine in ("torch", "torch, td7") for precision in ("float64", "float32")}
    assert set(results) == native | torch_results
    for (_, precision), result in results.items():
        assert result.updates == 200
        assert 0 < result.error <= {"float64": 1e-9, "float32": 1e-4}[precision]


def test_the_selftest_takes_one_thread_and_leaves_as_many_as_there_were(monkeypatch):
    seen = []
    monkeypatch.setattr("td3.learner.selftest.compare", lambda *_: seen.append(torch.get_num_threads()) or 1e-12)
    monkeypatch.setattr("td3.learner.selftest.compare_td7", lambda *_: seen.append(torch.get_num_threads()) or 1e-12)
    torch.set_num_threads(2)
    between = [torch.get_num_threads() for _ in selftest(updates=1)]  # whoever reads the results has what it had
    assert set(seen) == {1} and set(between) == {2} and torch.get_num_threads() == 2


def test_the_selftest_notices_a_wrong_discount():
    class Wrong(Learner):
        def update(self, batch, noise):
            return super().update(batch._replace(terminated=0 * batch.terminated), noise)

    assert compare(Wrong, torch.float64, 20, 0) > 1e-3


def test_the_retelling_itself_has_the_slopes_that_small_differences_show():
    learner = Learner(Layout(3), 2, Config(env="X-v0", hidden=(5, 4), buffer_size=1), 0)
    layers = actor_layers(learner.actor)
    from td3.learner.reference import backward, forward

    x = np.random.default_rng(0).standard_normal((6, 3))
    gradients, slope_in = backward(layers, forward(layers, x), np.ones((6, 2)))
    for place, (weights, slopes) in enumerate(zip(layers, gradients, strict=True)):
        for w, g in zip(weights, slopes, strict=True):
            where = tuple(0 for _ in w.shape)
            w[where] += 1e-6
            up = forward(layers, x)[-1].sum()
            w[where] -= 2e-6
            down = forward(layers, x)[-1].sum()
            w[where] += 1e-6
            assert g[where] == pytest.approx((up - down) / 2e-6, abs=1e-6), place
    x[0, 0] += 1e-6
    up = forward(layers, x)[-1].sum()
    x[0, 0] -= 2e-6
    assert slope_in[0, 0] == pytest.approx((up - forward(layers, x)[-1].sum()) / 2e-6, abs=1e-6)


def test_every_delay_and_both_learning_rates_reach_the_update():
    for delay, actor_lr, critic_lr in ((1, 1e-3, 3e-4), (3, 3e-4, 1e-2)):
        config = Config(
            env="X-v0", hidden=(6,), buffer_size=1, policy_delay=delay, actor_lr=actor_lr, critic_lr=critic_lr
        )
        learner = Learner(Layout(2), 1, config, 3)
        known = {
            name: getattr(config, name)
            for name in ("tau", "policy_delay", "target_noise", "noise_clip", "actor_lr", "critic_lr")
        }
        reference = NumpyReference(
            actor_layers(learner.actor), [critic_layers(learner.critics, k) for k in range(2)], **known
        )
        rng = np.random.default_rng(0)
        for _ in range(7):
            s, s2, a = rng.standard_normal((3, 8, 2))
            a = np.tanh(a[:, :1])
            r, ends, noise = rng.standard_normal(8), rng.integers(0, 2, 8).astype(float), a[::-1].copy()
            discount = rng.uniform(0.5, 1, 8)
            tensors = (torch.from_numpy(np.float32(one)) for one in (s, a, r, s2, ends, discount))
            learner.update(Batch(*tensors), torch.from_numpy(np.float32(noise)))
            reference.update(s, a, r, s2, ends, discount, noise)
        assert difference(actor_layers(learner.actor), reference.actor) < 1e-4
        assert difference(critic_layers(learner.critics, 1), reference.critics[1]) < 1e-4


def test_no_gradient_reaches_a_target_and_the_actors_step_leaves_none_in_the_critics():
    learner = tiny()
    learner.update(batch(s=(1.0,), r=(4.0,)), no_noise())
    after_critics = [p.grad.clone() for p in learner.critics.parameters()]
    learner.updates = 1
    critic_step = {}
    original = learner.critics_optimizer.step

    def remember():
        original()
        critic_step["grads"] = [p.grad.clone() for p in learner.critics.parameters()]
        critic_step["weights"] = numbers(learner.critics)

    learner.critics_optimizer.step = remember
    learner.update(batch(s=(1.0,), r=(4.0,)), no_noise())
    assert same(critic_step["grads"], [p.grad for p in learner.critics.parameters()])
    assert same(critic_step["weights"], numbers(learner.critics))
    assert len(after_critics) == 4
    for target in (learner.actor_target, learner.critic_targets):
        assert all(p.grad is None for p in target.parameters())
    optimised = {
        id(p)
        for optimizer in (learner.actor_optimizer, learner.critics_optimizer)
        for group in optimizer.param_groups
        for p in group["params"]
    }
    assert optimised == {id(p) for network in (learner.actor, learner.critics) for p in network.parameters()}


def test_an_update_is_a_function_of_networks_batch_and_noise_and_touches_no_global_chance():
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(5)
    np.random.seed(5)
    results = []
    for _ in range(2):
        learner = Learner(Layout(4), 2, Config(env="X-v0", hidden=(8,), buffer_size=1), 9)
        rng = torch.Generator().manual_seed(1)
        for _ in range(4):
            given = Batch(
                *(torch.randn(6, 4, generator=rng)[:, cut] for cut in (slice(4), slice(2), 0, slice(4), 0, 0))
            )
            learner.update(given, torch.randn(6, 2, generator=rng))
        results.append(numbers(learner.actor) + numbers(learner.critic_targets))
    assert same(*results)
    assert torch.equal(torch.rand(3), expected[0]) and (np.random.rand(3) == expected[1]).all()


def test_a_column_of_rewards_is_refused_before_it_can_broadcast():
    given = batch(r=(1.0, 2.0))
    with pytest.raises(AssertionError):
        tiny().update(given._replace(reward=given.reward[:, None]), no_noise(2))
