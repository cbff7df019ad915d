"""Kinds of observation parts: two that td3 does not know are added here, from outside, and run like any other.

An angle is stored as it is and encoded as its sine and cosine. A token is stored as its index and looked up in a table
that is learned. No file of td3 is changed for them: each is a class and an entry in two tables.
"""

import json
import math
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch
from dots import SMALL, images
from gymnasium import spaces
from torch import nn

import td3
from td3.config import Config
from td3.environments import ObservationMap, Wrappers, make_envs
from td3.environments.descriptions import describe_layout
from td3.environments.observations import KINDS, CategoryLeaf, VectorLeaf
from td3.learner import choose_engine
from td3.learner.encoders import ENCODERS, VectorEncoder, encoder_of
from td3.learner.preprocessing import Normalizer
from td3.loop import advance
from td3.session import Session
from td3.types import Layout, Part, Transitions
from td3.views.env_report import check_environment, lines_of


class Angle(VectorLeaf):
    """Numbers between −π and π."""

    kind = "angle"

    @classmethod
    def accepts(cls, name, space, frame_stack):
        return isinstance(space, spaces.Box) and bool((space.high == np.float32(np.pi)).all())


class SineAndCosine(nn.Module):
    def __init__(self, part, stack, config):
        super().__init__()
        self.size = 2 * part.size

    def forward(self, angles):
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Token(CategoryLeaf):
    """One of many categories, stored as its index."""

    kind = "token"

    def stored_shape(self):
        super().stored_shape()
        return (1,)

    def convert(self, values, count):
        return (values.reshape(count, 1) - self.start).astype(np.float32)


class Table(nn.Embedding):
    def __init__(self, part, stack, config):
        super().__init__(5, 3)
        self.size = 3

    def forward(self, indices):
        return super().forward(indices[:, 0].long())


@pytest.fixture(autouse=True)
def _added(monkeypatch):
    monkeypatch.setitem(KINDS, "angle", Angle)
    monkeypatch.setitem(ENCODERS, "angle", SineAndCosine)
    monkeypatch.setitem(KINDS, "token", Token)
    monkeypatch.setitem(ENCODERS, "token", Table)


class Compass(gymnasium.Env):
    """Turn to the north; a bell has one of five tones. With a camera, there is an image, too."""

    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, camera=False):
        parts = {
            "heading": spaces.Box(-np.pi, np.pi, (1,), np.float32),
            "speed": spaces.Box(-1, 1, (2,), np.float32),
            "tone": spaces.Discrete(5, start=10),
        }
        self.camera = camera
        self.observation_space = spaces.Dict(parts | ({"camera": images(8, 8)} if camera else {}))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.heading, self.count = self.np_random.uniform(-3, 3), 0
        return self._observation(), {}

    def step(self, action):
        self.heading = math.remainder(self.heading + float(action[0]), 2 * math.pi)
        self.count += 1
        return self._observation(), math.cos(self.heading), False, self.count == 20, {}

    def _observation(self):
        parts = {
            "heading": np.float32([self.heading]),
            "speed": self.np_random.uniform(-1, 1, 2).astype(np.float32),
            "tone": int(self.np_random.integers(10, 15)),
        }
        return parts | ({"camera": self.np_random.integers(0, 256, (8, 8), np.uint8)} if self.camera else {})


def with_camera():
    return Compass(camera=True)


ENVS = {"numbers": Compass, "images too": with_camera}


def config(env=Compass, **settings):
    return Config(env=env, **{**SMALL, "steps": 90, "log_every": 1, "checkpoint_every": 30, **settings})


def played(session, goal):
    for _ in advance(session, goal):
        pass
    session.close()
    learner = session.learner
    networks = {name: network.state_dict() for name, network in learner.networks().items()}
    tensors = {f"{name}.{key}": value.numpy() for name, state in networks.items() for key, value in state.items()}
    return {name: value.tobytes() for name, value in tensors.items()}, {
        name: column[: learner.memory.written].tobytes() for name, column in learner.memory.columns.items()
    }


