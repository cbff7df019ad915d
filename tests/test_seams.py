"""What comes next fits from outside: a second algorithm, a remote collector, a sampler, with no change to td3."""

import json
import multiprocessing
from functools import partial

import numpy as np
import pytest
import torch
from engines import needs_native
from runs import SMALL, contents
from torch import nn
from torch.nn.functional import mse_loss
from torch.optim import Adam

import td3
from td3.collection import Collector
from td3.config import Config
from td3.interfaces import Collected
from td3.learner.targets import polyak, target_of
from td3.types import Batch, Layout


class Modelled(td3.Learner):
    """A second algorithm: TD3 with a seventh network, which predicts s', with its own target, optimiser and loss."""

    MEANS = (*td3.Learner.MEANS, "model_loss")

    def __init__(self, layout, action_size, config, seed, sampler=td3.UniformSampler):
        super().__init__(layout, action_size, config, seed, sampler)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = nn.Linear(layout.size + action_size, layout.size)
        self.model_target = target_of(self.model)
        self.model_optimizer = Adam(self.model.parameters(), lr=config.critic_lr)

    def networks(self):
        return {**super().networks(), "model": self.model, "model_target": self.model_target}

    def optimizers(self):
        return {**super().optimizers(), "model_optimizer": self.model_optimizer}

    def update(self, batch, noise):
        update = super().update(batch, noise)
        predicted = self.model(torch.cat([batch.observation, batch.action], dim=1))
        loss = mse_loss(predicted, batch.next_observation)
        self.model_optimizer.zero_grad()
        loss.backward()
        self.model_optimizer.step()
        polyak(self.model_target, self.model, self.config.tau)
        return ModelledUpdate(update, loss.detach())


class ModelledUpdate:
    """All that TD3 says of an update, and the loss of the model."""

    def __init__(self, update, model_loss):
        self.update, self.model_loss = update, model_loss

    def means(self):
        return torch.cat([self.update.means(), self.model_loss.double()[None]])

    def __getattr__(self, name):
        return getattr(self.update, name)


