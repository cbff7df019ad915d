"""Parts of a user's own, as the files in `examples/` have them: recorded, resumed exactly, loaded and evaluated."""

import ast
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import SMALL, contents
from tiny import batch, no_noise, numbers, put_actor, put_critics

import td3
from td3.config import Config
from td3.storage import Checkpoint
from td3.types import Layout

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT)) if str(ROOT) not in sys.path else None

from examples import own_dataset, own_loop, own_networks, own_noise, own_sampler, own_step

RECORDED = own_dataset.recorded(100)
PARTS = {
    "step": {"learner": own_step.MeanTarget},
    "networks": {"learner": own_networks.NormalisedCritics},
    "noise": {"noise": own_noise.OrnsteinUhlenbeck},
    "sampler": {"sampler": own_sampler.ByError},
    "dataset": {"collector": partial(td3.Dataset, RECORDED)},
}
SETTINGS = {"dataset": {"warmup_steps": 0, "update_after": 0}, "noise": {"num_envs": 2}}


def config(name, **settings):
    return Config(**{**SMALL, **SETTINGS.get(name, {}), **settings})


@pytest.mark.parametrize("name", PARTS)
def test_a_run_with_a_part_of_ones_own_is_recorded_resumed_to_the_same_bytes_and_evaluated(name, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    list(td3.train(config(name), whole, **PARTS[name]))
    for event in td3.train(config(name), stopped, **PARTS[name]):
        if isinstance(event, td3.Stepped) and event.step == 70:
            break
    resumed = list(td3.resume(stopped, **PARTS[name]))
    assert resumed[1].notes == () and resumed[-1].step == 120
    for one, other in zip(contents(whole), contents(stopped), strict=True):
        assert one == other
    updates = [json.loads(line) for line in (whole / "updates.jsonl").read_text().splitlines()]
    assert len(updates) >= 2 and np.isfinite(updates[0]["critic_loss"])
    learner = {key: part for key, part in PARTS[name].items() if key == "learner"}
    agent = td3.load(whole, **learner)
    assert td3.evaluate(agent, episodes=1).lengths == (200,)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_named_in_the_run_and_asked_for_never_imported(name, tmp_path):
    ((kind, part),) = PARTS[name].items()
    for event in td3.train(config(name), tmp_path / "run", **PARTS[name]):
        if event.step >= 50:
            break
    named = json.loads((tmp_path / "run" / "config.json").read_text())["parts"]
    assert list(named) == [kind]
    assert named[kind] == (f"{part.__module__}:{part.__qualname__}" if isinstance(part, type) else named[kind])
    with pytest.raises(td3.ConfigError) as refused:
        next(td3.resume(tmp_path / "run"))
    assert str(refused.value).startswith(f"{kind} must be passed") and named[kind] in str(refused.value)
    if kind == "learner":
        with pytest.raises(td3.ConfigError, match=r"^learner must be passed"):
            td3.load(tmp_path / "run")
    assert list(td3.resume(tmp_path / "run", **PARTS[name]))[-1].step == 120


def test_a_run_stopped_before_its_first_checkpoint_asks_for_its_parts_too(tmp_path):
    next(events := td3.train(config("noise"), tmp_path / "run", **PARTS["noise"]))
    for folder in (tmp_path / "run" / "checkpoints").iterdir():
        raise AssertionError(f"{folder} is there already")
    del events
    for folder in list((tmp_path / "run" / "checkpoints").iterdir()):  # the one that leaving the loop made
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    with pytest.raises(td3.ConfigError, match=r"^noise must be passed"):
        next(td3.resume(tmp_path / "run"))
    assert list(td3.resume(tmp_path / "run", **PARTS["noise"]))[-1].step == 120


def test_another_part_than_before_is_noted(tmp_path):
    class Other(own_noise.OrnsteinUhlenbeck):
        pull = 0.5

    for event in td3.train(config("noise"), tmp_path / "run", **PARTS["noise"]):
        if event.step >= 40:
            break
    notes = list(td3.resume(tmp_path / "run", noise=Other))[1].notes
    assert len(notes) == 1 and "OrnsteinUhlenbeck" in notes[0] and "Other" in notes[0]


@pytest.mark.parametrize("given", [{"learner": 3}, {"learner": dict}, {"noise": 0.1}, {"sampler": "uniform"}])
def test_what_is_no_part_is_refused_by_name(given):
    ((name, _),) = given.items()
    with pytest.raises(td3.ConfigError, match=rf"^{name} "):
        td3.train(config("step"), **given)


class Unfinished:
    def __init__(self, num_envs, action_size):
        self.shape = (num_envs, action_size)

    def sample(self, rng, scale, first):
        return np.zeros(self.shape, np.float32)


class Narrow(td3.Learner):
    def __init__(self):
        raise AssertionError("never called")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"noise": Unfinished}, ["noise", "Unfinished", "capture, restore"]),
        ({"noise": td3.UniformSampler}, ["noise", "UniformSampler"]),
        ({"sampler": Unfinished}, ["sampler", "Unfinished"]),
        ({"collector": lambda config, noise: object()}, ["collector", "num_envs"]),
        ({"learner": Narrow}, ["learner", "Narrow"]),
    ],
)
def test_a_part_that_cannot_be_made_or_lacks_a_method_is_refused_by_its_name(given, named):
    with pytest.raises(td3.ConfigError) as refused:
        next(td3.train(config("step"), **given))
    assert all(word in str(refused.value) for word in named)