def test_parts_of_kinds_that_were_added_are_stored_as_their_leaf_says():
    observation = ObservationMap(Compass().observation_space)
    assert observation.layout == Layout(
        [
            Part("observation['heading']", "angle", (1,)),
            Part("observation['speed']", "vector", (2,)),
            Part("observation['tone']", "token", (1,)),
        ]
    )
    row = observation.flatten_one({"heading": np.float32([3.0]), "speed": np.float32([0.5, -0.5]), "tone": 13})
    assert row.tolist() == [3.0, 0.5, -0.5, 3.0]
    wide = ObservationMap(with_camera().observation_space)
    assert (wide.layout.frame, wide.layout.numbers, wide.layout.size) == (64, 4, 64 + 16)


def test_the_encoder_of_each_kind_makes_the_features_and_all_are_joined_in_order():
    layout = ObservationMap(Compass().observation_space).layout
    encoder = encoder_of(layout, config())
    assert encoder.size == 2 + 2 + 3
    features = encoder(torch.tensor([[3.0, 0.5, -0.5, 1.0], [-1.0, 0.1, 0.2, 4.0]]))
    table = encoder.parts[2].weight
    for row, (angle, speed, tone) in enumerate([(3.0, [0.5, -0.5], 1), (-1.0, [0.1, 0.2], 4)]):
        expected = [math.sin(angle), math.cos(angle), *speed, *table[tone].tolist()]
        assert features[row].tolist() == pytest.approx(expected, abs=1e-6)


def test_neighbours_that_are_passed_on_as_they_are_share_one_encoder_and_alone_need_none():
    parts = [Part(name, "vector", (2,)) for name in "abc"]
    angle = Part("d", "angle", (1,))
    encoder = encoder_of(Layout([*parts, angle, *parts]), config())
    assert [type(part).__name__ for part in encoder.parts] == ["VectorEncoder", "SineAndCosine", "VectorEncoder"]
    assert [part.size for part in encoder.parts] == [6, 2, 6]
    assert type(encoder_of(Layout(parts), config())) is VectorEncoder


def test_an_encoder_encodes_every_observation_that_is_joined():
    envs = make_envs(with_camera, wrappers=Wrappers(frame_stack=2, history=3))
    settings = config(with_camera, frame_stack=2, history=3)
    layout = envs.observation.layout
    encoder, rows = encoder_of(layout, settings), torch.from_numpy(envs.reset([0, 1][:1]))
    numbers = torch.from_numpy(layout.vectors(rows.numpy())).reshape(3, 4)
    features = encoder(rows)
    assert features.shape == (1, encoder.size) == (1, 6 + 3 * 7)
    *_, table = encoder.parts
    for step, (heading, *speed, tone) in enumerate(numbers):
        sine_and_cosine = torch.stack([heading.sin(), heading.cos()])
        expected = torch.cat([sine_and_cosine, torch.stack(speed), table(tone.reshape(1, 1))[0]])
        assert torch.equal(features[0, 6 + 7 * step : 6 + 7 * step + 7], expected)
    assert "1 angle of float32 × 3 observations" in "\n".join(lines_of(check_environment(settings)))
    assert "; its encoder outputs 6 features" in "\n".join(lines_of(check_environment(settings)))


@pytest.mark.parametrize("settings", [{}, {"n_step": 3, "normalize_observations": True}], ids=["plain", "more"])
@pytest.mark.parametrize("name", list(ENVS))
def test_a_run_with_such_parts_is_recorded_and_resumed_to_the_bit(name, settings, tmp_path):
    settings = config(ENVS[name], **settings, **({"frame_stack": 2} if name == "images too" else {}))
    whole = played(Session(settings, tmp_path / "whole"), 90)
    list(td3.train(replace(settings, steps=50), tmp_path / "run"))
    resumed = played(Session.resumed(tmp_path / "run", {"steps": 90}, ENVS[name], False), 90)
    assert resumed == whole
    assert any("encoder.parts" in key and "weight" in key for key in whole[0])
    line = json.loads((tmp_path / "whole" / "updates.jsonl").read_bytes().splitlines()[0])
    assert line["observation_size"] == 4 and line["moved"]["encoder"] > 0
    assert (line["images"] if name == "images too" else line)["features"] == 7 + 6 * (name == "images too")
    for _, *_, tone in line["rows"]["observation"]:
        assert tone in (0, 1, 2, 3, 4)
    agent = td3.load(tmp_path / "run", env=ENVS[name])
    assert agent.act(agent.make_env().reset(seed=1)[0]).shape == (1,)


