"""What the native engine does not do it does not pretend to do: it stands aside, or says so in one sentence."""

import copy
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from engines import needs_native
from learners import filled, largest_difference, parameters, some_actor, some_batch
from mutants import MUTANTS, replace_everywhere
from torch import nn

import td3
from td3.config import Config
from td3.learner import Learner, choose_engine, networks, policy_of, switched
from td3.learner.native import engine as native_engine
from td3.learner.native import library
from td3.learner.native.__main__ import HEADER, header
from td3.learner.native.engine import NativeLearner, NativePolicy
from td3.learner.native.fingerprint import fingerprint, why_edited
from td3.types import Layout, Transitions

SMALL = Config(env="none", hidden=(8, 8), batch_size=16, buffer_size=300)
TESTED = dict(re.findall(r'"(\S+) (\w+)\\n"', HEADER.read_text()))


def learner_of(kind=Learner, config=SMALL, seed=0):
    return filled(kind(Layout(4), 2, config, seed))


def rngs():
    return np.random.default_rng(5), np.random.default_rng(6)


# ---- the functions it was tested with ----


def test_the_library_was_tested_with_the_functions_as_they_are():
    assert header() == HEADER.read_text(), (
        "A function whose work the C++ does was changed. Make the C++ do the same, see the tests of both engines pass, "
        "then run: python -m td3.learner.native --renew && pip install -e ."
    )
    assert len(TESTED) == len(set(TESTED.values())) == 36 and why_edited(TESTED, "td7") == ""


@needs_native
def test_the_library_here_was_built_with_what_it_was_tested_with():
    assert library.tested() == TESTED, "The native library is older than its source: pip install -e ."


FUNCTION = """
from math import sin as wave

GAIN = 2.0

def shaped(x: float, y=1):
    '''Says what it does.'''
    # and why
    return GAIN * wave(x) + max(x, y)
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# and why", "# and why, at greater length", True),
        ("    # and why\n", "\n\n", True),
        ("    # and why\n", "# at the margin\n", True),
        ("Says what it does.", "Tells it.", True),
        ("x: float, y=1", "x, y: int = 1", True),
        ("GAIN * wave(x) + max(x, y)", "(\n        GAIN * wave(x)\n        + max(x, y,)\n    )", True),
        ("FIRST LINE", "", True),
        ("max(", "min(", False),
        ("y=1", "y=2", False),
        (" + ", " - ", False),
        ("    return", "    x = 2 * x\n    return", False),
        ("sin as wave", "cos as wave", False),
        ("GAIN = 2.0", "GAIN = 3.0", False),
        ("def shaped", "import functools\n\n@functools.lru_cache\ndef shaped", False),
    ],
)
def test_a_fingerprint_is_of_what_a_function_does_and_of_nothing_else(old, new, same, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, source in (("before", FUNCTION), ("after", FUNCTION.replace(old, new))):
        (tmp_path / f"a_page_{name}.py").write_text(source)
    importlib.invalidate_caches()
    before, after = (fingerprint(f"a_page_{name}:shaped") for name in ("before", "after"))
    for name in ("before", "after"):
        del sys.modules[f"a_page_{name}"]
    assert len(before) == 16 and (before == after) == same


def test_what_has_no_source_or_is_gone_has_no_fingerprint():
    assert fingerprint("td3.learner.td3:Learner.gone") == fingerprint("math:sin") == ""
    assert "td3/learner/td3.py" in why_edited({**TESTED, "td3.learner.td3:Learner.gone": "0" * 16})
    assert why_edited({name: value for name, value in TESTED.items() if "polyak" not in name})


# What these change, the library is told or looks at itself: the constructor's work.
TOLD = ("targets that could learn", "twins born identical")
PAGES = ("td3.learner.td3", "td3.learner.targets", "td3.replay.memory")
CASES = [mutant[:4] for mutant in MUTANTS if mutant[1] in PAGES]


@pytest.mark.parametrize(("name", "module", "right", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_an_edited_step_is_noticed(name, module, right, wrong, tmp_path, monkeypatch):
    original = importlib.import_module(module)
    source = inspect.getsource(original)
    for number, (text, edited) in enumerate([(source, False), (source.replace(right, wrong), name not in TOLD)]):
        path = tmp_path / f"{number}.py"
        path.write_text(text)
        copied = types.ModuleType(module)
        exec(compile(text, str(path), "exec"), copied.__dict__)
        with monkeypatch.context() as patch:
            replace_everywhere(patch, original, copied)
            assert bool(why_edited(TESTED)) == edited
            assert not edited or f"{module.replace('.', '/')}.py" in why_edited(TESTED)
    assert why_edited(TESTED) == ""


def replaced_update(patch):
    patch.setattr(Learner, "update", lambda self, batch, noise: None)


def wrapped_update(patch):
    update = Learner.update

    def timed(*given):
        return update(*given)

    timed.__wrapped__ = update  # as functools.wraps does
    patch.setattr(Learner, "update", timed)


def another_loss(patch):
    patch.setattr("td3.learner.td3.mse_loss", nn.functional.smooth_l1_loss)


def another_gather(patch):
    patch.setattr("td3.replay.memory.Memory.batch", lambda self, indices: None)


@needs_native
@pytest.mark.parametrize("change", [replaced_update, wrapped_update, another_loss, another_gather])
def test_what_is_replaced_while_the_program_runs_is_noticed_too(change, monkeypatch):
    assert choose_engine(Config()) == ("native", "")
    with monkeypatch.context() as patch:
        change(patch)
        engine, note = choose_engine(Config())
        assert engine == "torch" and note.startswith("Learning with torch") and note.count(". ") == 0
        with pytest.raises(td3.ConfigError, match="got 'native'"):
            choose_engine(Config(engine="native"))
    assert choose_engine(Config()) == ("native", "")


@needs_native
def test_whoever_edits_step_8_learns_with_it_and_is_told(tmp_path):
    """The whole way: a copy of td3 with another step 8, its library untouched; runs begun before the edit."""
    run = Config(env="Pendulum-v1", steps=40, warmup_steps=20, hidden=(8,), batch_size=8, eval_every=0, film=False)
    for engine in ("auto", "native"):
        list(td3.train(Config(**{**run.to_data(), "engine": engine}), tmp_path / engine))
    shutil.copytree(Path(td3.__file__).parent, tmp_path / "td3", ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "td3/learner/td3.py"
    assert "torch.minimum(next_q1, next_q2)" in page.read_text()
    page.write_text(page.read_text().replace("torch.minimum(next_q1, next_q2)", "next_q1 - next_q1 + 7.0"))
    program = """
