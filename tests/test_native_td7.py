"""The native engine of TD7 against its page: the same gradients, updates, copies and priorities on any threads."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from engines import needs_native
from learners import largest_difference, some_batch

import td3
from td3.config import Config
from td3.learner import choose_engine, policy_of, switched, why_not_native
from td3.learner.native.td7 import NativeTD7Learner, NativeTD7Policy
from td3.learner.networks import act
from td3.learner.selftest import LIMITS, compare_td7
from td3.learner.td7 import TD7Learner
from td3.recording import Recorder
from td3.types import Batch, Layout, Transitions

pytestmark = needs_native
SMALL = Config(
    env="none", algorithm="td7", sampling="lap", hidden=(33, 17), embedding_size=20, embedding_hidden=(31, 18),
    batch_size=50, buffer_size=400, target_every=6, update_schedule="episode",
)  # fmt: skip
EXACT = replace(SMALL, hidden=(256, 256), embedding_size=256, embedding_hidden=(256, 256), batch_size=256)
ABLATIONS = {
    "all of it": {},
    "uniform sampling": {"sampling": "uniform"},
    "the first critic alone": {"actor_loss": "q1"},
    "targets that are not clipped": {"clip_targets": False},
    "targets that follow": {"target_every": 0},
    "an embedding without hidden layers": {"embedding_hidden": ()},
    "other layers for the actor": {"actor_hidden": (5,), "critic_hidden": (40, 3, 17)},
    "copies between two moves of the actor": {"policy_delay": 4, "target_every": 3},
    "small sizes": {"embedding_size": 3, "embedding_hidden": (1, 5), "hidden": (30,), "batch_size": 7},
}


def both(config, observations=17, actions=6, seed=0):
    return [kind(Layout(observations), actions, config, seed) for kind in (NativeTD7Learner, TD7Learner)]


def networks(learner):
    return [one.detach() for network in learner.networks().values() for one in network.parameters()]


def moments(learner):
    """Adam's mean after its first step is a tenth of the gradient."""
    return [
        10 * optimizer.state[parameter]["exp_avg"].double()
        for optimizer in learner.optimizers().values()
        for parameter in optimizer.param_groups[0]["params"]
    ]


def stored(learner, rows=500, seed=0):
    (s, a, r, s2, terminated, _), _ = some_batch(learner.layout.size, learner.action_size, rows, seed)
    columns = (one.numpy() for one in (s, a, 3 * r, s2))
    learner.store(Transitions.in_a_row(*columns, terminated.numpy().astype(bool)))
    return learner


def rngs():
    return np.random.default_rng(1), np.random.default_rng(2)


@pytest.mark.parametrize("kernels", ["avx512", "avx2", "portable"])
@pytest.mark.parametrize("name", ["small", "exact"])
def test_gradients_are_autograds_within_a_hundred_thousandth(name, kernels, monkeypatch):
    config = replace({"small": SMALL, "exact": EXACT}[name], policy_delay=1, critic_lr=1e-12)
    monkeypatch.setenv("TD3_KERNELS", kernels)
    if "must be one of" in why_not_native(config):
        pytest.skip(f"this processor has no {kernels}")
    native, page = both(config)
    exact = TD7Learner(Layout(17), 6, config, 0)
    for network in exact.networks().values():
        network.double()
    for learner in (native, page, exact):
        with torch.no_grad():  # a range that clips some of the values and not others
            learner.target_range.low.fill_(-0.05), learner.target_range.high.fill_(0.05)
    batch, noise = some_batch(17, 6, config.batch_size)
    native.update(batch, noise), page.update(batch, noise)
    exact.update(Batch(*(one.double() for one in batch)), noise.double())
    assert largest_difference(moments(native), moments(page)) < 1e-5
    assert largest_difference(moments(native), moments(exact)) < 1e-5


@pytest.mark.parametrize("name", list(ABLATIONS))
def test_every_number_of_an_update_is_the_pages_with_each_addition_and_without(name):
    config = replace(SMALL, **ABLATIONS[name])
    assert why_not_native(config) == ""
    native, page = both(config)
    for count in range(1, 15):
        given = some_batch(17, 6, config.batch_size, seed=count)
        ours, theirs = native.update(*given), page.update(*given)
        for field, other in theirs._asdict().items():
            mine = getattr(ours, field)
            assert (mine is None) == (other is None), field
            if other is not None:
                assert mine.shape == other.shape and largest_difference([mine], [other]) < 1e-4, (count, field)
        assert ours.means().tolist() == pytest.approx(theirs.means().tolist(), rel=1e-3, abs=1e-5, nan_ok=True)
    seen = np.random.default_rng(0).standard_normal((70, 17)).astype(np.float32)
    assert native.act(seen) == pytest.approx(page.act(seen), abs=1e-4)
    for name in ("low", "high", "smallest", "largest"):
        assert getattr(native.target_range, name).item() == pytest.approx(
            getattr(page.target_range, name).item(), rel=1e-4
        )


