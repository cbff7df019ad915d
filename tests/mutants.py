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
LINKS, FRAME_MEMORY, PRIORITIES = "td3.replay.links", "td3.replay.frames", "td3.replay.prioritized"
SEVEN, EMBEDDINGS, ASSESSMENT = "td3.learner.td7", "td3.learner.embeddings", "td3.learner.assessment"
HISTORY, OBSERVATIONS = "td3.environments.history", "td3.environments.observations"
PREPROCESSING = "td3.learner.preprocessing"
SESSION, STATE, RESUMING = "td3.session", "td3.learner.state", "td3.resuming"
STEPS, STREAMS, ADJACENCY, RESUME = "test_fifteen_steps", "test_collection", "test_vector_environments", "resume_guards"
FRAMES = "test_frames: each_row_knows, stacks_and_looks, a_row_that_looks, rows_of_several, nothing_spans, draws_are"
BY_ERROR = (
    "test_prioritized: draws_follow, a_priority, a_new_row, the_sums, a_share, an_error, the_loss, the_critics_learn"
)
PAGE_7 = "test_td7: sixty, the_norm, all_three, only_its, targets_are, the_range, the_actor, an_assess, the_policy, longer, lap"
JOINED = "test_history: numbers_and_categories, statistics_are, an_environment_may"

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
    ("half the loss", ALGORITHM, "+ self.distance(q2, target)", "", STEPS),
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
    ("one noise for all environments", NOISE, "rng.standard_normal(self.shape, dtype=np.float32)", "rng.standard_normal((1, self.shape[1]), dtype=np.float32).repeat(self.shape[0], axis=0)", STREAMS),
    ("noise not scaled by its setting", NOISE, "scale * rng", "rng", STREAMS),
    ("noise out of bounds", COLLECTION, "np.minimum(np.maximum(policy(self.observation) + noise, -1), 1)", "policy(self.observation) + noise", STREAMS),
    ("reset steps remembered", COLLECTION, "if valid < len(result.valid):", "if False:", STREAMS),
    ("reset steps not masked", VECTOR, "valid = ~self._only_reset", "valid = np.ones_like(self._only_reset)", ADJACENCY),
    ("the next episode's first observation as s'", VECTOR, "led_to = self._with_final(rows, info, ended)", "led_to = rows", ADJACENCY),
    ("nothing reset when autoreset is off", VECTOR, "look_at = np.where(ended[:, None], fresh, rows)", "look_at = rows", ADJACENCY),
    # Links between rows, and what n steps amount to
    ("an episode linked to the one before", LINKS, "np.where(begins, number, before)", "before", FRAMES),
    ("a look ahead over an episode's end", LINKS, "held = ~begins & (before", "held = (before", FRAMES),
    ("a look ahead over the write head", LINKS, "(before >= max(0, end - self.capacity))", "(before >= 0)", FRAMES),
    ("links to what was overwritten stay", LINKS, "self._after[number % self.capacity] = 0", "pass", FRAMES),
    ("environments linked with each other", LINKS, "changes[1:-1] = env[1:] != env[:-1]", "changes[1:-1] = False", FRAMES),
    ("rows of an environment in any order", LINKS, "order = np.argsort(env, kind=\"stable\")", "order = np.argsort(env, kind=\"stable\")[::-1]", FRAMES),
    ("an episode linked to the one before, row by row", LINKS, "(number if first else before) + 1", "before + 1", FRAMES),
    ("a look ahead over an episode's end, row by row", LINKS, "if not first and before >= oldest", "if before >= oldest", FRAMES),
    ("a look ahead over the write head, row by row", LINKS, "and before >= oldest", "and before >= 0", FRAMES),
    ("links to what was overwritten stay, row by row", LINKS, "self._after[number % capacity] = 0", "pass", FRAMES),
    ("a missing stretch is linked over", LINKS, "self._newest[:] = NONE", "pass", RESUME),
    ("rewards ahead not discounted", LINKS, "np.where(active, discount * reward[last], 0)", "np.where(active, reward[last], 0)", FRAMES),
    ("the last reward counted again", LINKS, "np.where(active, discount * reward[last], 0)", "discount * reward[last]", FRAMES),
    ("one discount however many steps there were", LINKS, "discount = np.where(active, discount * gamma, discount)", "discount = discount * gamma", FRAMES),
    ("one step too many", LINKS, "range(n_step - 1)", "range(n_step)", FRAMES),
    # Prioritised replay
    ("priorities not refreshed", PRIORITIES, "self.priority[indices] = priority\n", "pass\n", BY_ERROR),
    ("sums not refreshed", PRIORITIES, "        self._stale.append(indices)\n", "        self._stale = self._stale or [indices]\n", BY_ERROR),
    ("new rows not the largest", PRIORITIES, "self.largest * self.memory", "np.float32(1) * self.memory", BY_ERROR),
    ("the largest forgotten", PRIORITIES, "self.largest = max(self.largest, priority.max())", "self.largest = priority.max()", BY_ERROR),
    ("the largest never measured again", PRIORITIES, "self.largest = self.priority[: self._stored].max()", "pass", BY_ERROR),
    ("the first critic's errors alone", PRIORITIES, "torch.maximum((update.q1 - update.target).abs(), (update.q2 - update.target).abs())", "(update.q1 - update.target).abs()", BY_ERROR),
    ("no floor", PRIORITIES, ".clamp(min=self.floor)", "", BY_ERROR),
    ("priorities without their power", PRIORITIES, ".pow(self.alpha)", "", BY_ERROR),
    ("uniform inside a block", PRIORITIES, "inside = passed.argmax(axis=1)", "inside = np.clip(left / sums[:, -1] * BLOCK, 0, BLOCK - 1).astype(np.int64)", BY_ERROR),
    ("uniform blocks", PRIORITIES, "sums.searchsorted(left, side=\"right\")", "(shares * (len(self.numbers) / len(self.levels[0]) * len(top))).astype(np.int64)", BY_ERROR),
    ("a sum kept once it is made", PRIORITIES, "running_sums(level.reshape(-1, BLOCK).take(indices, axis=0))[:, -1]\n", "np.where(sums[indices] > 0, sums[indices], running_sums(level.reshape(-1, BLOCK).take(indices, axis=0))[:, -1])\n", BY_ERROR),
    ("an infinite error", PRIORITIES, "priority = np.fmin(priority, LARGEST)", "priority = np.fmin(priority, np.float32(np.inf))", BY_ERROR),
    ("priorities lost when a run is resumed", PRIORITIES, "self.priority[: self._stored], self.largest = priority, np.float32(largest)", "pass", BY_ERROR),
    ("the mean of squares whatever is sampled", ALGORITHM, "if self.config.sampling == \"uniform\" else lap_loss(q, target, self.config)", "", BY_ERROR),
    ("a straight loss everywhere", "td3.learner.losses", "error < floor", "error < 0", BY_ERROR),
    # TD7
    ("copies in the wrong order", SEVEN, "            polyak(self.critic_targets, self.critics, rate)\n            if self.embedding:\n                polyak(self.critics.encoder, self.embedding, rate)\n", "            if self.embedding:\n                polyak(self.critics.encoder, self.embedding, rate)\n            polyak(self.critic_targets, self.critics, rate)\n", PAGE_7),
    ("the fixed embedding never copied", SEVEN, "polyak(self.critics.encoder, self.embedding, rate)", "pass", PAGE_7),
    ("targets that follow slowly", SEVEN, "rate = 1.0 if config.target_every else config.tau", "rate = config.tau", PAGE_7),
    ("targets copied with every delayed update", SEVEN, "(self.config.target_every or self.config.policy_delay)", "self.config.policy_delay", PAGE_7),
    ("no norm", EMBEDDINGS, "return x / x.abs().mean(-1, keepdim=True).clamp(min=SMALLEST)", "return x", PAGE_7),
    ("a norm of squares", EMBEDDINGS, "x.abs().mean(-1, keepdim=True)", "x.pow(2).mean(-1, keepdim=True).sqrt()", PAGE_7),
    ("no norm of the state's embedding", EMBEDDINGS, "avg_l1_norm(self.f(observation))", "self.f(observation)", PAGE_7),
    ("a norm of the pair's embedding", EMBEDDINGS, "z_sa: Tensor = self.g(torch.cat([state, action], dim=-1))", "z_sa: Tensor = avg_l1_norm(self.g(torch.cat([state, action], dim=-1)))", PAGE_7),
    ("ReLU critics", EMBEDDINGS, "width + 2 * z, hidden, 1, nn.ELU)", "width + 2 * z, hidden, 1, nn.ReLU)", PAGE_7),
    ("gradient into the embedding from the critics", SEVEN, "self.critics.encoder = target_of(self.embedding)", "self.critics.encoder = __import__(\"copy\").deepcopy(self.embedding)", PAGE_7),
    ("the learning embedding feeds the critics", SEVEN, "features = self.critics.encoder(batch.observation)", "features = (self.embedding or self.critics.encoder)(batch.observation).detach()", PAGE_7),
    ("the critics' embedding feeds the targets", SEVEN, "next_features = self.critic_targets.encoder(", "next_features = self.critics.encoder(", PAGE_7),
    ("gradient through the embedding of s'", SEVEN, "            with torch.no_grad():\n                next_state", "            if True:\n                next_state", PAGE_7),
    ("the embedding does not learn", SEVEN, "self.embedding_optimizer.step()", "pass", PAGE_7),
    ("the embedding's gradients pile up", SEVEN, "self.embedding_optimizer.zero_grad()", "pass", PAGE_7),
    ("targets not clipped", SEVEN, "next_q = self.target_range.clip(next_q)", "pass", PAGE_7),
    ("no clip before the first copy", SEVEN, "next_q = self.target_range.clip(next_q)", "next_q = self.target_range.clip(next_q) if self.updates > config.target_every else next_q", PAGE_7),
    ("the range taken over at once", SEVEN, "            self.target_range.widen(target)\n", "            self.target_range.widen(target)\n            self.target_range.take_over()\n", PAGE_7),
    ("the range widened by a look", SEVEN, "        return Targets(next_action", "        self.target_range.widen(target)\n        return Targets(next_action", PAGE_7),
    ("the range of values, not of targets", SEVEN, "self.target_range.widen(target)", "self.target_range.widen(next_q)", PAGE_7),
    ("the larger of both targets, in TD7", SEVEN, "torch.minimum(next_q1, next_q2)", "torch.maximum(next_q1, next_q2)", PAGE_7),
    ("the actor asks Q1 alone", SEVEN, "actor_loss = -torch.stack(self.critics(features, action)).mean()", "actor_loss = -self.critics.first(features, action).mean()", PAGE_7),
    ("the actor climbs the sum", SEVEN, "torch.stack(self.critics(features, action)).mean()", "torch.stack(self.critics(features, action)).sum(0).mean()", PAGE_7),
    ("the actor's gradient not through its embedding", EMBEDDINGS, "self.encoder.pair(state, action)", "self.encoder.pair(state, action.detach())", PAGE_7),
    ("the first critic without its norm", EMBEDDINGS, "avg_l1_norm(self.linear.first(s_a))", "self.linear.first(s_a)", PAGE_7),
    ("the largest priority kept for ever", SEVEN, "self.sampler.measure_largest()", "pass", PAGE_7),
    ("a checkpoint below the best", ASSESSMENT, "if self.smallest < self.best:", "if False:", PAGE_7),
    ("the last return for the smallest", ASSESSMENT, "self.smallest.clamp_(max=episode_return)", "self.smallest.fill_(episode_return)", PAGE_7),
    ("a tenth in the wrong direction", ASSESSMENT, "self.best.sub_(0.1 * self.best.abs())", "self.best.mul_(0.9)", PAGE_7),
    ("the checkpoint follows the actor", SEVEN, "partial(act, self.checkpoint_actor, self.checkpoint_encoder", "partial(act, self.actor, self.critics.encoder", PAGE_7),
    ("the checkpoint with the newest embedding", SEVEN, "self.checkpoint_actor, self.checkpoint_encoder, self.normalizer", "self.checkpoint_actor, self.critics.encoder, self.normalizer", PAGE_7),
    ("random episodes assessed", SEVEN, "if step - episode.length <= self.config.warmup_steps:", "if False:", PAGE_7),
    ("steps of a long assessment forgotten", ASSESSMENT, "self.counts[1] += length", "self.counts[1] = length", PAGE_7),
    # Frames stored once
    ("moments that end no transition sampled", FRAME_MEMORY, " & ~self.columns[\"begins\"][indices]", "", FRAMES),
    ("stacks of overwritten frames sampled", FRAME_MEMORY, "(self._reach[indices] > self.oldest)", "(self._reach[indices] > 0)", FRAMES),
    ("a stack of one frame fewer is enough", FRAME_MEMORY, "for _ in range(self.layout.depth):\n            reach", "for _ in range(self.layout.depth - 1):\n            reach", FRAMES),
    ("one frame fewer, row by row", FRAME_MEMORY, "for _ in range(self.layout.depth):\n            if", "for _ in range(self.layout.depth - 1):\n            if", FRAMES),
    ("the newest frame first", FRAME_MEMORY, "for depth in reversed(range(count - 1)):", "for depth in range(count - 1):", FRAMES),
    ("one frame over and over", FRAME_MEMORY, "indices = self.links.before(indices) % self.capacity", "pass", FRAMES),
    ("s and s' the same", FRAME_MEMORY, "self._observations(led_here[:, :-1])", "self._observations(led_here[:, 1:])", FRAMES),
    ("s' one step on, whatever n", FRAME_MEMORY, "else self._led_to(ahead.last, depth)", "else led_here[:, 1:]", FRAMES),
    ("terminated of the first of n steps", FRAME_MEMORY, "take(ahead.last).astype", "take(indices).astype", FRAMES),
    ("where an episode began comes after where it led", FRAME_MEMORY, "np.concatenate([each[rows.first], each])", "np.concatenate([each[rows.first] + 0.5, each])", FRAMES),
    ("numbers of the moment before", FRAME_MEMORY, "led_to[:, layout.depth - layout.history :]", "led_to[:, : layout.history]", FRAMES),
    ("a history of the oldest time steps", FRAME_MEMORY, "led_to[:, layout.depth - layout.history :]", "led_to[:, : layout.history]", JOINED),
    ("an episode joined to the one before", HISTORY, "self._held.clear()", "pass", JOINED),
    ("one array joined again and again", HISTORY, "as_array(name, value).copy()", "as_array(name, value)", JOINED),
    ("joined part by part", OBSERVATIONS, "np.concatenate(numbers, axis=2).reshape(len(numbers[0]), -1)", "np.concatenate([each.reshape(len(each), -1) for each in numbers], axis=1)", JOINED),
    ("statistics of the oldest observation", PREPROCESSING, "self.layout.newest(rows.observation)", "self.layout.vectors(rows.observation)[:, : self.layout.step_numbers]", JOINED),
    # Going on after a stop
    ("replay's stream begins again", SESSION, "seeding.load_state(self.replay_rng, state[\"replay\"])", "pass", RESUME),
    ("smoothing's stream begins again", SESSION, "seeding.load_state(self.smoothing_rng, state[\"smoothing\"])", "pass", RESUME),
    ("one stream where there were two", SESSION, "seeding.load_state(self.smoothing_rng, state[\"smoothing\"])", "seeding.load_state(self.smoothing_rng, state[\"replay\"])", RESUME),
    ("what was owed is forgotten", SESSION, "progress.restore(state)", "progress.means.restore(state[\"means\"])", RESUME),
    ("episodes that ended in a stopped step are lost", SESSION, "progress.restore(state)", "progress.restore(state); progress.pending = progress.pending and progress.pending._replace(ended=[])", RESUME),
    ("the row of metrics begins again", SESSION, "progress.restore(state)", "fresh = progress.means.capture(); progress.restore({**state, \"means\": fresh})", RESUME),
    ("exploration's stream begins again", COLLECTION, "seeding.load_state(self.rng, data[\"chance\"])", "pass", RESUME),
    ("an episode's return counted from the stop", COLLECTION, "np.where(lost, 0, arrays[\"returns\"])", "np.zeros_like(arrays[\"returns\"])", RESUME),
    ("an episode's first row where it was stopped", COLLECTION, "np.where(lost, 0, arrays[\"lengths\"])", "np.zeros_like(arrays[\"lengths\"])", RESUME),
    ("Adam begins again", STATE, "    load_optimizers(learner, chosen.tensors(\"optimizers\", 2 * size))\n", "", RESUME),
    ("targets become what they follow", STATE, "        load(network, tensors, name)\n", "        load(network, tensors, name.replace(\"_targets\", \"s\").replace(\"_target\", \"\"))\n", RESUME),
    ("observations normalised anew", STATE, "learner.normalizer.load(part_of(tensors, \"normalizer\"))", "pass", RESUME),
    ("settings at their defaults after a stop", RESUMING, "config = Config.from_data(data, **changes)", "config = Config.from_data({**data, \"gamma\": 0.99, \"tau\": 0.005}, **changes)", RESUME),
    ("code is imported because a run names it", RESUMING, "if env is None and not trust and", "if False and", RESUME),
    ("as many processes as a run asks for", "td3.config.trust", "if getattr(config, name) > limit:", "if getattr(config, name) > 10 * limit:", RESUME),
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


