"""Images from a row of bytes to the action: encoded, normalised, shifted, and learned from."""

import copy
import pickle
import shutil
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from dots import SMALL, Box, Dot, images, session_of, some
from example_envs import Spaces
from gymnasium import spaces
from layouts import image_part, layout_of
from safetensors.torch import load_file
from tiny import numbers, same
from torch.nn.functional import conv2d, layer_norm, linear, mse_loss

import td3
from td3.config import Config
from td3.environments import Wrappers, make_envs
from td3.errors import ConfigError
from td3.learner import Learner
from td3.learner.preprocessing import Normalizer, preprocess, shifted
from td3.loop import advance
from td3.reporting import evaluate
from td3.session import Session
from td3.storage import verify
from td3.types import Batch, Layout, Transitions

# ---- the encoder ----

TWO = layout_of(2, (image_part("a", 1, 9, 8), image_part("b", 3, 8, 11)), stack=2)


def learner_of(layout=TWO, action_size=2, **settings):
    known = {"hidden": (7,), "buffer_size": 100, "encoder_channels": (4, 3), "encoder_features": 5}
    return Learner(layout, action_size, Config(env="X-v0", **{**known, **settings}), 0)


def rows_of(layout, count, seed=0):
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (count, layout.stack, layout.frame), np.uint8)
    return layout.joined(frames, rng.standard_normal((count, layout.numbers), dtype=np.float32))


def batch_of(learner, count=6, dtype=torch.float32):
    rng, layout = np.random.default_rng(1), learner.layout
    a, r = rng.uniform(-1, 1, (count, learner.action_size)), rng.standard_normal(count)
    others = [torch.from_numpy(one).to(dtype) for one in (a, r, np.arange(count) % 3 == 0, np.full(count, 0.9))]
    s, s2 = (torch.from_numpy(rows_of(layout, count, seed)) for seed in (2, 3))
    return Batch(s, others[0], others[1], s2, others[2], others[3])


def in_double(learner):
    for name in ("actor", "actor_target", "critics", "critic_targets"):
        getattr(learner, name).double()
    return learner


def by_hand(encoder, layout, rows):
    """The features in float64: bytes to [−½, ½], convolutions with stride 2, a linear layer, a norm, tanh."""
    pixels = layout.frames(rows).astype(np.float64) / 255 - 0.5
    features, start = [], 0
    pictures = [part for part in layout.parts if part.kind == "image"]
    for part, encoder_of_part in zip(pictures, encoder.parts, strict=False):  # images first, then all numbers
        channels, height, width = part.shape
        x = torch.from_numpy(pixels[..., start : start + part.size].copy())
        x = x.reshape(len(rows), layout.stack * channels, height, width)
        start += part.size
        for layer in encoder_of_part.convolutions:
            if isinstance(layer, torch.nn.Conv2d):
                x = conv2d(x, layer.weight.double(), layer.bias.double(), stride=2, padding=1).clamp(min=0)
        x = linear(x.flatten(1), *(tensor.double() for tensor in encoder_of_part.joined.parameters()))
        norm = [tensor.double() for tensor in encoder_of_part.norm.parameters()]
        features.append(layer_norm(x, (x.shape[1],), *norm).tanh())
    return torch.cat([*features, torch.from_numpy(layout.vectors(rows).astype(np.float64))], dim=1)


def test_features_are_what_a_computation_by_hand_gives_and_numbers_pass_unchanged():
    learner, rows = learner_of(), rows_of(TWO, 4)
    rows[0, : TWO.stack * TWO.frame] = 255
    encoder = learner.critics.encoder
    features = encoder(torch.from_numpy(rows)).detach()
    expected = by_hand(encoder, TWO, rows).detach()
    assert features.shape == (4, 2 * 5 + 2) and encoder.size == 12 and features.dtype == torch.float32
    assert features.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert (features[:, 10:].numpy() == TWO.vectors(rows)).all()
    assert features[:, :10].abs().max() < 1 and features[:, :10].std() > 0.1
    assert in_double(learner).critics.encoder(torch.from_numpy(rows)).detach().numpy() == pytest.approx(
        expected.numpy(), abs=1e-12
    )


