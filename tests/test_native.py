"""The native engine against the page: the same gradients, the same updates, the same bytes on any number of threads."""

import copy
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
from itertools import takewhile

import numpy as np
import pytest
import tiny
import torch
from engines import WHY_NOT, needs_native
from learners import TENSORS, filled, largest_difference, parameters, some_actor, some_batch
from mutants import guards_in, load_tests

import td3
from td3.config import Config
from td3.learner import Learner, choose_engine, switched
from td3.learner.encoders import VectorEncoder
from td3.learner.native import library
from td3.learner.native.engine import Engine, NativeLearner, NativePolicy
from td3.learner.networks import act
from td3.learner.selftest import CONFIG, HIDDEN, OBSERVATIONS
from td3.types import Batch, Layout

FIFTEEN_STEPS = load_tests("test_fifteen_steps")
pytestmark = needs_native
SHAPES = {  # observations, actions, hidden, batch
    "one of everything": (1, 1, (1,), 1),
    "three layers of three": (3, 1, (3, 3, 3), 7),
    "no multiple of a vector": (17, 6, (17, 255), 100),
    "just beyond a panel": (17, 17, (257, 17), 256),
    "four layers": (5, 2, (17, 3, 255, 257), 100),
    "as the author has them": (17, 6, (256, 256), 256),
    "as the paper has them": (17, 6, (400, 300), 100),
    "many observations": (376, 17, (257,), 256),
    "a batch of a thousand": (17, 6, (64, 33), 1000),
}


def in_float64(learner):
    for name in TENSORS:
        getattr(learner, name).double()
    return learner


def first_moments(learner):
    """Adam's mean after its first step is a tenth of the gradient."""
    return [
        10 * learner_optimizer.state[parameter]["exp_avg"].double()
        for learner_optimizer in (learner.critics_optimizer, learner.actor_optimizer)
        for parameter in learner_optimizer.param_groups[0]["params"]
    ]


KERNELS = [] if WHY_NOT else [name.decode() for name in takewhile(bool, map(library.library().td3_kernels, range(9)))]


@pytest.fixture(params=KERNELS)
def _kernels(request, monkeypatch):
    """All this processor can run."""
    monkeypatch.setenv(library.FORCE, request.param)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("name", list(SHAPES))
def test_gradients_are_autograds_within_a_hundred_thousandth(name):
    observations, actions, hidden, rows = SHAPES[name]
    # One update of everything; so small a rate leaves the critic the actor looks at as it was.
    config = Config(env="none", hidden=hidden, batch_size=rows, buffer_size=1, policy_delay=1, critic_lr=1e-12)
    learners = [kind(Layout(observations), actions, config, 0) for kind in (NativeLearner, Learner, Learner)]
    in_float64(learners[2])
    for learner, dtype in zip(learners, (torch.float32, torch.float32, torch.float64), strict=True):
        learner.update(*some_batch(observations, actions, rows, dtype=dtype))
    native, page, exact = map(first_moments, learners)
    assert largest_difference(native, page) < 1e-5
    assert largest_difference(native, exact) < 1e-5


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("name", ["no multiple of a vector", "four layers", "many observations"])
def test_every_number_an_update_tells_is_the_pages(name):
    observations, actions, hidden, rows = SHAPES[name]
    for delay in (1, 2, 3):
        config = Config(env="none", hidden=hidden, batch_size=rows, buffer_size=1, policy_delay=delay)
        native, page = (kind(Layout(observations), actions, config, 1) for kind in (NativeLearner, Learner))
        for count in range(1, 4):
            given = some_batch(observations, actions, rows, seed=count)
            ours, theirs = native.update(*given), page.update(*given)
            assert (ours.actor_loss is None) == (theirs.actor_loss is None) == (count % delay > 0)
            for field, other in theirs._asdict().items():
                mine = getattr(ours, field)
                if other is not None:
                    assert mine.shape == other.shape, field
                    assert largest_difference([mine], [other]) < 1e-4, (delay, count, field)
            assert ours.means().tolist() == pytest.approx(theirs.means().tolist(), rel=1e-3, abs=1e-5, nan_ok=True)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("test", guards_in(FIFTEEN_STEPS), ids=lambda test: test.__name__.removeprefix("test_"))
def test_the_fifteen_steps_hold_for_it_too(test, monkeypatch):
    for module in (tiny, FIFTEEN_STEPS):
        monkeypatch.setattr(module, "Learner", NativeLearner)
    assert not inspect.signature(test).parameters
    test()