def stopped_and_resumed(tmp_path, config, step=70, **parts):
    """Trains a run without a stop, and one with; returns both folders."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    list(td3.train(config, whole, **parts))
    for event in td3.train(config, stopped, **parts):
        if isinstance(event, td3.Stepped) and event.step == step:
            break
    assert list(td3.resume(stopped, **parts))[-1].step == config.steps
    return whole, stopped


def test_a_second_algorithm_with_a_seventh_network_is_recorded_resumed_exactly_and_loaded(tmp_path):
    whole, stopped = stopped_and_resumed(tmp_path, Config(**SMALL), learner=Modelled)
    arrays, memory, metrics = contents(whole)
    assert (arrays, memory, metrics) == contents(stopped)
    assert {"networks.model.weight", "networks.model_target.bias", "optimizers.model_optimizer.0.exp_avg"} <= set(
        arrays
    )
    losses = [row["train/model_loss"] for row in metrics if "train/model_loss" in row]
    assert len(losses) == 5 and losses[-1] < losses[0] / 2
    assert (whole / "updates.jsonl").read_text().count("\n") >= 2
    agent = td3.load(whole, learner=Modelled)
    assert td3.evaluate(agent, episodes=1).lengths == (200,)


@needs_native
def test_a_second_algorithm_is_performed_by_torch_with_one_sentence():
    started = next(td3.train(Config(**SMALL), learner=Modelled))
    assert started.summary["engine"] == "torch"
    assert [note for note in started.notes if "Modelled" in note]
    with pytest.raises(td3.ConfigError, match=r"Modelled.*got 'native'"):
        next(td3.train(Config(**SMALL, engine="native"), learner=Modelled))


def test_what_the_seventh_network_learns_leaves_the_other_six_alone():
    config = Config(env="X-v0", hidden=(8,), buffer_size=8)
    learners = [kind(Layout(3), 2, config, 0) for kind in (td3.Learner, Modelled)]
    for learner in learners:
        torch.manual_seed(0)
        for _ in range(4):
            wide = [torch.randn(5, size) for size in (3, 2, 3, 2)]
            batch = Batch(wide[0], wide[1], torch.randn(5), wide[2], torch.zeros(5), torch.full((5,), 0.9))
            learner.update(batch, wide[3])
    for name, network in learners[0].networks().items():
        for one, other in zip(network.parameters(), learners[1].networks()[name].parameters(), strict=True):
            assert torch.equal(one, other)


def serve(pipe, config, make_noise):
    """The other process: plays environments, and asks for actions."""
    collector = Collector.of(config, make_noise)
    pipe.send((collector.observation_map, collector.action_map, collector.num_envs, collector.most_bytes))

    def ask(observations):
        pipe.send(("act", observations))
        return pipe.recv()

    for name, *arguments in iter(pipe.recv, None):
        answer = collector.collect(ask) if name == "collect" else getattr(collector, name)(*arguments)
        pipe.send(("done", answer, collector.steps))
    collector.close()


class RemoteCollector:
    """Collects in another process; what it promises is td3.collection.AnyCollector."""

    def __init__(self, config, make_noise):
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(theirs, config, make_noise), daemon=True)
        self.process.start()
        assert self.pipe.poll(60), "the other process does not begin"
        self.observation_map, self.action_map, self.num_envs, self.most_bytes = self.pipe.recv()
        self.steps = 0
        for name in ("start", "configure", "begin_anew", "capture", "restore"):
            setattr(self, name, partial(self.call, name))

    def call(self, name, *arguments, policy=None):
        self.pipe.send((name, *arguments))
        while True:
            assert self.pipe.poll(60), "the other process is gone"
            kind, *answer = self.pipe.recv()
            if kind == "done":
                self.steps = answer[1]
                return answer[0]
            self.pipe.send(policy(*answer))

    def collect(self, policy):
        return Collected(*self.call("collect", policy=policy))

    def local_envs(self):
        return []

    def close(self):
        self.pipe.send(None)
        self.process.join(30)


def test_a_collector_in_another_process_gives_the_same_bytes_and_resumes_exactly(tmp_path):
    config = Config(**{**SMALL, "num_envs": 2})
    list(td3.train(config, tmp_path / "here"))
    whole, stopped = stopped_and_resumed(tmp_path, config, collector=RemoteCollector)
    assert contents(tmp_path / "here") == contents(whole) == contents(stopped)
    named = json.loads((whole / "config.json").read_text())["parts"]
    assert list(named) == ["collector"]


class Newest(td3.UniformSampler):
    """Samples the newest rows alone, and counts what it is told."""

    def __init__(self, memory):
        super().__init__(memory)
        self.count = np.zeros(2, np.int64)  # rows added, updates

    def sample(self, rng, count):
        newest = np.arange(max(0, self.memory.written - 10), self.memory.written) % self.memory.capacity
        return rng.choice(newest[self.memory.can_sample(newest)], count)

    def added(self, indices):
        self.count[0] += len(indices)

    def updated(self, indices, update):
        assert update.target.shape == indices.shape
        self.count[1] += 1

    def capture(self):
        return {"count": self.count}

    def restore(self, arrays):
        self.count = arrays["count"].copy()


@pytest.mark.parametrize("settings", [{}, {"num_envs": 3}, {"n_step": 3}, {"pixels": 8, "frame_stack": 2}], ids=str)
def test_a_sampler_is_told_every_row_and_every_update_and_both_come_back(settings, tmp_path):
    settings = {**SMALL, **settings}
    step = 69 if "num_envs" in settings else 70
    whole, stopped = stopped_and_resumed(tmp_path, Config(**settings), step, sampler=Newest)
    assert contents(whole) == contents(stopped)
    counts = np.frombuffer(contents(whole)[0]["sampler.count"], np.int64)
    beginnings = 2 if "pixels" in settings else 0  # a frame is stored once: an episode's first has its own row
    assert counts.tolist() == [120 + beginnings, 100]


def test_no_engine_takes_an_index_that_the_memory_does_not_hold():
    class Wild(td3.UniformSampler):
        def sample(self, rng, count):
            return np.full(count, self.memory.capacity)

    for engine in ("auto", "torch"):
        with pytest.raises(td3.ConfigError, match=r"^sampler .*Wild.*got 100"):
            list(td3.train(Config(**{**SMALL, "eval_every": 0, "engine": engine}), sampler=Wild))


class OtherOptimisers(td3.Learner):
    """Critics that learn by momentum, an actor by an Adam with two groups of parameters."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        weights, biases = [[p for p in self.actor.parameters() if p.dim() == size] for size in (2, 1)]
        self.actor_optimizer = Adam([{"params": weights}, {"params": biases}], lr=self.config.actor_lr, amsgrad=True)
        self.critics_optimizer = torch.optim.SGD(self.critics.parameters(), lr=1e-3, momentum=0.9)


