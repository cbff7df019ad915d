"""The native engine with prioritised sampling: the page's loss, and the page's priorities after every update."""

import numpy as np
import pytest
import torch
from engines import needs_native
from learners import largest_difference, parameters, some_batch

import td3
from td3.config import Config
from td3.learner import Learner, choose_engine, switched
from td3.learner.native.engine import NativeLearner
from td3.replay import PrioritizedSampler
from td3.types import Layout, Transitions

pytestmark = needs_native


def lap_config(**changes):
    given = {"hidden": (33, 17), "batch_size": 50, "buffer_size": 400, **changes}
    return Config(env="none", sampling="lap", **given)


def stored(learner, rows=500, seed=0):
    """Stores more rows than the memory holds; each gets its priority."""
    (s, a, r, s2, terminated, _), _ = some_batch(learner.layout.size, learner.action_size, rows, seed)
    columns = (one.numpy() for one in (s, a, 3 * r, s2))  # errors below and above the floor
    learner.store(Transitions.in_a_row(*columns, terminated.numpy().astype(bool)))
    return learner


def rngs():
    return np.random.default_rng(1), np.random.default_rng(2)


@pytest.mark.parametrize("floor", [0.25, 1.0, 1e6])
def test_gradients_and_loss_are_autograds_below_and_above_the_floor(floor):
    config = lap_config(priority_floor=floor, policy_delay=1, critic_lr=1e-12)
    native, page = (kind(Layout(5), 2, config, 0) for kind in (NativeLearner, Learner))
    batch, noise = some_batch(5, 2, 100)
    ours, theirs = native.update(batch, noise), page.update(batch, noise)
    sizes = (theirs.q1 - theirs.target).abs()
    assert floor == 1e6 or ((sizes < floor).any() and (sizes > floor).any())
    assert ours.means().tolist() == pytest.approx(theirs.means().tolist(), rel=1e-5)
    moments = [
        [learner.critics_optimizer.state[one]["exp_avg"] for one in learner.critics.parameters()]
        for learner in (native, page)
    ]
    assert largest_difference(*moments) < 1e-5


def test_a_hundred_updates_give_the_pages_networks_and_priorities():
    native, page = (stored(kind(Layout(5), 2, lap_config(), 0)) for kind in (NativeLearner, Learner))
    ours, theirs = rngs(), rngs()
    for _ in range(100):
        ours_update, theirs_update = native.learn(*ours), page.learn(*theirs)
        assert ours_update.means().tolist() == pytest.approx(theirs_update.means().tolist(), rel=1e-3, nan_ok=True)
    assert ours[0].random() == theirs[0].random()
    assert largest_difference(parameters(native), parameters(page)) < 1e-3
    assert isinstance(native.sampler, PrioritizedSampler)
    assert native.sampler.priority == pytest.approx(page.sampler.priority, rel=1e-3)
    assert len(set(native.sampler.priority)) > 50  # they were refreshed
    assert native.sampler.largest == pytest.approx(page.sampler.largest, rel=1e-3)


def test_priorities_too_are_the_same_bytes_on_any_number_of_threads():
    ends = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        learner, generators = stored(NativeLearner(Layout(5), 2, lap_config(), 0)), rngs()
        for _ in range(20):
            learner.learn(*generators)
        ends.append([*(one.numpy().tobytes() for one in parameters(learner)), learner.sampler.priority.tobytes()])
    assert ends[0] == ends[1] == ends[2]


def test_a_changed_floor_and_a_switch_of_engines_reach_the_next_update():
    always, changing = (stored(Learner(Layout(5), 2, lap_config(), 0)) for _ in range(2))
    ours, theirs = rngs(), rngs()
    for engine, floor in [("native", 1.0), ("native", 0.1), ("torch", 0.3), ("native", 0.3)]:
        changing = switched(changing, engine)
        for learner in (always, changing):
            learner.configure(lap_config(priority_floor=floor))
        for _ in range(3):
            expected = always.learn(*theirs).means().tolist()
            assert changing.learn(*ours).means().tolist() == pytest.approx(expected, rel=1e-4, nan_ok=True)
    assert changing.sampler.priority == pytest.approx(always.sampler.priority, rel=1e-4)


def test_auto_takes_the_native_engine_and_a_run_resumes_to_the_byte(tmp_path):
    config = Config(
        env="Pendulum-v1", steps=120, hidden=(8,), batch_size=8, warmup_steps=20, eval_every=0, sampling="lap"
    )
    assert choose_engine(config, Layout(3))[0] == "native"
    list(td3.train(config, tmp_path / "whole"))
    for _ in zip(range(75), td3.train(config, tmp_path / "halves"), strict=False):
        pass
    list(td3.resume(tmp_path / "halves"))
    whole, halves = (td3.load(tmp_path / name) for name in ("whole", "halves"))
    seen = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    assert all((whole.act(one) == halves.act(one)).all() for one in seen)
