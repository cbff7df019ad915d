"""TD7: each addition against numbers, the page against its reference, and the run as a whole."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from refusals import refusal
from runs import SMALL, contents

import td3
from td3.config import Config
from td3.diagnosis.reading import diagnose
from td3.interfaces import EndedEpisode
from td3.learner import Learner, TD7Learner
from td3.learner.assessment import Assessment, TargetRange
from td3.learner.embeddings import avg_l1_norm
from td3.learner.selftest import compare_td7
from td3.types import Batch, Layout, Transitions

close = pytest.approx

TINY = {"embedding_size": 6, "embedding_hidden": (5, 4), "target_every": 10}
TD7 = {  # a run of a few seconds with every addition; episodes have 200 steps
    **SMALL,
    **TINY,
    "preset": "td7",
    "steps": 650,
    "warmup_steps": 150,
    "buffer_size": 500,
    "log_every": 100,
    "eval_every": 300,
    "checkpoint_every": 250,
}
NONE = {  # every addition switched off
    "embedding_size": 0,
    "clip_targets": False,
    "policy_checkpoints": False,
    "target_every": 0,
    "actor_loss": "q1",
    "sampling": "uniform",
}


def learner_with(**settings):
    settings = {
        "env": "X-v0",
        "algorithm": "td7",
        "sampling": "lap",
        "hidden": (8, 7),
        "buffer_size": 8,
        **TINY,
        **settings,
    }
    return TD7Learner(Layout(3), 2, Config(**settings), 0)


def batch_of(rows=6, seed=0, reward=1.0):
    generator = torch.Generator().manual_seed(seed)
    s, a, s2 = (torch.randn(rows, size, generator=generator) for size in (3, 2, 3))
    ends, discount = torch.zeros(rows), torch.full((rows,), 0.9)
    return Batch(s, a.clamp(-1, 1), reward * torch.randn(rows, generator=generator), s2, ends, discount)


def numbers(network):
    return [tensor.detach().clone() for tensor in network.parameters()]


def same(one, other):
    return all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def test_sixty_updates_agree_with_the_reference():
    assert compare_td7(torch.float64, 60, 0) < 1e-12  # the targets are copied after 25 and 50 of them
    assert compare_td7(torch.float32, 20, 1) < 1e-4


def test_without_its_additions_it_is_td3_to_the_bit(tmp_path):
    settings = {**SMALL, "engine": "torch"}
    list(td3.train(Config(**settings), tmp_path / "td3"))
    list(td3.train(Config(**settings, algorithm="td7", **NONE), tmp_path / "td7"))
    plain, memory, _ = contents(tmp_path / "td3")
    arrays, memory_too, _ = contents(tmp_path / "td7")
    assert memory == memory_too
    assert {name: arrays[name] for name in plain} == plain


def test_the_preset_is_the_published_one():
    config = Config(env="HalfCheetah-v5", preset="td7")
    assert (config.algorithm, config.sampling, config.update_schedule) == ("td7", "lap", "episode")
    assert (config.embedding_size, config.embedding_hidden, config.embedding_lr) == (256, (256, 256), 3e-4)
    assert (config.hidden, config.actor_lr, config.critic_lr, config.batch_size) == ((256, 256), 3e-4, 3e-4, 256)
    assert (config.target_every, config.clip_targets, config.actor_loss) == (250, True, "both")
    assert (config.priority_alpha, config.priority_floor, config.policy_delay) == (0.4, 1.0, 2)
    assert (config.policy_checkpoints, config.assessment_episodes, config.assess_longer_after) == (True, 20, 750_000)
    assert (config.warmup_steps, config.gamma, config.buffer_size) == (25_000, 0.99, 1_000_000)
    learner = TD7Learner(Layout(17), 6, replace(config, buffer_size=1), 0)
    counted = [sum(one.numel() for one in network.parameters()) for network in (learner.actor, learner.embedding)]
    critics = sum(one.numel() for one in learner.critics.parameters() if one.requires_grad)
    assert counted == [4_608 + 131_328 + 65_792 + 1_542, 4_608 + 65_792 * 2 + 67_328 + 65_792 * 2]
    assert critics == 2 * (6_144 + 196_864 + 65_792 + 257)


def test_the_norm_divides_by_the_mean_size():
    x = torch.tensor([[1.0, -3.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert avg_l1_norm(x).tolist() == [close([1 / 1.5, -2, 2 / 1.5, 0]), [0, 0, 0, 0]]
    assert avg_l1_norm(7 * x)[0].tolist() == close(avg_l1_norm(x)[0].tolist())


def test_all_three_copies_begin_equal_and_each_becomes_the_next_in_the_published_order():
    learner = learner_with(target_every=3)
    online, fixed, fixed_target = learner.embedding, learner.critics.encoder, learner.critic_targets.encoder
    first = numbers(online)
    assert same(first, numbers(fixed)) and same(first, numbers(fixed_target))
    for update in range(1, 7):
        learner.update(batch_of(seed=update), torch.zeros(6, 2))
        if update == 2:
            assert same(first, numbers(fixed)) and not same(first, numbers(online))
            assert not same(numbers(learner.actor), numbers(learner.actor_target))
        if update == 3:
            third = numbers(online)
            assert same(third, numbers(fixed)) and same(first, numbers(fixed_target))
            assert same(numbers(learner.actor), numbers(learner.actor_target))
            assert same(numbers(learner.critics.layers), numbers(learner.critic_targets.layers))
    assert same(third, numbers(fixed_target)) and same(numbers(online), numbers(fixed))


def test_only_its_own_loss_moves_the_embedding():
    learner = learner_with(embedding_lr=1e-9, critic_lr=0.1, actor_lr=0.1)
    before = numbers(learner.embedding), numbers(learner.critics.encoder)
    for seed in range(4):
        learner.update(batch_of(seed=seed, reward=100.0), torch.zeros(6, 2))
    assert all((x - y).abs().max() < 1e-7 for x, y in zip(before[0], numbers(learner.embedding), strict=True))
    assert same(before[1], numbers(learner.critics.encoder))


def test_targets_are_rewards_alone_until_the_first_copy_and_stay_in_the_range_seen_before_it():
    learner = learner_with(target_every=2)
    with torch.no_grad():
        for bias in (learner.critic_targets.layers[-1].bias, learner.critics.layers[-1].bias):
            bias.fill_(1_000.0)
    rewards = []
    for seed in (1, 2):
        given = batch_of(seed=seed)
        rewards.append(given.reward)
        assert torch.equal(learner.update(given, torch.zeros(6, 2)).target, given.reward)
    highest = torch.cat(rewards).max()
    given = batch_of(seed=3)
    done = learner.update(given, torch.zeros(6, 2))
    assert done.next_q.tolist() == [highest.item()] * 6
    assert done.target.tolist() == close((given.reward + 0.9 * highest).tolist())
    assert learner.target_range.largest.item() == close(done.target.max().item())
    learner.target(batch_of(seed=4, reward=1e6), torch.zeros(6, 2))  # a look, as the diagnosis takes it
    assert learner.target_range.largest.item() == close(done.target.max().item())


def test_the_range_is_taken_over_with_a_copy_and_never_shrinks():
    seen = TargetRange()
    seen.widen(torch.tensor([-1.0, 4.0]))
    assert seen.clip(torch.tensor([3.0, -3.0])).tolist() == [0, 0]
    seen.take_over()
    seen.widen(torch.tensor([0.0, 9.0]))
    assert seen.clip(torch.tensor([-8.0, 2.0, 8.0])).tolist() == [-1, 2, 4]
    seen.take_over()
    assert seen.clip(torch.tensor([-8.0, 20.0])).tolist() == [-1, 9]


@pytest.mark.parametrize("which", ["both", "q1"])
def test_the_actor_ascends_both_critics_or_the_first(which):
    learner = learner_with(actor_loss=which, policy_delay=1, critic_lr=1e-12)
    given = batch_of()
    with torch.no_grad():
        features = learner.critics.encoder(given.observation)
        q1, q2 = learner.critics(features, learner.actor(features))
        assert torch.allclose(q1, learner.critics.first(features, learner.actor(features)), atol=1e-6)
    done = learner.update(given, torch.zeros(6, 2))
    expected = (q1.mean() + q2.mean()) / 2 if which == "both" else q1.mean()
    assert done.actor_loss.item() == close(-expected.item(), rel=1e-5)


def test_an_assessment_ends_at_the_first_return_below_the_best_or_with_the_last_episode():
    played = Assessment()
    assert not played.has_checkpoint and played.add(-50.0, 10) == "passed" and played.end(True) == 10
    assert played.best.item() == -50 and played.has_checkpoint
    assert played.add(-60.0, 7) == "failed" and played.end(False) == 7 and played.best.item() == -50
    played.lengthen(3)
    assert played.best.item() == close(-55.0)  # a tenth lower, not −45
    assert [played.add(value, 5) for value in (-40.0, -54.0, -20.0)] == ["", "", "passed"]
    assert played.end(True) == 15 and played.best.item() == -54  # the smallest counts
    assert [played.add(value, 5) for value in (0.0, -54.5)] == ["", "failed"]


def test_the_policy_that_passes_becomes_the_checkpoint_without_noise():
    learner = learner_with(policy_checkpoints=True, update_schedule="episode", warmup_steps=100)
    rows = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    assert learner.checkpoint_policy() is None
    assert learner.ended([EndedEpisode(0, 9.0, 60)], 120) == 0  # begun in the warm-up: played at random
    assert learner.checkpoint_policy() is None
    assert learner.ended([EndedEpisode(0, 5.0, 60)], 180) == 60
    kept = learner.act(rows)
    assert np.array_equal(learner.checkpoint_policy()(rows), kept)
    for seed in range(20):
        learner.update(batch_of(seed=seed), torch.zeros(6, 2))
    assert learner.ended([EndedEpisode(0, 4.0, 60)], 240) == 60  # worse: the older one is kept
    assert np.array_equal(learner.checkpoint_policy()(rows), kept) and not np.array_equal(learner.act(rows), kept)
    assert learner.ended([EndedEpisode(0, 5.0, 60)], 300) == 60  # as good: the newer one is
    assert np.array_equal(learner.checkpoint_policy()(rows), learner.act(rows))


def test_longer_assessments_hold_updates_back_until_they_end():
    settings = {"policy_checkpoints": True, "update_schedule": "episode", "warmup_steps": 0, "assessment_episodes": 3}
    learner = learner_with(**settings, assess_longer_after=0)
    learner.assessment.lengthen(3)
    due = [
        learner.ended([EndedEpisode(0, value, 50)], step) for value, step in ((1, 100), (2, 150), (3, 200), (0, 250))
    ]
    assert due == [0, 0, 150, 50]


def test_a_run_learns_in_bursts_one_episode_after_the_warm_up_and_reports_both_policies(tmp_path):
    config = Config(**TD7)
    updates = {}
    for event in td3.train(config, tmp_path / "run"):
        assert not isinstance(event, td3.Noted), event
        if isinstance(event, td3.Stepped):
            updates[event.step] = event.updates
        if isinstance(event, td3.Evaluated) and event.step == 600:
            assert event.checkpoint is not None and len(event.checkpoint.returns) == 1
    assert [updates[step] for step in (200, 399, 400, 599, 600, 650)] == [0, 0, 200, 200, 400, 400]
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {"train/embedding_loss", "train/target_low", "eval/checkpoint_return"} <= {
        name for row in rows for name in row
    }
    assert (tmp_path / "run" / "updates.jsonl").read_text().count("\n") >= 2
    assert isinstance(diagnose(tmp_path / "run"), list | tuple)
    current, kept = (td3.load(tmp_path / "run", policy=policy) for policy in ("current", "checkpoint"))
    observation = np.array([0.5, 0.5, 1.0], np.float32)
    assert not np.array_equal(current.act(observation), kept.act(observation))


def noted(session, act, asked, rows):
    asked.append(session.step)
    return act(rows)


def test_random_actions_last_until_an_episode_ends():
    training = td3.train(Config(**{**TD7, "steps": 260, "eval_every": 0}))
    asked = []
    for event in training:
        if isinstance(event, td3.Started):
            session = training.session
            session.learner.act = partial(noted, session, session.learner.act, asked)
    assert asked[0] == 200 and len(asked) == 60


@pytest.mark.parametrize("step", [130, 400, 431])
def test_a_stopped_run_continues_to_the_same_bytes(step, tmp_path_factory):
    whole = whole_run(tmp_path_factory)
    stopped = tmp_path_factory.mktemp("td7") / "stopped"
    for event in td3.train(Config(**TD7), stopped):
        if isinstance(event, td3.Stepped) and event.step == step:
            break
    list(td3.resume(stopped))
    assert contents(stopped) == whole


WHOLE = []


def whole_run(factory):
    """What a run that was never stopped leaves; trained once."""
    if not WHOLE:
        run = factory.mktemp("td7") / "whole"
        list(td3.train(Config(**TD7), run))
        WHOLE.append(contents(run))
    return WHOLE[0]


def test_lap_measures_the_largest_priority_again_with_each_copy():
    learner = learner_with(target_every=2, batch_size=4)
    rows = np.zeros((8, 3), np.float32), np.zeros((8, 2), np.float32), np.zeros(8, np.float32)
    learner.store(Transitions.in_a_row(*rows, rows[0], np.ones(8, np.bool_)))
    learner.sampler.largest = np.float32(99)
    rng = np.random.default_rng(0)
    learner.learn(rng, rng)
    assert learner.sampler.largest == 99
    learner.learn(rng, rng)
    assert learner.sampler.largest == learner.sampler.priority.max() < 2


def test_what_cannot_be_is_refused_in_one_sentence():
    with refusal(td3.ConfigError, "clip_targets", False):
        Config(env="X-v0", clip_targets=False)
    with refusal(td3.ConfigError, "policy_checkpoints", 2):
        Config(env="X-v0", preset="td7", num_envs=2)
    with refusal(td3.ConfigError, "embedding_size", 256):
        next(td3.train(Config(env="Pendulum-v1", preset="td7", pixels=16, buffer_size=1_000)))
    with refusal(td3.ConfigError, "algorithm", "td7"):
        next(td3.train(Config(**TD7), learner=Plain))
    with refusal(td3.ConfigError, "engine", "native"):
        next(td3.train(Config(**{**TD7, "engine": "native", "embedding_size": 0})))
    with refusal(td3.ConfigError, "policy", "best"):
        td3.load("nowhere", policy="best")


class Plain(Learner):
    """A learner of the user's own that is no TD7."""


def test_several_environments_and_images_learn_without_what_they_cannot_have(tmp_path):
    several = {**TD7, "num_envs": 2, "policy_checkpoints": False, "steps": 420, "update_schedule": "step"}
    assert list(td3.train(Config(**several)))[-1].step == 420
    images = {**SMALL, "algorithm": "td7", **NONE, "clip_targets": True, "sampling": "lap", "pixels": 8}
    assert list(td3.train(Config(**images)))[-1].step == 120
