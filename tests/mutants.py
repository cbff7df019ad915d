"""Mistakes to be put into our code, one at a time, and the tests run upon them.

A mutant is the source of one module with a few characters changed. A test catches it by an assertion that fails; a test
that stops for another reason, such as a name that is gone, shows nothing about the numbers.
"""

import importlib
import importlib.util
import inspect
import itertools
import sys
import tempfile
import types
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

TESTS = Path(__file__).parent
ALGORITHM, TARGETS, MEMORY, COLLECTION, NOISE, VECTOR = (
    "td3.learner.td3",
    "td3.learner.targets",
    "td3.replay.memory",
    "td3.collection",
    "td3.exploration",
    "td3.environments.vector",
)
STEPS, STREAMS, ADJACENCY = "test_fifteen_steps", "test_collection", "test_vector_environments"

MUTANTS = [
    ("the larger of both targets", ALGORITHM, "torch.minimum(", "torch.maximum(", STEPS),
    ("the first target alone", ALGORITHM, "torch.minimum(next_q1, next_q2)", "next_q1", STEPS),
    ("the mean of both targets", ALGORITHM, "torch.minimum(next_q1, next_q2)", "(next_q1 + next_q2) / 2", STEPS),
    ("the smallest of the whole batch", ALGORITHM, "torch.minimum(next_q1, next_q2)", "torch.minimum(next_q1, next_q2).min().expand_as(next_q1)", STEPS),
    ("no clamp of a'", ALGORITHM, "(next_action + noise).clamp(-1, 1)", "next_action + noise", STEPS),
    ("noise not clipped", ALGORITHM, ".clamp(-config.noise_clip, config.noise_clip)", "", STEPS),
    ("noise not scaled", ALGORITHM, "* config.target_noise", "", STEPS),
    ("one noise for the whole batch", ALGORITHM, "(next_action + noise)", "(next_action + noise[:1])", STEPS),
    ("no smoothing", ALGORITHM, "(next_action + noise)", "(next_action)", STEPS),
    ("the actor plays a'", ALGORITHM, "self.actor_target(next_features)", "self.actor(next_features)", STEPS),
    ("the critics evaluate a'", ALGORITHM, "self.critic_targets(next", "self.critics(next", STEPS),
    ("terminations ignored", ALGORITHM, "(1 - batch.terminated)", "1", STEPS),
    ("terminations turned round", ALGORITHM, "(1 - batch.terminated)", "batch.terminated", STEPS),
    ("no discount", ALGORITHM, "batch.discount *", "", STEPS),
    ("the same discount for every row", ALGORITHM, "batch.discount *", "config.gamma *", STEPS),
    ("no reward", ALGORITHM, "batch.reward + batch", "batch", STEPS),
    ("gradient in the target", ALGORITHM, "@torch.no_grad()\n    def target(self,", "def target(self, *given):\n        [one.requires_grad_() for one in self.critic_targets.parameters()]\n        return self.with_gradient(*given)\n\n    def with_gradient(self,", STEPS),
    ("targets that could learn", TARGETS, ".requires_grad_(False)", "", STEPS),
    ("the actor's action evaluated at step 10", ALGORITHM, "self.critics(features, batch.action)", "self.critics(features, self.actor(features))", STEPS),
    ("half the loss", ALGORITHM, "+ mse_loss(q2, target)", "", STEPS),
    ("gradients pile up", ALGORITHM, "self.critics_optimizer.zero_grad()", "pass", STEPS),
    ("the actor's gradients pile up", ALGORITHM, "self.actor_optimizer.zero_grad()", "pass", STEPS),
    ("the actor descends", ALGORITHM, "actor_loss = -self", "actor_loss = self", STEPS),
    ("the actor asks Q2", ALGORITHM, "self.critics.first(features, self.actor(features))", "self.critics(features, self.actor(features))[1]", STEPS),
    ("the actor asks the smaller Q", ALGORITHM, "self.critics.first(features, self.actor(features))", "torch.minimum(*self.critics(features, self.actor(features)))", STEPS),
    ("the actor's step teaches the critics", ALGORITHM, "backward(inputs=list(self.actor.parameters()))", "backward(); self.critics_optimizer.step()", STEPS),
    ("a sum for the mean", ALGORITHM, "self.actor(features)).mean()", "self.actor(features)).sum()", STEPS),
    ("no delay", ALGORITHM, "% config.policy_delay == 0", "% 1 == 0", STEPS),
    ("counted from nought", ALGORITHM, "self.updates % config", "(self.updates - 1) % config", STEPS),
    ("targets at every update", ALGORITHM, "        actor_loss = None\n", "        actor_loss = None\n        polyak(self.critic_targets, self.critics, config.tau)\n", STEPS),
    ("the actor target stays", ALGORITHM, "polyak(self.actor_target, self.actor, config.tau)", "pass", STEPS),
    ("the critic targets stay", ALGORITHM, "polyak(self.critic_targets, self.critics, config.tau)", "pass", STEPS),
    ("unwritten rows sampled", MEMORY, "rng.integers(len(self)", "rng.integers(self.capacity", STEPS),
    ("τ and 1 − τ exchanged", TARGETS, ", tau)", ", 1 - tau)", STEPS),
    ("twins born identical", ALGORITHM, "self.critic_targets = target_of(self.critics)", "[one.data[1].copy_(one.data[0]) for one in self.critics.parameters()]; self.critic_targets = target_of(self.critics)", STEPS),
    ("a time limit as termination", COLLECTION, "            result.terminated,\n", "            result.terminated | result.truncated,\n", STREAMS),
    ("one noise for all environments", NOISE, "rng.standard_normal(self.shape", "rng.standard_normal((1, self.shape[1])", STREAMS),
    ("noise not scaled by its setting", NOISE, "scale * rng", "rng", STREAMS),
    ("noise out of bounds", COLLECTION, "np.minimum(np.maximum(policy(self.observation) + noise, -1), 1)", "policy(self.observation) + noise", STREAMS),
    ("reset steps remembered", COLLECTION, "if valid < len(result.valid):", "if False:", STREAMS),
    ("reset steps not masked", VECTOR, "valid = ~self._only_reset", "valid = np.ones_like(self._only_reset)", ADJACENCY),
    ("the next episode's first observation as s'", VECTOR, "led_to = self._with_final(seen, info, ended)", "led_to = seen", ADJACENCY),
    ("nothing reset when autoreset is off", VECTOR, "look_at = np.where(ended[:, None], fresh, seen)", "look_at = seen", ADJACENCY),
]  # fmt: skip