def test_a_thousand_updates_drift_no_further_than_those_of_torch():
    """Rounding grows with time: the measure is what the page's own float32 makes of it."""
    drifts = {"native": [], "torch": []}
    for seed in range(3):
        config = Config(env="none", hidden=HIDDEN, batch_size=32, buffer_size=1)
        learners = [kind(Layout(OBSERVATIONS), 3, config, seed) for kind in (NativeLearner, Learner, Learner)]
        in_float64(learners[2])
        for count in range(1_000):
            batch, noise = some_batch(OBSERVATIONS, 3, 32, seed=1_000 * seed + count)
            for learner in learners[:2]:
                learner.update(batch, noise)
            learners[2].update(Batch(*(one.double() for one in batch)), noise.double())
        native, page, exact = map(parameters, learners)
        drifts["native"].append(largest_difference(native, exact))
        drifts["torch"].append(largest_difference(page, exact))
    assert 0 < np.median(drifts["native"]) <= 3 * np.median(drifts["torch"]) < 1e-2


@pytest.mark.usefixtures("_kernels")
def test_one_two_and_four_threads_give_the_same_bytes():
    ends = []
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        config = Config(env="none", hidden=(65, 130), batch_size=100, buffer_size=300)
        learner = filled(NativeLearner(Layout(17), 6, config, 0))
        replay, smoothing = np.random.default_rng(1), np.random.default_rng(2)
        means = [learner.learn(replay, smoothing).means().numpy().tobytes() for _ in range(25)]
        ends.append((means, [one.numpy().tobytes() for one in parameters(learner)]))
    assert ends[0] == ends[1] == ends[2]


def test_rows_gathered_from_the_memory_are_the_rows_drawn():
    config = Config(env="none", hidden=(8, 8), batch_size=50, buffer_size=40)
    native, page = (
        filled(kind(Layout(4), 2, config, 0), 60) for kind in (NativeLearner, Learner)
    )  # the ring has wrapped
    for _ in range(3):
        rngs = [[np.random.default_rng(5), np.random.default_rng(6)] for _ in range(2)]
        ours, theirs = native.learn(*rngs[0]), page.learn(*rngs[1])
        assert ours.means().tolist() == pytest.approx(theirs.means().tolist(), rel=1e-5, nan_ok=True)
        assert rngs[0][0].random() == rngs[1][0].random()  # neither drew more than the other


def test_either_engine_goes_on_where_the_other_stopped():
    config = Config(env="none", hidden=(8, 8), batch_size=16, buffer_size=1)
    always, changing = Learner(Layout(4), 2, config, 0), Learner(Layout(4), 2, config, 0)
    for count, engine in enumerate(["native", "torch", "native", "native", "torch"] * 2):
        changing = switched(changing, engine)
        assert type(changing) is {"native": NativeLearner, "torch": Learner}[engine]
        for seed in range(3):
            given = some_batch(4, 2, 16, seed=10 * count + seed)
            always.update(*given)
            changing.update(*given)
    assert changing.updates == always.updates == 30
    assert largest_difference(parameters(changing), parameters(always)) < 1e-5
    steps = [one["step"].item() for one in changing.critics_optimizer.state.values()]
    assert steps == [30.0] * 6


def test_what_others_write_to_the_networks_is_noticed():
    config = Config(env="none", hidden=(8,), batch_size=4, buffer_size=1)
    learner, other = NativeLearner(Layout(3), 2, config, 0), Learner(Layout(3), 2, config, 9)
    seen = np.ones((1, 3), np.float32)
    before = learner.act(seen)
    learner.actor.load_state_dict(other.actor.state_dict())
    assert learner.act(seen) == pytest.approx(other.act(seen), abs=1e-6)
    assert learner.act(seen) != pytest.approx(before, abs=1e-3)
    given, third = some_batch(3, 2, 4), Learner(Layout(3), 2, config, 5)
    for one in (learner, other):
        for name in TENSORS:
            getattr(one, name).load_state_dict(getattr(third, name).state_dict())
        one.update(*given)
    for seed in range(1, 4):  # other tensors each time, with other moments in them
        learner.critics_optimizer.load_state_dict(copy.deepcopy(other.critics_optimizer.state_dict()))
        learner.update(*some_batch(3, 2, 4, seed=seed))
        other.update(*some_batch(3, 2, 4, seed=seed))
    ours, theirs = ([p.detach() for p in one.critics.parameters()] for one in (learner, other))
    assert largest_difference(ours, theirs) < 1e-5


def test_what_is_no_number_is_told_and_not_hidden():
    config = Config(env="none", hidden=(8,), batch_size=4, buffer_size=1)
    for field in ("observation", "reward", "next_observation"):
        learner = NativeLearner(Layout(3), 2, config, 0)
        batch, noise = some_batch(3, 2, 4)
        getattr(batch, field).view(-1)[0] = torch.nan
        update = learner.update(batch, noise)
        assert update.critic_loss.isnan(), field
        assert not all(one.isfinite().all() for one in learner.critics.parameters())