def test_what_is_observed_is_not_changed_by_reading_it():
    learner, rows = learner_of(), rows_of(TWO, 4)
    before = rows.copy()
    learner.act(rows), learner.value(rows, np.zeros((4, 2), np.float32))
    assert (rows == before).all()


def test_the_stack_is_read_in_its_order():
    learner, rows = learner_of(), rows_of(TWO, 3)
    turned = TWO.joined(TWO.frames(rows)[:, ::-1].copy(), TWO.vectors(rows))
    assert np.abs(learner.act(rows) - learner.act(turned)).max() > 1e-4


def test_each_image_has_an_encoder_of_its_own():
    layout = layout_of(0, (image_part("left", 1, 8, 8), image_part("right", 1, 8, 8)))
    encoder = learner_of(layout).critics.encoder
    left, right = encoder.parts
    assert {one.data_ptr() for one in left.parameters()}.isdisjoint(one.data_ptr() for one in right.parameters())
    image = some(3, 64)
    features = encoder(torch.from_numpy(np.concatenate([image, image], axis=1))).detach()
    assert (features[:, :5] - features[:, 5:]).abs().max() > 0.1


def test_the_critics_loss_moves_the_encoder_and_the_actors_does_not():
    both, critics_alone = learner_of(policy_delay=1), learner_of(policy_delay=2)
    born = numbers(both.critics.encoder)
    assert same(born, numbers(critics_alone.critics.encoder))
    batch, noise = batch_of(both), torch.zeros(6, 2)
    actor = copy.deepcopy(both.actor)
    features = both.critics.encoder(batch.observation).detach()
    update = both.update(batch, noise)
    assert critics_alone.update(batch, noise).actor_loss is None
    # What the actor ascends is the value of the features of step 10, by the critics of step 12.
    assert torch.equal(update.actor_loss, -both.critics.first(features, actor(features)).mean())
    moved = numbers(both.critics.encoder)
    assert not any(torch.equal(before, after) for before, after in zip(born, moved, strict=True))
    assert same(moved, numbers(critics_alone.critics.encoder))  # step 13 was all that was left out
    for mine, its in zip(both.critics.parameters(), critics_alone.critics.parameters(), strict=True):
        assert torch.equal(mine.grad, its.grad)
    assert not same(numbers(actor), numbers(both.actor))
    encoders = {id(one) for one in both.critics.encoder.parameters()}
    assert encoders.isdisjoint(id(one) for one in both.actor_optimizer.param_groups[0]["params"])
    assert encoders <= {id(one) for one in both.critics_optimizer.param_groups[0]["params"]}


def test_the_target_encoder_follows_slowly_and_only_with_the_other_targets():
    learner = learner_of(policy_delay=2, tau=0.25)
    batch, noise = batch_of(learner), torch.zeros(6, 2)
    born = numbers(learner.critic_targets.encoder)
    assert same(born, numbers(learner.critics.encoder))
    assert not any(one.requires_grad for one in learner.critic_targets.parameters())
    learner.update(batch, noise)
    assert same(born, numbers(learner.critic_targets.encoder))
    learner.update(batch, noise)
    for before, now, target in zip(
        born, learner.critics.encoder.parameters(), learner.critic_targets.encoder.parameters(), strict=True
    ):
        assert target.numpy() == pytest.approx((0.75 * before + 0.25 * now.detach()).numpy(), abs=1e-7)
        assert not torch.equal(target, before)