def noise_that_returns(value, state=None):
    class Noise(td3.GaussianNoise):
        def sample(self, rng, scale, first):
            return value

        def capture(self):
            return {} if state is None else state

    return Noise


@pytest.mark.parametrize(
    "value", [np.zeros(7, np.float32), np.zeros((1, 1), np.int64), np.full((1, 1), np.nan), "loud", None]
)
def test_noise_that_cannot_be_added_is_refused_before_the_environment_steps_and_the_run_resumes(value, tmp_path):
    with pytest.raises(td3.ConfigError, match=r"^noise .*Noise"):
        list(td3.train(config("step"), tmp_path / "run", noise=noise_that_returns(value)))
    assert list(td3.resume(tmp_path / "run", noise=own_noise.OrnsteinUhlenbeck))[-1].step == 120


def test_noise_in_float64_resumes_exactly(tmp_path):
    class Wide(td3.GaussianNoise):
        def sample(self, rng, scale, first):
            return scale * rng.standard_normal(self.shape)

    for event in td3.train(config("step"), tmp_path / "run", noise=Wide):
        if isinstance(event, td3.Stepped) and event.step == 70:
            break
    list(td3.train(config("step"), tmp_path / "whole", noise=Wide))
    assert list(td3.resume(tmp_path / "run", noise=Wide))[1].notes == ()
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("state", [[], 5, {"text": np.array(["a"])}, {3: np.zeros(1)}])
def test_a_state_that_no_checkpoint_can_hold_is_refused_at_once(state):
    with pytest.raises(td3.ConfigError, match=r"Noise.* must capture"):
        next(td3.train(config("step"), noise=noise_that_returns(0, state)))


class Fading(td3.GaussianNoise):
    """Noise that shrinks; its count is a plain number, as one would write it."""

    count = 0

    def sample(self, rng, scale, first):
        self.count += 1
        return super().sample(rng, scale * 0.99**self.count, first)

    def capture(self):
        return {"count": np.int64(self.count), "half": self.count / 2}

    def restore(self, arrays):
        self.count = int(arrays["count"])
        assert arrays["half"].shape == () and arrays["half"] == self.count / 2