def test_two_hundred_updates_stay_near_the_float64_reference_networks_copies_and_priorities():
    errors = [compare_td7(torch.float32, 200, seed, NativeTD7Learner) for seed in range(3)]
    assert 0 < np.median(errors) < LIMITS[torch.float32]


def test_a_hundred_updates_of_sampled_rows_give_the_pages_networks_and_priorities():
    native, page = map(stored, both(SMALL, 5, 2))
    ours, theirs = rngs(), rngs()
    for _ in range(100):
        expected = page.learn(*theirs).means().tolist()
        assert native.learn(*ours).means().tolist() == pytest.approx(expected, rel=1e-3, abs=1e-5, nan_ok=True)
    assert largest_difference(networks(native), networks(page)) < 1e-3
    assert native.sampler.priority == pytest.approx(page.sampler.priority, rel=1e-3)
    assert native.sampler.largest == pytest.approx(page.sampler.largest, rel=1e-3)
    assert ours[0].random() == theirs[0].random()


def test_one_two_and_four_threads_give_the_same_bytes():
    ends = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        learner, generators = stored(NativeTD7Learner(Layout(17), 6, replace(SMALL, hidden=(65, 130)), 0)), rngs()
        means = [learner.learn(*generators).means().numpy().tobytes() for _ in range(20)]
        ends.append((means, [one.numpy().tobytes() for one in (*networks(learner), *moments(learner))]))
    assert ends[0] == ends[1] == ends[2]


def test_either_engine_continues_where_the_other_stopped():
    always, changing = (TD7Learner(Layout(4), 2, SMALL, 0) for _ in range(2))
    for count, engine in enumerate(["native", "torch", "native", "native", "torch"]):
        changing = switched(changing, engine)
        assert type(changing) is {"native": NativeTD7Learner, "torch": TD7Learner}[engine]
        assert (set(vars(changing)) >= set(NativeTD7Learner.OWN)) == (engine == "native")
        for seed in range(5):
            given = some_batch(4, 2, 50, seed=10 * count + seed)
            always.update(*given), changing.update(*given)
    assert changing.updates == 25
    assert largest_difference(networks(changing), networks(always)) < 1e-4
    assert {one["step"].item() for one in changing.embedding_optimizer.state.values()} == {25.0}


def test_auto_takes_the_native_engine_and_a_run_resumes_to_the_byte(tmp_path):
    config = Config(
        env="Pendulum-v1", preset="td7", steps=650, hidden=(8, 8), batch_size=8, warmup_steps=100, eval_every=0,
        embedding_size=8, embedding_hidden=(8,), target_every=20,
    )  # fmt: skip
    assert choose_engine(config, Layout(3)) == ("native", "")
    list(td3.train(config, tmp_path / "whole"))
    for event in td3.train(config, tmp_path / "halves"):
        if getattr(event, "step", 0) >= 430:
            break
    list(td3.resume(tmp_path / "halves"))
    whole, halves = (td3.load(tmp_path / name) for name in ("whole", "halves"))
    seen = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    assert all((whole.act(one) == halves.act(one)).all() for one in seen)