def test_a_denormal_is_still_a_denormal_for_the_caller():
    learner = NativeLearner(Layout(3), 2, Config(env="none", hidden=(8,), batch_size=4, buffer_size=1), 0)
    tiny_number = np.full(8, 1e-40, np.float32)
    learner.update(*some_batch(3, 2, 4))
    learner.act(np.zeros((1, 3), np.float32))
    assert (tiny_number * np.float32(0.5) > 0).all()


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("hidden", [(1,), (17, 33), (256, 256), (5, 100, 3)])
def test_a_policy_acts_as_the_actor_does_for_one_row_and_for_many(hidden):
    actor = some_actor(hidden)
    policy = NativePolicy(actor)
    rows = np.random.default_rng(0).standard_normal((130, 5)).astype(np.float32) * 3
    together = policy(rows)
    assert together.shape == (130, 3) and together.dtype == np.float32
    assert together == pytest.approx(act(actor.double(), VectorEncoder(5), None, rows.astype(np.float64)), abs=2e-6)
    actor.float()
    assert all((policy(rows[i : i + 1]) == together[i]).all() for i in range(130))  # to the bit
    assert (policy(np.asfortranarray(rows)[::2]) == together[::2]).all()


def test_tanh_is_right_from_tiny_to_huge():
    actor = some_actor((1,), observations=1, actions=1)
    for parameter, value in zip(actor.parameters(), (1.0, 0.0, 1.0, 0.0), strict=True):
        parameter.fill_(value)
    numbers = np.float32([0, 1e-30, 1e-7, 1e-3, 0.1, 0.349, 0.351, 0.5, 1, 2, 5, 8.9, 9.1, 20, 50, 1e5, 3e38])
    ours = NativePolicy(actor)(numbers[:, None])[:, 0]
    assert ours == pytest.approx(np.tanh(numbers.astype(np.float64)), rel=3e-7)
    actor.layers[2].weight.fill_(-1.0)
    assert (NativePolicy(actor)(numbers[:, None])[:, 0] == -ours).all()


def test_several_threads_may_ask_one_policy_at_once():
    policy = NativePolicy(some_actor((64, 64)))
    rows = np.random.default_rng(0).standard_normal((100, 5)).astype(np.float32)
    expected, wrong = policy(rows), []

    def ask(first):
        wrong.extend(first for _ in range(200) if (policy(rows[first:]) != expected[first:]).any())

    threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 13, 50, 99)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def resident_kilobytes():
    gc.collect()
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="tells its memory on Linux only")  # noqa: PTH110
def test_ten_thousand_agents_leave_nothing_behind():
    actor = some_actor((64, 64))
    seen = np.zeros((1, 5), np.float32)

    def come_and_go(count):
        for _ in range(count):
            NativePolicy(actor)(seen)

    come_and_go(500)
    before = resident_kilobytes()
    come_and_go(10_000)  # each holds about 20 kB: leaking one in a hundred would be seen
    assert resident_kilobytes() - before < 1_500
    torch.set_num_threads(2)
    config = Config(env="none", hidden=(64, 64), batch_size=32, buffer_size=1)
    given = some_batch(5, 3, 32)
    threads_before = threading.active_count(), len(os.listdir("/proc/self/task"))  # noqa: PTH208
    for seed in range(50):
        NativeLearner(Layout(5), 3, config, seed).update(*given)
    gc.collect()
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == threads_before  # noqa: PTH208