import sys, td3
from td3.views import cli
from td3.learner import Learner
from td3.session import Session
assert td3.__file__.startswith(sys.argv[1]), td3.__file__
print(cli.main(["resume", "auto", "--steps", "60"]), cli.main(["resume", "native", "--steps", "60"]))
session = Session(td3.Config(env="Pendulum-v1", hidden=(8,), batch_size=8))
print(session.engine, type(session.learner) is Learner)
session.close()
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "0 2\ntorch True\n", done.stderr
    notes = [line for line in done.stderr.splitlines() if "td3/learner/td3.py was edited" in line]
    fallback, refusal = notes
    assert "Learning with torch" in fallback and refusal.startswith("td3: engine must be torch or auto here")
    assert any("engine was native" in line and "now it is torch" in line for line in done.stderr.splitlines())
    assert "Traceback" not in done.stderr


# ---- networks and optimisers of other kinds ----


def with_norms(linear, inputs, hidden, outputs):
    layers = []
    for units in hidden:
        layers += [linear(inputs, units), nn.LayerNorm(units), nn.ReLU()]
        inputs = units
    return nn.Sequential(*layers, linear(inputs, outputs))


@needs_native
def test_networks_with_other_layers_learn_with_torch_and_that_is_told(monkeypatch):
    monkeypatch.setattr(networks, "perceptron", with_norms)
    config = Config(env="Pendulum-v1", steps=60, warmup_steps=20, hidden=(8, 8), batch_size=8, eval_every=0)
    events = list(td3.train(config))
    notes = [note for note in events[0].notes if note.startswith("Learning with torch")]
    assert events[0].summary["engine"] == "torch" and events[-1].updates > 0
    assert len(notes) == 1 and "actor.layers[1] is a LayerNorm, not a ReLU" in notes[0]
    with pytest.raises(td3.ConfigError, match=r"actor\.layers\[1\] is a LayerNorm.*; got 'native'"):
        next(td3.train(Config(**{**config.to_data(), "engine": "native"})))
    for make in (lambda: NativeLearner(Layout(3), 2, SMALL, 0), lambda: NativePolicy(some_actor())):
        with pytest.raises(td3.ConfigError, match="LayerNorm"):
            make()
    learner, seen = Learner(Layout(5), 2, SMALL, 0), np.ones((2, 5), np.float32)
    assert (policy_of(learner)(seen) == learner.act(seen)).all()