def mutated(name, module, right, wrong):
    """The module as it is, and with the mistake in it."""
    original = importlib.import_module(module)
    source = inspect.getsource(original)
    assert right in source, f"{right!r} is no longer in {module}: renew the mutant {name!r}"
    mutant = types.ModuleType(module)
    mutant.__file__ = original.__file__
    exec(compile(source.replace(right, wrong), f"<{name}>", "exec"), mutant.__dict__)
    return original, mutant


def replace_everywhere(monkeypatch, original, mutant):
    """Every module that holds a class or function of the original now holds the mutant's; so does every default."""
    made_here = {
        id(thing): name
        for name, thing in vars(original).items()
        if getattr(thing, "__module__", "") == original.__name__
    }
    for module in list(sys.modules.values()):
        for name, thing in list(getattr(module, "__dict__", {}).items()):
            if id(thing) in made_here and name == made_here[id(thing)]:
                monkeypatch.setattr(module, name, vars(mutant)[name])
        if module.__name__.startswith("td3."):
            for function in functions_in(module):
                defaults = function.__defaults__ or ()
                if any(id(one) in made_here for one in defaults):
                    new = tuple(vars(mutant).get(made_here.get(id(one), ""), one) for one in defaults)
                    monkeypatch.setattr(function, "__defaults__", new)


def functions_in(module):
    """The functions and methods that a module defines."""
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", "") == module.__name__:
            for one in [thing, *(vars(thing).values() if isinstance(thing, type) else [])]:
                function = getattr(one, "__func__", one)  # of a classmethod
                if isinstance(function, types.FunctionType):
                    yield function


def load_tests(name):
    """A test module, loaded from its file as pytest does it, to be run under other conditions than its own."""
    loaded = f"{name} under other conditions"
    if loaded not in sys.modules:
        spec = importlib.util.spec_from_file_location(loaded, TESTS / f"{name}.py")
        sys.modules[loaded] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[loaded])
    return sys.modules[loaded]


def guards_in(module):
    return [test for name, test in vars(module).items() if name.startswith("test_")]


def guards_of(names):
    """The tests that a mutant's last column names: "module", or "module: test, test" by their first words."""
    module, _, beginnings = names.partition(": ")
    wanted = tuple(f"test_{one}" for one in beginnings.split(", "))
    guards = [test for test in guards_in(load_tests(module)) if test.__name__.startswith(wanted)]
    assert guards, f"no test of {names}"
    return guards


def results_of(guards):
    """Runs each case of each test; yields how it ended: "passed", "caught" by a failed assertion, or "crashed"."""
    for guard in guards:
        for arguments in cases(guard):
            yield guard.__name__, result_of(guard, arguments)


def result_of(guard, arguments):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fixtures = {"tmp_path": Path(folder), "monkeypatch": patch}
        asked = {name: fixtures[name] for name in inspect.signature(guard).parameters if name in fixtures}
        try:
            guard(**arguments, **asked)
        except AssertionError as problem:
            return "caught" if is_a_tests_own(problem) else "crashed"
        except Exception:
            return "crashed"
    return "passed"


def is_a_tests_own(problem):
    """Whether an assertion stands in a test, and not in the code that is tested."""
    last = inspect.getinnerframes(problem.__traceback__)[-1].filename
    return Path(last).parent == TESTS or "site-packages" in last  # numpy's and torch's assert_close


def cases(guard):
    """The keyword arguments of each of a parametrised test's cases."""
    marks = [mark for mark in getattr(guard, "pytestmark", []) if mark.name == "parametrize"]
    each = []
    for mark in marks:
        names, values = mark.args[:2]
        names = names.replace(" ", "").split(",") if isinstance(names, str) else names
        values = [value.values if isinstance(value, ParameterSet) else value for value in values]
        values = [value if len(names) > 1 or isinstance(value, tuple) else (value,) for value in values]
        each.append([dict(zip(names, value, strict=True)) for value in values])
    return [{name: value for one in chosen for name, value in one.items()} for chosen in itertools.product(*each)]