def test_a_forked_process_learns_on():
    program = """
import os, sys, numpy as np, torch
sys.path.insert(0, "tests")
from learners import some_batch
from td3.config import Config
from td3.learner.native.engine import NativeLearner
from td3.types import Layout
torch.set_num_threads(2)
learner = NativeLearner(Layout(5), 3, Config(env="none", hidden=(64, 64), batch_size=64, buffer_size=1), 0)
learner.update(*some_batch(5, 3, 64))
child = os.fork()
if child == 0:
    learner.update(*some_batch(5, 3, 64, seed=1))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
learner.update(*some_batch(5, 3, 64, seed=1))
print("both")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "both\n", done.stderr


def test_auto_takes_it_where_it_applies_and_says_why_where_not(monkeypatch):
    assert choose_engine(CONFIG) == ("native", "")
    assert choose_engine(Config(engine="torch")) == ("torch", "")
    assert choose_engine(Config(device="cuda")) == ("torch", "")  # no need for words: it was asked for
    with pytest.raises(td3.ConfigError, match="runs on the cpu, not on cuda; got 'native'"):
        choose_engine(Config(device="cuda", engine="native"))
    monkeypatch.setenv(library.FORCE, "mmx")
    with pytest.raises(td3.ConfigError, match=r"TD3_KERNELS must be one of .*portable on this processor; got 'mmx'"):
        choose_engine(Config(engine="native"))
    monkeypatch.delenv(library.FORCE)
    monkeypatch.setattr(library, "FOLDER", library.FOLDER / "source")  # where no compiled library is
    library.library.cache_clear()
    try:
        name, note = choose_engine(Config())
        assert name == "torch" and "install a C++ compiler" in note and note.count(".") == 1
        with pytest.raises(td3.ConfigError, match="engine must be torch or auto here"):
            choose_engine(Config(engine="native"))
        events = td3.train(Config(env="Pendulum-v1", steps=20, hidden=(8,), eval_every=0))
        assert note in next(iter(events)).notes
    finally:
        library.library.cache_clear()


def test_an_engine_of_impossible_size_is_refused():
    with pytest.raises(MemoryError):
        Engine(60_000, 1, (1,), rows=2_000_000_000, threads=1)  # more than any address space has


def test_names_of_kernels_are_told_best_first():
    assert KERNELS[-1] == "portable" and library.kernels() == KERNELS[0]


def test_native_may_take_over_before_the_actor_ever_moved():
    config = Config(env="none", hidden=(8,), batch_size=4, buffer_size=1, policy_delay=3)
    page, other = Learner(Layout(3), 2, config, 0), Learner(Layout(3), 2, config, 0)
    for seed in range(2):
        page.update(*some_batch(3, 2, 4, seed=seed))
        other.update(*some_batch(3, 2, 4, seed=seed))
    assert not other.actor_optimizer.state
    native = switched(other, "native")
    for seed in range(2, 6):
        page.update(*some_batch(3, 2, 4, seed=seed))
        native.update(*some_batch(3, 2, 4, seed=seed))
    assert largest_difference(parameters(native), parameters(page)) < 1e-5
    assert not set(vars(switched(native, "torch"))) & set(NativeLearner.OWN)  # nothing native stays behind


def test_a_batch_of_another_size_between_two_updates_changes_nothing_else():
    config = Config(env="none", hidden=(8,), batch_size=16, buffer_size=50)
    native, page = (filled(kind(Layout(4), 2, config, 0), 50) for kind in (NativeLearner, Learner))
    for size in (5, 40):
        rngs = [[np.random.default_rng(5), np.random.default_rng(6)] for _ in range(2)]
        native.update(*some_batch(4, 2, size)), page.update(*some_batch(4, 2, size))
        ours, theirs = native.learn(*rngs[0]), page.learn(*rngs[1])
        assert ours.means().tolist() == pytest.approx(theirs.means().tolist(), rel=1e-5, nan_ok=True)


def test_a_batch_the_library_could_not_read_is_not_handed_to_it():
    learner = NativeLearner(Layout(3), 2, Config(env="none", hidden=(8,), batch_size=4, buffer_size=1), 0)
    batch, noise = some_batch(3, 2, 4)
    wide = batch._replace(observation=batch.observation.repeat(1, 2))
    column = batch._replace(reward=batch.reward[:, None])
    double = Batch(*(one.double() for one in batch))
    for wrong in ((double, noise), (wide, noise), (column, noise), (batch, noise[:1]), (batch, noise.double())):
        with pytest.raises(ValueError, match=r"must be torch\.float32 of"):
            learner.update(*wrong)
    assert learner.updates == 0


def test_policies_and_learners_can_be_copied_and_pickled():
    policy, seen = NativePolicy(some_actor()), np.ones((2, 5), np.float32)
    for other in (copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert (other(seen) == policy(seen)).all()
    learner = NativeLearner(Layout(5), 3, Config(env="none", hidden=(8,), batch_size=4, buffer_size=1), 0)
    learner.update(*some_batch(5, 3, 4))
    twin = copy.deepcopy(learner)
    twin.update(*some_batch(5, 3, 4, seed=1))
    assert twin.updates == 2 and learner.updates == 1
    assert (twin.act(seen) != learner.act(seen)).any()


def test_an_agent_held_follows_its_session_through_a_switch():
    short = td3.TD3("Pendulum-v1", hidden=(8,), batch_size=8, warmup_steps=20).learn(30)
    agent, seen = short.agent, np.float32([1, 0, 0])
    short.use_engine("torch").learn(20)
    assert agent.act(seen) == pytest.approx(short.predict(seen)[0]) and short.config.engine == "torch"


def test_a_native_run_can_be_played_where_there_is_no_native_engine(tmp_path, monkeypatch):
    list(td3.train(Config(env="Pendulum-v1", steps=20, hidden=(8,), eval_every=0, engine="native"), tmp_path / "run"))
    here = td3.load(tmp_path / "run").act([1.0, 0.0, 0.0])
    monkeypatch.setenv(library.FORCE, "mmx")
    assert td3.load(tmp_path / "run").act([1.0, 0.0, 0.0]) == pytest.approx(here, abs=1e-6)