def put(path, value):
    def change(learner):
        *owners, last = path.split(".")
        for name in owners:
            learner = learner[int(name)] if name.isdigit() else getattr(learner, name)
        if last.isdigit():
            learner[int(last)] = value(learner[int(last)])
        elif isinstance(learner, dict):
            learner[last] = value(learner[last])
        else:
            setattr(learner, last, value(getattr(learner, last)))

    return change


def adam(**settings):
    return lambda old: torch.optim.Adam(old.param_groups[0]["params"], lr=1e-3, **settings)


def halved_state(learner):
    learner.update(*some_batch(4, 2, 16))
    learner.critics_optimizer.state.pop(learner.critics.layers[0].weight)


def uneven_steps(learner):
    learner.update(*some_batch(4, 2, 16))
    learner.critics_optimizer.state[learner.critics.layers[0].weight]["step"] += 1


def shared(learner):
    learner.actor.layers[2] = learner.actor.layers[2]
    learner.actor_target.layers[2].weight = learner.actor.layers[2].weight


def half_frozen(learner):
    learner.critics.layers[0].requires_grad_(False)


CHANGES = {  # what is done to a learner → what the refusal names
    "another activation": (put("critics.layers.1", lambda _: nn.GELU()), "critics.layers[1]"),
    "a wider layer": (put("actor.layers.0", lambda _: nn.Linear(4, 9)), "actor.layers[0].weight"),
    "no bias": (put("actor_target.layers.2", lambda _: nn.Linear(8, 8, bias=False)), "actor_target.layers[2].bias"),
    "one layer more": (lambda learner: learner.critics.layers.append(nn.ReLU()), "critics.layers"),
    "one layer fewer": (put("critic_targets.layers", lambda old: old[:3]), "critic_targets.layers"),
    "a network of another kind": (put("actor", lambda old: nn.Sequential(old)), "actor is a Sequential"),
    "a part beside the layers": (lambda learner: learner.actor.add_module("norm", nn.LayerNorm(4)), "actor holds"),
    "a parameter beside the layers": (
        lambda learner: learner.actor.register_parameter("scale", nn.Parameter(torch.ones(1))),
        "actor holds",
    ),
    "another encoder": (put("critic_targets.encoder", lambda _: nn.Identity()), "critic_targets.encoder"),
    "a hook": (lambda learner: learner.actor.layers[0].register_forward_hook(print), "actor.layers[0]"),
    "a forward of its own": (put("critics.forward", lambda old: lambda *given: old(*given)), "critics has"),
    "a parametrisation": (
        lambda learner: nn.utils.parametrizations.weight_norm(learner.actor.layers[0]),
        "actor.layers[0]",
    ),
    "double precision": (lambda learner: learner.critics.double(), "critics.layers[0].weight is torch.float64"),
    "weights across": (
        put("actor.layers.2.weight", lambda old: nn.Parameter(old.detach().t())),
        "actor.layers[2].weight is not contiguous",
    ),
    "shared weights": (shared, "share their weights"),
    "another optimiser": (
        put("actor_optimizer", lambda old: torch.optim.SGD(old.param_groups[0]["params"], lr=0.1)),
        "actor_optimizer is a SGD",
    ),
    "AdamW": (
        put("critics_optimizer", lambda old: torch.optim.AdamW(old.param_groups[0]["params"])),
        "critics_optimizer is a AdamW",
    ),
    "betas": (put("actor_optimizer", adam(betas=(0.5, 0.999))), "betas"),
    "eps": (put("critics_optimizer", adam(eps=1e-5)), "eps"),
    "weight decay": (put("actor_optimizer.param_groups.0.weight_decay", lambda _: 0.1), "weight_decay"),
    "amsgrad": (put("critics_optimizer", adam(amsgrad=True)), "amsgrad"),
    "a learning rate in a tensor": (put("actor_optimizer.param_groups.0.lr", torch.tensor), "lr"),
    "half of the parameters": (
        put("actor_optimizer", lambda old: torch.optim.Adam(old.param_groups[0]["params"][:3])),
        "actor_optimizer does not move",
    ),
    "a step of its own": (put("actor_optimizer.step", lambda old: lambda: old()), "actor_optimizer has"),
    "a hook of the optimiser": (
        lambda learner: learner.critics_optimizer.register_step_pre_hook(print),
        "critics_optimizer has",
    ),
    "a hook of a gradient": (
        lambda learner: learner.critics.layers[0].weight.register_hook(lambda gradient: gradient.clamp(-1, 1)),
        "critics_optimizer is to leave",
    ),
    "a frozen layer": (half_frozen, "critics_optimizer is to leave"),
    "half a memory of Adam": (halved_state, "critics_optimizer.state[0]['exp_avg']"),
    "uneven steps of Adam": (uneven_steps, "critics_optimizer has moved some"),
}