def test_a_learned_table_learns_and_depends_on_the_seed_alone(tmp_path):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = Session(config())
    assert torch.equal(torch.get_rng_state(), before)
    start = first.learner.critics.encoder.parts[2].weight.detach().clone()
    played(first, 90)
    assert (first.learner.critics.encoder.parts[2].weight - start).abs().min() > 1e-4
    torch.manual_seed(2)
    second = Session(config())
    assert torch.equal(second.learner.critics.encoder.parts[2].weight, start)
    second.close()


def test_only_kinds_that_are_listed_are_normalised():
    layout = ObservationMap(Compass().observation_space).layout
    normalizer, rows = Normalizer(layout), np.float32([[3, 1, 5, 1], [-3, 3, 9, 4]])
    none = np.zeros(2, np.float32)
    normalizer.add(Transitions.in_a_row(rows, none[:, None], none, rows, none > 0))
    assert normalizer.mean.tolist() == [2, 7]
    assert normalizer(rows) == pytest.approx(np.float32([[3, -1, -1, 1], [-3, 1, 1, 4]]), abs=1e-6)
    assert rows[0].tolist() == [3, 1, 5, 1]


def test_processes_learn_of_kinds_that_were_added():
    rows = []
    for workers in (0, 2):
        envs = make_envs(Compass, 2, workers, wrappers=Wrappers())
        actions = np.float32([[0.5], [-0.5]])
        rows.append([envs.reset([1, 2]), *(envs.step(actions).next_observation for _ in range(5))])
        envs.close()
    assert np.array_equal(*rows) and rows[0][0].shape == (2, 4)


def test_what_is_observed_is_described_by_kind():
    layout = ObservationMap(Compass().observation_space).layout
    assert describe_layout(layout) == "1 angle and 2 numbers and 1 token"
    checked = check_environment(config(normalize_observations=True))
    assert [part["numbers"] for part in checked["observation"]] == [2, 2, 3]
    text = "\n".join(lines_of(checked))
    assert "observation['heading'] (1,) float32 → 1 angle of float32; its encoder outputs 2 features" in text
    assert "observation['speed'] (2,) float32 → 2 numbers, normalised" in text
    assert "observation['tone'] () int64 → 1 token of float32; its encoder outputs 3 features" in text


def test_the_native_engine_leaves_other_kinds_to_torch_and_says_so():
    layout = ObservationMap(Compass().observation_space).layout
    engine, note = choose_engine(config(), layout)
    assert engine == "torch" and "not angles" in note
    with pytest.raises(td3.ConfigError, match=r"engine .* angles"):
        choose_engine(config(engine="native"), layout)


def test_a_run_names_the_kinds_that_it_needs_and_asks_for_them(tmp_path, monkeypatch):
    list(td3.train(config(steps=40), tmp_path / "run"))
    monkeypatch.delitem(KINDS, "angle")
    for attempt in (lambda: td3.load(tmp_path / "run"), lambda: list(td3.resume(tmp_path / "run", 60, Compass))):
        with pytest.raises(td3.ConfigError, match=r"observations\.KINDS must have the kind 'angle'"):
            attempt()


def test_a_kind_without_an_encoder_is_refused_by_name(monkeypatch):
    monkeypatch.delitem(ENCODERS, "token")
    with pytest.raises(td3.ConfigError, match=r"ENCODERS must have the kind of observation\['tone'\]; got 'token'"):
        Session(config())


def test_a_policy_with_a_kind_that_was_added_is_not_exported_and_the_part_is_named(tmp_path):
    agent = td3.TD3(Compass, **SMALL).agent
    with pytest.raises(td3.ConfigError, match=r"observation\['heading'\] is of the kind 'angle'"):
        agent.export(tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())