def test_the_next_action_and_its_values_come_from_the_target_encoder():
    learner = learner_of()
    with torch.no_grad():
        for one in learner.critic_targets.encoder.parameters():
            one.add_(0.3 * torch.sin(torch.arange(one.numel(), dtype=torch.float32)).reshape(one.shape))
    batch = batch_of(learner)
    with torch.no_grad():
        features, wrong = (one.encoder(batch.next_observation) for one in (learner.critic_targets, learner.critics))
        action, other = learner.actor_target(features), learner.actor_target(wrong)
        q1, q2 = learner.critic_targets(features, action)
    update = learner.update(batch, torch.zeros(6, 2))
    assert torch.equal(update.next_action, action) and not torch.allclose(action, other, atol=1e-3)
    assert torch.equal(update.next_q1, q1) and torch.equal(update.next_q2, q2)
    target = batch.reward + batch.discount * (1 - batch.terminated) * torch.minimum(q1, q2)
    assert torch.equal(update.target, target)


def test_the_encoders_gradient_is_the_slope_that_small_differences_show():
    learner = in_double(learner_of(policy_delay=1, target_noise=0.0))
    batch, before = batch_of(learner, dtype=torch.float64), copy.deepcopy(learner.critics)
    target = learner.update(batch, torch.zeros(6, 2)).target

    def loss():
        with torch.no_grad():
            q1, q2 = before(before.encoder(batch.observation), batch.action)
            return float(mse_loss(q1, target) + mse_loss(q2, target))

    checked = 0
    for name, weight in before.encoder.named_parameters():
        gradient = learner.critics.encoder.get_parameter(name).grad
        for where in (0, weight.numel() // 2, weight.numel() - 1):
            one = weight.data.view(-1)[where : where + 1]
            one += 1e-5
            up = loss()
            one -= 2e-5
            down = loss()
            one += 1e-5
            assert gradient.reshape(-1)[where].item() == pytest.approx((up - down) / 2e-5, abs=1e-8), name
            checked += abs(up - down) > 1e-8
    assert checked > 20  # slopes that are none would prove nothing


# ---- numbers are normalised ----


def transitions(rows):
    """What was looked at, and what followed: nobody asked for that."""
    n, follows = len(rows), np.zeros_like(rows)
    return Transitions.in_a_row(
        rows, np.zeros((n, 2), np.float32), np.zeros(n, np.float32), follows, np.zeros(n, np.bool_)
    )


@pytest.mark.parametrize(
    "layout", [Layout(3), layout_of(3, (image_part("a", 1, 8, 8),), 2)], ids=["numbers", "images too"]
)
@pytest.mark.parametrize("chunk", [1, 7, 100, 300])
def test_mean_and_deviation_are_those_of_everything_added(layout, chunk):
    rng = np.random.default_rng(0)
    seen = (rng.standard_normal((300, 3)) * [1, 50, 1e-3] + [1000, -7, 0]).astype(np.float32)
    frames = rng.integers(0, 256, (300, layout.stack, layout.frame), np.uint8)
    rows = layout.joined(frames, seen)
    normalizer = Normalizer(layout)
    for first in range(0, 300, chunk):
        normalizer.add(transitions(rows[first : first + chunk]))
    wide = seen.astype(np.float64)
    assert normalizer.count == 300 and normalizer.mean == pytest.approx(wide.mean(axis=0), rel=1e-9)
    assert normalizer.squares / 300 == pytest.approx(wide.var(axis=0), rel=1e-9)
    normal = normalizer(rows)
    assert normal.dtype == rows.dtype and normal.shape == rows.shape
    expected = (wide - wide.mean(axis=0)) / np.sqrt(wide.var(axis=0) + 1e-8)
    assert layout.vectors(normal) == pytest.approx(expected, abs=1e-6)
    assert (layout.frames(normal) == layout.frames(rows)).all()


def test_what_lies_far_out_is_read_as_ten_deviations_and_nothing_is_divided_by_nought():
    normalizer = Normalizer(Layout(2))
    few = np.float32([[3.0, 5.0]])
    assert normalizer(few).tolist() == [[3.0, 5.0]]  # nothing is known yet
    normalizer.add(transitions(few))
    assert normalizer(np.float32([[4.0, 3.0]])).tolist() == [[1.0, -2.0]]
    normalizer.add(transitions(np.float32([[5.0, 5.0]])))  # the mean is 4 ± 1, and 5 always
    assert normalizer(np.float32([[13.0, 5.0], [15.0, 6.0], [-99.0, 4.0]])).tolist() == [[9, 0], [10, 10], [-10, -10]]


@pytest.mark.parametrize("kind", ["numbers", "both"])
def test_the_memory_is_raw_and_what_is_learned_from_is_normalised(kind):
    session = session_of(kind, normalize_observations=True, random_shift=2 if kind == "both" else 0)
    list(advance(session, 60))
    learner, memory = session.learner, session.learner.memory
    raw = memory.columns["observation" if kind == "numbers" else "numbers"][: memory.written]
    assert raw.min() >= 100 and raw.max() < 109.1  # as Dot shows itself
    drawn = learner.sample(np.random.default_rng(0), np.random.default_rng(1))
    stored, recalled = memory.batch(drawn.indices), learner.load_batch(drawn)
    for mine, its in ((recalled.observation, stored.observation), (recalled.next_observation, stored.next_observation)):
        numbers = learner.layout.vectors(mine.numpy())
        assert (numbers == learner.layout.vectors(learner.normalizer(its.numpy()))).all()
        assert np.abs(numbers).max() < 5 and numbers.std() > 0.3
    assert learner.normalizer.count == 60  # what was looked at, once each
    session.close()


@pytest.mark.parametrize("kind", ["numbers", "both"])
def test_the_statistics_stand_still_while_an_agent_is_evaluated_and_go_with_it(kind, tmp_path):
    session = session_of(kind, tmp_path / "run", normalize_observations=True, eval_every=20, eval_episodes=2)
    list(advance(session, 60))
    learner = session.learner
    assert learner.normalizer.count == 60  # three evaluations of 24 steps each have left no trace
    before = learner.normalizer.tensors()
    evaluate(session)
    assert all(torch.equal(one, before[name]) for name, one in learner.normalizer.tensors().items())
    agent = td3.load(tmp_path / "run", env=partial(Dot, kind))
    seen = [session.collector.envs.envs[0].reset(seed=seed)[0] for seed in range(3)]
    rows = np.stack([session.collector.envs.observation.flatten_one(one) for one in seen])
    for one, row in zip(seen, rows, strict=True):
        expected = session.collector.envs.action.to_env(learner.act(row[None]))[0]
        assert agent.act(one) == pytest.approx(expected, abs=1e-6)
    assert np.abs(learner.act(rows) - session_of(kind).learner.act(rows)).max() > 1e-3  # it does make a difference
    td3.evaluate(agent, 1)
    assert agent.act(seen[0]) == pytest.approx(session.collector.envs.action.to_env(learner.act(rows[:1]))[0], abs=1e-6)
    session.close()


# ---- images are shifted ----

FLAT = layout_of(1, (image_part("a", 1, 3, 4),))


def test_an_image_moves_down_and_right_and_its_edge_is_repeated():
    image = np.arange(12, dtype=np.uint8).reshape(3, 4)
    moved = {
        (0, 0): image,
        (1, 0): [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]],
        (-1, 0): [[4, 5, 6, 7], [8, 9, 10, 11], [8, 9, 10, 11]],
        (0, 2): [[0, 0, 0, 1], [4, 4, 4, 5], [8, 8, 8, 9]],
        (0, -1): [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]],
        (-1, 1): [[4, 4, 5, 6], [8, 8, 9, 10], [8, 8, 9, 10]],
        (5, -9): [[3] * 4] * 3,
    }
    rows = FLAT.joined(np.tile(image.reshape(1, 1, 12), (len(moved), 1, 1)), np.arange(7, dtype=np.float32)[:, None])
    before = rows.copy()
    moved_rows = shifted(rows, FLAT, np.array(list(moved)))
    for row, expected in zip(FLAT.frames(moved_rows), moved.values(), strict=True):
        assert row.reshape(3, 4).tolist() == np.array(expected).tolist()
    assert FLAT.vectors(moved_rows)[:, 0].tolist() == list(range(7)) and (rows == before).all()
    assert (shifted(rows[:1], FLAT, np.zeros((1, 2), np.int64)) == rows[:1]).all()