@needs_native
@pytest.mark.parametrize("what", list(CHANGES))
def test_what_the_library_cannot_do_is_left_to_torch_or_refused(what):
    change, named = CHANGES[what]
    learner = learner_of()
    assert choose_engine(SMALL, learner.layout, learner) == ("native", "")
    change(learner)
    engine, note = choose_engine(SMALL, learner.layout, learner)
    assert engine == "torch" and note.startswith("Learning with torch") and named in note and note.count(". ") == 0
    assert switched(learner, "torch") is learner
    for refuse in (
        lambda: choose_engine(Config(engine="native"), learner.layout, learner),
        lambda: switched(learner, "native"),
    ):
        with pytest.raises(td3.ConfigError) as refusal:
            refuse()
        assert named in str(refusal.value) and str(refusal.value).endswith("; got 'native'.")


@needs_native
@pytest.mark.parametrize("what", list(CHANGES))
def test_what_is_changed_under_the_library_is_refused_and_never_written_to(what, monkeypatch):
    monkeypatch.setattr(native_engine, "LOOK_EVERY", 0)  # looks at every part each time
    learner = learner_of(NativeLearner)
    learner.learn(*rngs())
    change, named = CHANGES[what]
    change(learner)
    updates = learner.updates
    with pytest.raises(td3.ConfigError) as refusal:
        learner.learn(*rngs())
    assert named in str(refusal.value) and learner.updates == updates
    assert isinstance(switched(learner, "torch"), Learner)  # which may go on


# Where another object was put in, one need not wait until every part is looked at.
AT_ONCE = ["a network of another kind", "another optimiser", "betas", "weight decay", "double precision"]


@needs_native
@pytest.mark.parametrize("what", AT_ONCE)
def test_another_network_or_optimiser_is_noticed_at_once(what):
    learner = learner_of(NativeLearner)
    learner.learn(*rngs())
    CHANGES[what][0](learner)
    with pytest.raises(td3.ConfigError):
        learner.learn(*rngs())


@needs_native
def test_every_part_is_looked_at_again_after_a_while(monkeypatch):
    monkeypatch.setattr(native_engine, "LOOK_EVERY", 5)
    learner = learner_of(NativeLearner)
    learner.learn(*rngs())
    half_frozen(learner)
    for _ in range(4):
        learner.learn(*rngs())
    with pytest.raises(td3.ConfigError, match="critics_optimizer"):
        learner.learn(*rngs())
    assert learner.updates == 5


# ---- what changes during a run and is honoured ----


def pair(config=SMALL):
    return learner_of(NativeLearner, config), learner_of(Learner, config)


def assert_alike(native, page):
    assert native.updates == page.updates
    assert largest_difference(parameters(native), parameters(page)) < 1e-4


@needs_native
def test_a_learning_rate_that_changes_is_the_next_updates_rate():
    native, page = pair()
    still = learner_of(NativeLearner)
    for count in range(6):
        for learner in (native, page, still):
            learner.update(*some_batch(4, 2, 16, seed=count))
            if count == 2 and learner is not still:
                learner.actor_optimizer.param_groups[0]["lr"] = 0.05
                learner.critics_optimizer.param_groups[0]["lr"] = 0.1
    assert_alike(native, page)
    assert largest_difference(parameters(still), parameters(page)) > 1e-2


@needs_native
def test_a_learning_rate_schedule_is_followed_without_a_warning():
    native, page = pair()
    for learner in (native, page):
        schedule = torch.optim.lr_scheduler.ExponentialLR(learner.critics_optimizer, gamma=0.5)
        for count in range(5):
            learner.update(*some_batch(4, 2, 16, seed=count))
            schedule.step()
        assert learner.critics_optimizer.param_groups[0]["lr"] == pytest.approx(SMALL.critic_lr / 32)
    assert_alike(native, page)


def load_optimizer(learner):
    state = copy.deepcopy(learner.critics_optimizer.state_dict())
    state["param_groups"][0]["lr"] = 0.1
    learner.critics_optimizer.load_state_dict(state)