def test_a_state_of_plain_numbers_is_saved_and_resumes_exactly(tmp_path):
    list(td3.train(config("step"), tmp_path / "whole", noise=Fading))
    for event in td3.train(config("step"), tmp_path / "run", noise=Fading):
        if isinstance(event, td3.Stepped) and event.step == 70:
            break
    list(td3.resume(tmp_path / "run", noise=Fading))
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "rows", [np.zeros(3, np.int64), np.zeros(16), np.full(16, 100), np.full(16, -1), np.full(16, 60), [0] * 16]
)
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_what_are_no_indices_of_stored_transitions_is_refused(rows, engine):
    class Wrong(td3.UniformSampler):
        def sample(self, rng, count):
            return rows

    with pytest.raises(td3.ConfigError, match=r"^sampler .*Wrong"):
        list(td3.train(config("step", engine=engine, steps=40), sampler=Wrong))


def test_what_is_no_config_and_no_agent_is_refused_at_once():
    with pytest.raises(td3.ConfigError, match=r"^config must be a td3.Config.*'Pendulum-v1'\.$"):
        td3.train("Pendulum-v1")
    with pytest.raises(td3.ConfigError, match=r"^agent must be a td3.Agent.*'runs/x'\.$"):
        td3.evaluate("runs/x")


def lines_of(path):
    """The lines of a file's classes, without blank ones and docstrings."""
    tree = ast.parse(path.read_text())
    lines = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            lines |= set(range(node.lineno, node.end_lineno + 1))
            for inner in ast.walk(node):
                if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                    lines -= set(range(inner.lineno, inner.end_lineno + 1))
    return sum(bool(line.strip()) for number, line in enumerate(path.read_text().splitlines(), 1) if number in lines)


@pytest.mark.parametrize("module", [own_step, own_networks, own_noise, own_sampler])
def test_one_thing_is_changed_in_twenty_lines(module):
    assert 4 <= lines_of(Path(module.__file__)) <= 20


def test_the_own_step_takes_the_mean_of_both_targets():
    learner = own_step.MeanTarget(Layout(1), 1, Config(env="X-v0", hidden=(1,), buffer_size=8), 0)
    put_actor(learner.actor_target, 0.0)
    put_critics(learner.critic_targets, slopes=(3.0, 1.0), shifts=(0.0, 4.0))
    update = learner.update(batch(r=(1.0,), s2=(1.0,), discount=(0.5,)), no_noise())
    assert update.next_q1.item() == 9 and update.next_q2.item() == 7  # 3 (1 + 0 + 2) and (1 + 0 + 2) + 4
    assert update.target.item() == 1 + 0.5 * 8


def test_the_own_critics_are_normalised_and_both_learn():
    learner = own_networks.NormalisedCritics(Layout(3), 2, Config(env="X-v0", hidden=(8, 4), buffer_size=8), 0)
    kinds = [type(layer).__name__ for layer in learner.critics.layers]
    assert kinds == ["TwinLinear", "LayerNorm", "ReLU", "TwinLinear", "LayerNorm", "ReLU", "TwinLinear"]
    features, action = torch.randn(5, 3), torch.randn(5, 2)
    assert torch.allclose(learner.critics(features, action)[0], learner.critics.first(features, action), atol=1e-6)
    before = numbers(learner.critics)
    learner.update(td3_batch(3, 2), torch.zeros(5, 2))
    assert all(
        (old[twin] != new[twin]).any()
        for old, new in zip(before, numbers(learner.critics), strict=True)
        for twin in (0, 1)
    )


def td3_batch(observations, actions, rows=5):
    from td3.types import Batch

    wide = [torch.randn(rows, size) for size in (observations, actions, observations)]
    return Batch(wide[0], wide[1], torch.randn(rows), wide[2], torch.zeros(rows), torch.full((rows,), 0.9))


def test_the_own_noise_drifts_and_begins_anew_with_an_episode():
    noise, rng = own_noise.OrnsteinUhlenbeck(2, 1), np.random.default_rng(0)
    samples = np.array([noise.sample(rng, 0.1, np.zeros(2, bool))[:, 0] for _ in range(2_000)])
    following = np.corrcoef(samples[:-1, 0], samples[1:, 0])[0, 1]
    assert 0.8 < following < 0.9  # 1 − pull
    after = noise.sample(rng, 0.1, np.array([True, False]))
    assert abs(after[0, 0]) < 0.5 and after[1, 0] != pytest.approx(after[0, 0])
    twin = own_noise.OrnsteinUhlenbeck(2, 1)
    twin.restore(noise.capture())
    assert (twin.state == noise.state).all()