def put_in(monkeypatch, original, mutant):
    """Puts the mutant in place of the original: also where a table, a default or a bound method holds a part of it."""
    right, mistaken = functions_in(original), functions_in(mutant)
    replace_everywhere(monkeypatch, original, mutant)
    for name, function in right.items():
        if name in mistaken and function.__code__.co_freevars == mistaken[name].__code__.co_freevars:
            monkeypatch.setattr(function, "__code__", mistaken[name].__code__)


def functions_in(module):
    """The functions and methods that a module defines, by name, without their decorators."""
    found = {}
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", "") == module.__name__:
            for one in [thing, *(vars(thing).values() if isinstance(thing, type) else [])]:
                one = getattr(one, "fget", None) or getattr(one, "__func__", one)  # of a property, a classmethod
                function = inspect.unwrap(one) if callable(one) else None
                if isinstance(function, types.FunctionType):
                    found[function.__qualname__] = function
    return found


def load_tests(name):
    """A test module, loaded from its file as pytest does it, to be run under other conditions than its own."""
    loaded = f"{name} under other conditions"
    if loaded not in sys.modules:
        spec = importlib.util.spec_from_file_location(loaded, TESTS / f"{name}.py")
        module = sys.modules[loaded] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[loaded]
            raise
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
        except pytest.fail.Exception:  # what should have been refused was not
            return "caught"
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