def another_config(learner):
    learner.config = Config(**{**SMALL.to_data(), "gamma": 0.5, "tau": 0.9, "policy_delay": 1})


def another_memory(learner):
    learner.memory = learner_of(seed=1).memory
    (s, a, r, s2, terminated, _), _ = some_batch(4, 2, 300, seed=9)
    rows = (one.numpy() for one in (s, a, 10 * r, s2))
    learner.memory.add(Transitions.in_a_row(*rows, terminated.numpy().astype(bool)))


def step_by_hand(learner):
    """As one would who first teaches the actor what somebody else did."""
    for _ in range(3):
        loss = (learner.actor(torch.ones(5, 4)) - 0.5).square().mean()
        learner.actor_optimizer.zero_grad()
        loss.backward()
        learner.actor_optimizer.step()


def other_storage(learner):
    learner.actor.layers[0].weight.data = torch.full((8, 4), 0.1)
    learner.critics.layers[0].weight.data = torch.full((2, 6, 8), 0.1)


def another_draw(learner):
    draw = learner.sample
    learner.sample = lambda *given: draw(*given)._replace(indices=np.zeros(16, np.int64))


def another_update(learner):
    update = learner.update
    learner.update = lambda batch, noise: update(batch._replace(reward=0 * batch.reward), noise)


def another_sampler(learner):
    learner.memory.sample = lambda rng, count: np.arange(count)


HONOURED = [
    load_optimizer, another_config, another_memory, step_by_hand, other_storage, another_draw, another_update,
    another_sampler,
]  # fmt: skip


@needs_native
@pytest.mark.parametrize("change", HONOURED, ids=lambda change: change.__name__)
def test_what_one_does_to_a_learner_has_the_same_effect_with_either_engine(change):
    native, page = pair()
    still = learner_of(Learner)
    for learner in (native, page, still):
        generators = rngs()
        for _ in range(2):
            learner.learn(*generators)
        if learner is not still:
            change(learner)
        for _ in range(4):
            learner.learn(*generators)
    assert_alike(native, page)
    seen = np.ones((3, 4), np.float32)
    assert native.act(seen) == pytest.approx(page.act(seen), abs=1e-5)
    assert largest_difference(parameters(still), parameters(page)) > 1e-3


@needs_native
def test_the_actor_that_plays_is_the_one_there_is_now():
    native, page = pair()
    seen = np.ones((3, 4), np.float32)
    before = native.act(seen)
    for learner in (native, page):
        learner.actor.layers[2].bias.data = torch.full((8,), 2.0)
    assert native.act(seen) == pytest.approx(page.act(seen), abs=1e-6)
    assert native.act(seen) != pytest.approx(before, abs=1e-3)


@needs_native
def test_what_was_let_go_by_others_is_held_while_the_library_writes_to_it():
    learner = learner_of(NativeLearner)
    learner.learn(*rngs())
    weight = learner.critics.layers[2].weight
    held = learner._bindings.held
    state = learner.critics_optimizer.state[weight]
    for old in (weight, state["exp_avg"], state["exp_avg_sq"]):
        assert old.data_ptr() in [one.data_ptr() for one in held]
    assert len(held) == 4 * 6 + 2 * 6 * 3


# ---- learners of one's own ----


class Softer(Learner):
    def update(self, batch, noise):
        return super().update(batch._replace(reward=batch.reward / 2), noise)


class SofterNative(NativeLearner):
    def load_batch(self, drawn):
        batch = super().load_batch(drawn)
        return batch._replace(reward=batch.reward / 2)


@needs_native
def test_a_learner_of_ones_own_stays_what_it_is():
    learner = learner_of(Softer)
    engine, note = choose_engine(SMALL, learner.layout, learner)
    assert engine == "torch" and "Softer" in note and switched(learner, "torch") is learner
    with pytest.raises(td3.ConfigError, match=r"Softer.*got 'native'"):
        switched(learner, "native")
    with pytest.raises(td3.ConfigError, match=r"SofterNative.*got 'torch'"):
        switched(learner_of(SofterNative), "torch")


@needs_native
def test_a_method_of_ones_own_is_called_by_the_native_learner():
    native, page = learner_of(SofterNative), learner_of(Softer)
    plain = learner_of()
    for learner in (native, page, plain):
        generators = rngs()
        for _ in range(4):
            learner.learn(*generators)
    assert_alike(native, page)
    assert largest_difference(parameters(plain), parameters(page)) > 1e-3