def test_the_own_sampler_prefers_large_errors():
    learner = td3.Learner(Layout(1), 1, Config(env="X-v0", hidden=(4,), buffer_size=4), 0, own_sampler.ByError)
    from td3.types import Transitions

    columns = np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32), np.zeros(4, np.float32)
    learner.store(Transitions.in_a_row(*columns, columns[0], np.zeros(4, bool)))
    assert learner.sampler.priority.tolist() == [1, 1, 1, 1]
    learner.sampler.priority[:] = [0, 1, 0, 3]
    counts = np.bincount(learner.sampler.sample(np.random.default_rng(0), 4_000), minlength=4)
    assert counts[0] == counts[2] == 0 and counts[3] / counts[1] == pytest.approx(3, rel=0.1)


def test_the_own_loop_changes_the_learning_rate_and_stops_early():
    training = own_loop.main(steps=2_000, enough=-5_000.0)
    assert training.session.step == 1_000 and training.config.actor_lr == 5e-4  # Pendulum's is 1e-3
    assert training.learner.actor_optimizer.param_groups[0]["lr"] == 5e-4
    assert repr(training) == "<td3.Training of Pendulum-v1, step 1,000 of 2,000>"


def test_a_dataset_is_learned_from_without_playing(tmp_path):
    training = td3.train(config("dataset", steps=50, eval_every=0), **PARTS["dataset"])
    finished = list(training)[-1]
    memory = training.learner.memory
    assert (finished.step, finished.updates, memory.written) == (50, 50, 100)
    assert (memory.columns["action"] == np.float32(RECORDED["action"] / 2)).all()  # Pendulum's bounds are ±2
    assert (memory.columns["observation"] == RECORDED["observation"]).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"reward": None}, "reward"),
        ({"action": np.zeros((100, 2))}, "action"),
        ({"observation": np.zeros((99, 3))}, "observation"),
        ({"action": np.full((100, 1), 3.0)}, "action"),
        ({"reward": np.full(100, np.nan)}, "reward"),
    ],
)
def test_a_dataset_that_does_not_fit_is_refused_by_the_name_of_its_column(change, named):
    columns = {name: column for name, column in {**RECORDED, **change}.items() if column is not None}
    with pytest.raises(td3.ConfigError, match=named):
        for _ in td3.train(config("dataset"), collector=partial(td3.Dataset, columns)):
            pass


def test_what_a_user_holds_says_what_it_is(tmp_path):
    training = td3.train(config("step", steps=40, eval_every=0), tmp_path / "run")
    list(training)
    assert repr(training.learner).startswith(("<NativeLearner: 20 updates, 40 transitions", "<Learner: 20 updates, 40"))
    assert repr(training.session.collector) == "<Collector of Pendulum-v1: 1 environment, 40 steps>"
    assert repr(td3.load(tmp_path / "run")) == "<td3.Agent of Pendulum-v1, trained for 40 steps>"
    assert repr(td3.TD3("Pendulum-v1")) == "<td3.TD3 of Pendulum-v1, trained for 0 steps>"


@pytest.mark.parametrize("parts", [5, ["learner"], {"learner": 3}, {"optimizer": "a:b"}, None])
def test_parts_that_no_run_has_are_refused_in_one_sentence(parts, tmp_path, monkeypatch):
    list(td3.train(config("step", steps=40, eval_every=0), tmp_path / "run"))
    state = Checkpoint.state
    monkeypatch.setattr(Checkpoint, "state", lambda self: {**state(self), "parts": parts})
    with pytest.raises(td3.TD3Error) as refused:
        next(td3.resume(tmp_path / "run"))
    assert "\n" not in str(refused.value)
    if parts != {"optimizer": "a:b"}:  # which is not needed to act
        with pytest.raises(td3.TD3Error):
            td3.load(tmp_path / "run")