def numbers_in(value):
    """Yields every number of a recorded line, in its order."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(one)
    elif isinstance(value, float | int):
        yield float(value)


def test_a_recorded_update_tells_what_it_tells_of_the_page(tmp_path):
    written = []
    for learner in map(stored, both(replace(SMALL, log_every=1, steps=100, policy_delay=1), 5, 2)):
        path, generators = tmp_path / f"{type(learner).__name__}.jsonl", rngs()
        recorder = Recorder(path, learner.config, 0, clock=lambda: 0.0)
        for number in range(1, 8):  # with a copy of the targets
            learner.learn(*generators, recorder.observing(number, learner.updates) or recorder)
        recorder.close()
        assert recorder.problem is None
        written.append([list(numbers_in(json.loads(line))) for line in path.read_bytes().splitlines()])
    assert len(written[0]) == 7 and len(written[0][0]) > 200
    for ours, theirs in zip(*written, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-4)


def test_what_others_write_to_the_embedding_or_a_setting_is_noticed():
    native, page = both(SMALL, 4, 2)
    for learner in (native, page):
        learner.update(*some_batch(4, 2, 50))
        with torch.no_grad():
            learner.embedding.f[0].weight.mul_(0.5)
            learner.critics.encoder.g[0].weight.mul_(0.5)
            learner.critic_targets.encoder.f[2].bias.add_(0.1)
            learner.critics.encoder.f[0].weight.mul_(0.5)
        learner.configure(replace(SMALL, embedding_lr=1e-2, gamma=0.5, target_every=2))
    seen = np.ones((3, 4), np.float32)
    assert native.act(seen) == pytest.approx(page.act(seen), abs=1e-5)
    for seed in range(1, 4):
        expected = page.update(*some_batch(4, 2, 50, seed=seed)).means().tolist()
        found = native.update(*some_batch(4, 2, 50, seed=seed)).means().tolist()
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)


def test_what_is_no_number_is_reported_and_not_hidden():
    for field in ("observation", "reward", "next_observation"):
        native, page = both(SMALL, 3, 2)
        batch, noise = some_batch(3, 2, 50)
        getattr(batch, field).view(-1)[0] = torch.nan
        ours, theirs = native.update(batch, noise), page.update(batch, noise)
        assert ours.critic_loss.isnan() and theirs.critic_loss.isnan(), field
        assert native.target_range.smallest.isnan() == page.target_range.smallest.isnan(), field


def test_rows_that_are_all_zero_have_the_pages_norm_and_gradient():
    native, page = both(replace(SMALL, policy_delay=1, critic_lr=1e-12), 3, 2)
    for learner in (native, page):
        with torch.no_grad():
            for layer in (learner.embedding.f[-1], learner.actor.linear, learner.critics.linear):
                layer.weight.zero_(), layer.bias.zero_()
        learner.update(*some_batch(3, 2, 50))
    assert largest_difference(moments(native), moments(page)) < 1e-5


def test_networks_that_the_library_does_not_know_are_learned_with_torch_and_one_sentence():
    assert "embedding_size is 0" in why_not_native(replace(SMALL, embedding_size=0))
    for change, why in [
        (lambda learner: setattr(learner.embedding.f[1], "alpha", 0.5), r"embedding.f\[1\] has alpha 0.5, not 1"),
        (lambda learner: learner.critics.layers.__setitem__(1, torch.nn.ReLU()), "is a ReLU, not a ELU"),
        (lambda learner: setattr(learner.actor, "sizes", (3, 21)), r"takes features of \(3, 21\), not \(4, 20\)"),
    ]:
        learner = TD7Learner(Layout(4), 2, SMALL, 0)
        change(learner)
        engine, note = choose_engine(SMALL, Layout(4), learner)
        assert engine == "torch" and note.startswith("Learning with torch")
        with pytest.raises(td3.ConfigError, match=why):
            switched(learner, "native")


def test_a_policy_acts_as_the_actor_does_for_one_row_and_for_many():
    learner = TD7Learner(Layout(17), 6, SMALL, 0)
    policy = policy_of(learner)
    assert isinstance(policy, NativeTD7Policy)
    rows = np.random.default_rng(0).standard_normal((130, 17)).astype(np.float32) * 3
    together = policy(rows)
    assert together == pytest.approx(act(learner.actor, learner.critics.encoder, None, rows), abs=2e-6)
    assert all((policy(rows[i : i + 1]) == together[i]).all() for i in range(130))  # to the bit
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert (other(rows) == together).all()
    with torch.no_grad():
        learner.critics.encoder.f[0].weight.mul_(2)
    assert (policy(rows) != together).any()


def test_elu_is_right_from_tiny_to_huge():
    config = replace(SMALL, embedding_hidden=(1,), embedding_size=2, hidden=(1,))
    native = NativeTD7Learner(Layout(1), 1, config, 0)
    with torch.no_grad():
        for network in (native.embedding.f, native.embedding.g):
            for layer in (network[0], network[2]):
                layer.weight.zero_(), layer.bias.zero_()
        native.embedding.f[0].weight.fill_(1), native.embedding.f[2].bias.fill_(1.0)
        native.embedding.f[2].weight[0] = 1  # f(s) = (elu(s) + 1, 1) before its norm
    for number in (1e-30, -1e-30, 1e-6, -1e-6, -0.01, -0.35, -0.7, -5.0, -30.0, -1e30, 3.0):
        batch, noise = some_batch(1, 1, 50)
        batch.next_observation.fill_(number), batch.observation.fill_(number)
        elu = np.expm1(min(number, 0.0)) + max(number, 0.0)
        mean = (elu + 1 + 1) / 2
        expected = (((elu + 1) / mean) ** 2 + (1 / mean) ** 2) / 2  # g is zero: the loss is the mean square of f(s')
        learner = copy.deepcopy(native)
        assert learner.update(batch, noise).means()[5].item() == pytest.approx(expected, rel=1e-6), number