def test_all_images_of_a_row_move_alike_and_each_row_by_itself():
    rows, shifts = rows_of(TWO, 5), np.array([[2, -1], [0, 0], [-2, -2], [1, 2], [0, -2]])
    moved_rows, start = TWO.frames(shifted(rows, TWO, shifts)), 0
    for channels, height, width in ((1, 9, 8), (3, 8, 11)):
        shape, end = (5, TWO.stack, channels, height, width), start + channels * height * width
        before, after = (one[..., start:end].reshape(shape) for one in (TWO.frames(rows), moved_rows))
        for row, (down, right) in enumerate(shifts):
            y = np.clip(np.arange(height) - down, 0, height - 1)
            x = np.clip(np.arange(width) - right, 0, width - 1)
            assert (after[row] == before[row][:, :, y][:, :, :, x]).all()
        start = end


def test_s_and_its_successor_are_shifted_apart_and_numbers_are_left_alone():
    learner = learner_of(random_shift=2, batch_size=500)
    rows = rows_of(TWO, 2)
    frames = TWO.frames(rows)[:1]
    follows = TWO.joined(np.concatenate([frames[:, 1:], frames[:, :1]], axis=1), TWO.vectors(rows)[1:])
    no = np.zeros(1, np.bool_)
    learner.memory.add(
        Transitions.in_a_row(rows[:1], np.zeros((1, 2), np.float32), np.ones(1, np.float32), follows, no)
    )
    drawn = learner.sample(np.random.default_rng(0), np.random.default_rng(1))
    assert drawn.shifts.shape == (2, 500, 2) and set(drawn.shifts.ravel().tolist()) == {-2, -1, 0, 1, 2}
    assert np.abs(np.corrcoef(drawn.shifts.transpose(0, 2, 1).reshape(4, 500)) - np.eye(4)).max() < 0.2
    loaded, raw = learner.load_batch(drawn), learner.memory.batch(drawn.indices)
    for mine, its, shifts in zip((loaded[0], loaded[3]), (raw[0], raw[3]), drawn.shifts, strict=True):
        assert (mine.numpy() == shifted(its.numpy(), TWO, shifts)).all() and not torch.equal(mine, its)
        assert (TWO.vectors(mine.numpy()) == TWO.vectors(its.numpy())).all()
    assert all(torch.equal(loaded[one], raw[one]) for one in (1, 2, 4, 5))
    unmoved = preprocess(raw, TWO, None, np.zeros((2, 500, 2), np.int64))
    assert torch.equal(unmoved.observation, raw.observation)
    assert preprocess(raw, TWO, None, None) is raw
    still = learner_of()
    still.sampler = learner.sampler
    assert still.sample(np.random.default_rng(0), np.random.default_rng(1)).shifts is None


