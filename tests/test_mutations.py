"""The tests are tested: each mistake that others have made, put into our code, must be caught.

A mutant is the source of one module with a few characters changed, run in place of the original under
the tests that claim to guard it. A mutant that survives means that those tests prove nothing.
"""

import importlib
import inspect
import sys
import types

import pytest

PAGE, TARGETS, MEMORY, COLLECTION, VECTOR = (
    "td3.learner.td3",
    "td3.learner.targets",
    "td3.replay.memory",
    "td3.collection",
    "td3.environments.vector",
)
STEPS, STREAMS, ADJACENCY = "test_fifteen_steps", "test_collection", "test_vector_environments"

MUTANTS = [
    ("the larger of both targets", PAGE, "torch.minimum(", "torch.maximum(", STEPS),
    ("the first target alone", PAGE, "torch.minimum(next_q1, next_q2)", "next_q1", STEPS),
    ("no clamp of a'", PAGE, "(next_action + noise).clamp(-1, 1)", "next_action + noise", STEPS),
    ("noise not clipped", PAGE, ".clamp(-config.noise_clip, config.noise_clip)", "", STEPS),
    ("noise not scaled", PAGE, "* config.target_noise", "", STEPS),
    ("one noise for the whole batch", PAGE, "(next_action + noise)", "(next_action + noise[:1])", STEPS),
    ("no smoothing", PAGE, "(next_action + noise)", "(next_action)", STEPS),
    ("the actor plays a'", PAGE, "self.actor_target(next_features)", "self.actor(next_features)", STEPS),
    ("the critics evaluate a'", PAGE, "self.critic_targets(next", "self.critics(next", STEPS),
    ("ends ignored", PAGE, "(1 - batch.terminated)", "1", STEPS),
    ("ends turned round", PAGE, "(1 - batch.terminated)", "batch.terminated", STEPS),
    ("no discount", PAGE, "batch.discount *", "", STEPS),
    ("gradient in the target", PAGE, "    @torch.no_grad()\n    def target(self, batch: Batch, noise: Tensor) -> Targets:\n", "    def target(self, batch: Batch, noise: Tensor) -> Targets:\n        [p.requires_grad_() for p in self.critic_targets.parameters()]\n", STEPS),
    ("targets that could learn", TARGETS, ".requires_grad_(False)", "", STEPS),
    ("the actor's action evaluated at step 10", PAGE, "self.critics(features, batch.action)", "self.critics(features, self.actor(features))", STEPS),
    ("half the loss", PAGE, "+ mse_loss(q2, target)", "", STEPS),
    ("gradients pile up", PAGE, "self.critics_optimizer.zero_grad()", "pass", STEPS),
    ("the actor descends", PAGE, "actor_loss = -self", "actor_loss = self", STEPS),
    ("the actor asks Q2", PAGE, "self.critics.first(features, self.actor(features))", "self.critics(features, self.actor(features))[1]", STEPS),
    ("the actor asks the smaller Q", PAGE, "self.critics.first(features, self.actor(features))", "torch.minimum(*self.critics(features, self.actor(features)))", STEPS),
    ("the actor's step teaches the critics", PAGE, "backward(inputs=list(self.actor.parameters()))", "backward(); self.critics_optimizer.step()", STEPS),
    ("a sum for the mean", PAGE, "self.actor(features)).mean()", "self.actor(features)).sum()", STEPS),
    ("no delay", PAGE, "% config.policy_delay == 0", "% 1 == 0", STEPS),
    ("counted from nought", PAGE, "self.updates % config", "(self.updates - 1) % config", STEPS),
    ("targets at every update", PAGE, "        actor_loss = None\n", "        actor_loss = None\n        polyak(self.critic_targets, self.critics, config.tau)\n", STEPS),
    ("the actor target stays", PAGE, "polyak(self.actor_target, self.actor, config.tau)", "pass", STEPS),
    ("the critic targets stay", PAGE, "polyak(self.critic_targets, self.critics, config.tau)", "pass", STEPS),
    ("unwritten rows drawn", MEMORY, "rng.integers(len(self)", "rng.integers(self.capacity", STEPS),
    ("τ and 1 − τ exchanged", TARGETS, ", tau)", ", 1 - tau)", STEPS),
    ("twins born identical", PAGE, "self.make_critics(encoder, generator).to(config.device)", "self.make_critics(encoder, generator).to(config.device); [p.data[1].copy_(p.data[0]) for p in self.critics.parameters()]", STEPS),
    ("a time limit as termination", COLLECTION, "            result.terminated,\n", "            result.terminated | result.truncated,\n", STREAMS),
    ("one noise for all environments", COLLECTION, "self.exploration_noise, self._lengths == 0)", "self.exploration_noise, self._lengths == 0)[:1]", STREAMS),
    ("noise out of bounds", COLLECTION, "np.minimum(np.maximum(policy(self.observation) + noise, -1), 1)", "policy(self.observation) + noise", STREAMS),
    ("reset steps remembered", COLLECTION, "if valid < len(result.valid):", "if False:", STREAMS),
    ("reset steps not masked", VECTOR, "valid = ~self._only_reset", "valid = np.ones_like(self._only_reset)", ADJACENCY),
    ("the next episode's first observation as s'", VECTOR, "led_to = self._with_final(seen, info, ended)", "led_to = seen", ADJACENCY),
    ("nothing reset when autoreset is off", VECTOR, "look_at = np.where(ended[:, None], fresh, seen)", "look_at = seen", ADJACENCY),
]  # fmt: skip


@pytest.mark.parametrize(("name", "module", "right", "wrong", "tests"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_a_mutant_does_not_survive(name, module, right, wrong, tests, monkeypatch):
    guards = importlib.import_module(tests)  # before the mutant is put in, or it would stay there
    original = importlib.import_module(module)
    source = inspect.getsource(original)
    assert source.count(right) >= 1, f"{right!r} is no longer in {module}: renew this mutant"
    mutant = types.ModuleType(module)
    mutant.__file__ = original.__file__
    exec(compile(source.replace(right, wrong), f"<{name}>", "exec"), mutant.__dict__)
    replace_everywhere(monkeypatch, original, mutant)
    assert caught_by(guards), f"with {name}, every test of {tests} still passes"


@pytest.mark.parametrize("tests", [STEPS, STREAMS, ADJACENCY])
def test_without_a_mutant_every_guard_passes(tests):
    assert caught_by(importlib.import_module(tests)) == []


def caught_by(guards):
    """The names of the tests in a module that fail."""
    caught = []
    for name, guard in list(vars(guards).items()):
        if name.startswith("test_"):
            for arguments in cases(guard):
                try:
                    guard(**arguments)
                except BaseException:  # pytest's own failures are no Exceptions
                    caught.append(name)
                    break
    return caught


def replace_everywhere(monkeypatch, original, mutant):
    """Every module that holds a class or function of the original now holds the mutant's."""
    made_here = {
        id(thing): name
        for name, thing in vars(original).items()
        if getattr(thing, "__module__", "") == original.__name__
    }
    for module in list(sys.modules.values()):
        for name, thing in list(getattr(module, "__dict__", {}).items()):
            if id(thing) in made_here and name == made_here[id(thing)]:
                monkeypatch.setattr(module, name, vars(mutant)[name])


def cases(guard):
    """The keyword arguments of each of a parametrised test's cases."""
    marks = [mark for mark in getattr(guard, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        return [{}]
    names, values = marks[0].args[:2]
    names = names if isinstance(names, tuple) else (names,)
    return [dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values]