class Sharing(td3.Learner):
    """One network under two names."""

    def networks(self):
        return {**super().networks(), "policy": self.actor}


@pytest.mark.parametrize("learner", [OtherOptimisers, Sharing])
def test_other_optimisers_and_shared_networks_resume_exactly(learner, tmp_path):
    whole, stopped = stopped_and_resumed(tmp_path, Config(**SMALL), learner=learner)
    assert contents(whole) == contents(stopped)


def test_an_actor_with_an_encoder_of_its_own_is_recorded(tmp_path):
    class Deep(td3.Learner):
        def make_actor(self, features, generator):
            actor = super().make_actor(features, generator)
            actor.encoder = nn.Linear(1, 1)
            return actor

    list(td3.train(Config(**SMALL), tmp_path / "run", learner=Deep))
    assert (tmp_path / "run" / "updates.jsonl").read_text().count("\n") >= 2


def test_what_cannot_be_recorded_is_noted_once_and_harms_nothing(tmp_path, monkeypatch):
    def fails(*_):
        raise ValueError("of another kind")

    monkeypatch.setattr("td3.recording.recorder.record_update", fails)
    events = list(td3.train(Config(**SMALL), tmp_path / "run"))
    notes = [event.note for event in events if isinstance(event, td3.Noted)]
    assert len(notes) == 1 and "of another kind" in notes[0] and events[-1].step == 120


def test_a_learner_that_overrides_act_alone_or_names_other_means_is_refused():
    class Acting(td3.Learner):
        def act(self, observations):
            return np.zeros((len(observations), 1), np.float32)

    with pytest.raises(td3.ConfigError, match=r"^learner .*Acting.*policy"):
        td3.train(Config(**SMALL), learner=Acting)

    class Named(td3.Learner):
        MEANS = (*td3.Learner.MEANS, "nothing")

    with pytest.raises(td3.ConfigError, match=r"MEANS.*6 names, 5 numbers"):
        list(td3.train(Config(**SMALL), learner=Named))


class Numbered(Collector):
    """A collector of the user's own that inherits td3's."""


def test_a_subclass_of_the_collector_is_passed_as_it_is_and_named_as_it_is(tmp_path):
    list(td3.train(Config(**SMALL), tmp_path / "run", collector=Numbered))
    assert json.loads((tmp_path / "run" / "config.json").read_text())["parts"] == {"collector": "test_seams:Numbered"}
    list(td3.train(Config(**SMALL), tmp_path / "usual"))
    assert contents(tmp_path / "run") == contents(tmp_path / "usual")


def test_a_different_stateful_part_begins_without_a_state_and_is_noted(tmp_path):
    class Older(Newest):
        def capture(self):
            return {"age": np.zeros(3)}

        def restore(self, arrays):
            raise AssertionError("not its own")

    for event in td3.train(Config(**SMALL), tmp_path / "run", sampler=Newest):
        if event.step >= 50:
            break
    events = list(td3.resume(tmp_path / "run", sampler=Older))
    assert "Older" in events[1].notes[0] and events[-1].step == 120


def test_a_step_of_ones_own_is_recorded_as_it_is(tmp_path):
    from examples.own_step import MeanTarget

    list(td3.train(Config(**SMALL), tmp_path / "run", learner=MeanTarget))
    for line in (tmp_path / "run" / "updates.jsonl").read_text().splitlines():
        rows = json.loads(line)["rows"]
        for q1, q2, q in zip(rows["next_q1"], rows["next_q2"], rows["next_q"], strict=True):
            assert q == pytest.approx((q1 + q2) / 2, rel=1e-4, abs=1e-6)