# ---- rewards are scaled ----


def test_scaled_rewards_are_what_is_learned_from_and_raw_ones_what_is_told():
    session = session_of("numbers", reward_scale=0.25, eval_every=30, eval_episodes=2)
    events = list(advance(session, 60))
    learner, memory = session.learner, session.learner.memory
    scaled = memory.columns["reward"][: memory.written]
    assert scaled.min() >= 25 and scaled.max() < 27.3  # a quarter of 100 to 109
    ended = [event for event in events if isinstance(event, td3.EpisodeEnded)]
    assert [event.length for event in ended] == [12] * 5
    assert [event.episode_return for event in ended] == pytest.approx(4 * scaled.reshape(5, 12).sum(axis=1), rel=1e-6)
    (first, *_) = [event.evaluation for event in events if isinstance(event, td3.Evaluated)]
    assert all(1_200 <= one < 1_310 for one in first.returns)
    rows, actions = memory.columns["observation"][:5], memory.columns["action"][:5]
    with torch.no_grad():
        inner = learner.critics.first(torch.from_numpy(rows), torch.from_numpy(actions)).numpy()
    assert learner.value(rows, actions) == pytest.approx(4 * inner, rel=1e-6) and np.abs(inner).max() > 1e-3
    session.close()


# ---- agents of images ----


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("image", {}),
        ("both", {"frame_stack": 3, "grey": True, "n_step": 2}),
        ("image", {"pixels": 10, "buffer_size": 100, "normalize_observations": False}),
    ],
    ids=["images", "stacked, with numbers", "drawn"],
)
def test_a_loaded_agent_acts_as_the_learner_did(kind, settings, tmp_path):
    session = session_of(kind, tmp_path / "run", **settings)
    list(advance(session, 60))
    make = session.config.env
    agent = td3.load(tmp_path / "run", env=make)
    envs = make_envs(make, wrappers=Wrappers.of(session.config), env_args=session.config.env_args)
    env = envs.envs[0]
    seen = [env.reset(seed=3)[0], *(env.step(np.ones(1, np.float32))[0] for _ in range(4))]
    rows = np.stack([envs.observation.flatten_one(one) for one in seen])
    expected = session.collector.envs.action.to_env(session.learner.act(rows))
    assert agent.observation.layout == session.collector.envs.observation.layout
    for one, action in zip(seen, expected, strict=True):
        assert agent.act(one).shape == (1,) and agent.act(one) == pytest.approx(action, abs=1e-6)
    batch = {key: np.stack([one[key] for one in seen]) for key in seen[0]} if kind == "both" else np.stack(seen)
    assert agent.act(batch).shape == (5, 1) and agent.act(batch) == pytest.approx(expected, abs=1e-6)
    repeat = session.config.action_repeat
    evaluation = td3.evaluate(agent, 2)
    assert evaluation.lengths == (12 // repeat,) * 2 and all(1_200 <= one < 1_310 for one in evaluation.returns)
    session.close()


def test_the_short_way_learns_predicts_saves_and_loads_images(tmp_path):
    agent = td3.TD3(Dot, **SMALL, frame_stack=2, buffer_size=50).learn(60)
    seen = make_envs(Dot, wrappers=Wrappers(frame_stack=2)).envs[0].reset(seed=1)[0]
    action, _ = agent.predict(seen)
    assert action.shape == (1,) and Dot.action_space.contains(action)
    agent.save(tmp_path / "run")
    loaded = td3.TD3.load(tmp_path / "run", env=Dot)
    assert loaded.predict(seen)[0] == pytest.approx(action, abs=1e-6)
    assert td3.evaluate(loaded, 1).lengths == (12,)
    goes_on, went_on = loaded.learn(20)._session.learner, agent.learn(20)._session.learner
    assert goes_on.updates == went_on.updates == 60
    assert same(numbers(goes_on.critics), numbers(went_on.critics))


def test_an_image_of_another_size_is_no_observation_of_this_agent(tmp_path):
    agent = td3.TD3(Dot, **SMALL).learn(25)
    with pytest.raises(ConfigError, match=r"^observation has shape \(8, 12, 3\), not \(9, 12, 3\)\.$"):
        agent.predict(np.zeros((8, 12, 3), np.uint8))


def test_an_agent_learns_where_the_reward_is_only_from_what_it_sees():
    class Sign(gymnasium.Env):
        """One step: white wants the action 0.5, black −0.5; the image is all there is to tell."""

        observation_space, action_space = images(8, 8), Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.wanted = self.np_random.choice([-0.5, 0.5])
            return self._seen(), {}

        def step(self, action):
            return self._seen(), -float((action[0] - self.wanted) ** 2), True, False, {}

        def _seen(self):
            return np.full((8, 8), 255 if self.wanted > 0 else 0, np.uint8)

    fast = {"actor_lr": 3e-3, "critic_lr": 3e-3, "hidden": (32,), "batch_size": 32, "warmup_steps": 200}
    agent = td3.TD3(Sign, **{**SMALL, **fast}, buffer_size=2_000).learn(900)
    white, black = agent.predict(np.stack([np.full((8, 8), 255, np.uint8), np.zeros((8, 8), np.uint8)]))[0][:, 0]
    assert white == pytest.approx(0.5, abs=0.15) and black == pytest.approx(-0.5, abs=0.15)


def test_one_row_of_an_image_and_numbers_is_read_wherever_its_numbers_begin(tmp_path):
    space = spaces.Dict({"eye": images(9, 9), "n": Box(-1, 1, (2,), np.float32)})  # 81 bytes: no place for a float
    make = lambda: Spaces(space, Box(-1, 1, (1,)))
    assert list(td3.train(Config(env=make, steps=40, **SMALL), tmp_path / "run"))[-1].step == 40
    agent = td3.load(tmp_path / "run", env=make)
    seen = [space.sample() for _ in range(3)]
    together = agent.act({key: np.stack([one[key] for one in seen]) for key in ("eye", "n")})
    assert np.stack([agent.act(one) for one in seen]) == pytest.approx(together, abs=1e-6)
    assert td3.evaluate(agent, episodes=1).lengths == (10,)


def test_a_policy_that_normalises_can_be_sent_elsewhere(tmp_path):
    make = partial(Dot, "numbers")
    list(td3.train(Config(env=make, steps=40, normalize_observations=True, **SMALL), tmp_path / "run"))
    policy = td3.load(tmp_path / "run", env=make).policy
    rows = np.float32([[100, 104], [101, 107]])
    assert (pickle.loads(pickle.dumps(policy))(rows) == policy(rows)).all()


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"random_shift": 2, "env": "Pendulum-v1"}, "random_shift must be 0 here: the observation has no image; got 2"),
        ({"engine": "native"}, "engine must be torch or auto here: the native engine reads vectors, not images;"),
        ({"normalize_observations": True}, "normalize_observations must be off here"),
        ({"buffer_size": 3}, "buffer_size must be at least 4 here"),
    ],
)  # fmt: skip
def test_check_and_train_refuse_the_same(settings, refusal):
    from td3.views.env_report import check_environment

    config = Config(**{"env": Dot, "steps": 20, **SMALL, **settings})
    for attempt in (lambda: check_environment(config), lambda: list(td3.train(config))):
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert str(caught.value).startswith(refusal)


# ---- runs from before the parts of an encoder had their names ----

FORMER = Path(__file__).parent / "data" / "encoder_eyes"  # Pendulum from 8×8 pixels, 12 steps; its parts are "eyes"


def test_a_run_from_before_is_loaded_and_goes_on_with_every_tensor_in_its_place(tmp_path):
    (checkpoint,) = (FORMER / "checkpoints").iterdir()
    tensors = load_file(checkpoint / "networks.safetensors")
    assert sum("encoder.eyes.0." in name for name in tensors) == 12
    agent = td3.load(FORMER)
    assert agent.step == 12 and agent.act(np.zeros((2, 8, 8, 1), np.uint8)).shape == (1,)
    run = tmp_path / "run"
    shutil.copytree(FORMER, run)
    session = Session.resumed(run, {"steps": 20}, None, False)
    for name, network in session.learner.networks().items():
        for key, tensor in network.state_dict().items():
            assert torch.equal(tensor, tensors[f"{name}.{key}".replace("encoder.parts.", "encoder.eyes.")])
    moments = load_file(checkpoint / "optimizers.safetensors")
    for place, parameter in enumerate(session.learner.critics.parameters()):
        state = session.learner.critics_optimizer.state[parameter]
        assert torch.equal(state["exp_avg"], moments[f"critics_optimizer.{place}.exp_avg"])
    events = list(advance(session, 20))
    session.close()
    assert session.step == 20 and not any(isinstance(event, td3.SaveFailed) for event in events)
    assert not list(verify(run).values())[-1]
