"""Images from the environment to the action: how they are shown, read, shifted and learned from."""

import contextlib
import copy
import itertools
import pickle
from functools import partial

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from tiny import numbers, same
from torch.nn.functional import conv2d, layer_norm, linear, mse_loss
from worlds_for_tests import Spaces

import td3
from td3.collection import Collector
from td3.config import Config
from td3.environments import ObservationMap, View, make_worlds
from td3.environments.images import Prepared, Rendered, Repeated
from td3.environments.spaces import BadValue, space_from_data, space_to_data
from td3.errors import ConfigError, EnvironmentFailure, SpaceError
from td3.learner import Learner
from td3.learner.reading import Normalizer, ready, shifted
from td3.training import Session
from td3.types import Batch, Layout, Picture, Transitions

Box = spaces.Box
SMALL = {
    "hidden": (8,), "batch_size": 8, "warmup_steps": 20, "threads": 1, "encoder_channels": (4,), "encoder_features": 6,
    "eval_every": 0, "film": False,
}  # fmt: skip


def images(*shape):
    return Box(0, 255, shape, np.uint8)


def some(*shape, seed=0):
    """Bytes by chance, the same ones each time."""
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


class Dot(gymnasium.Env):
    """A dot that wanders by its own chance and by the action, shown as an image, as numbers, as both, or drawn."""

    action_space = Box(-2, 3, (1,), np.float32)
    metadata = {"render_modes": ["rgb_array"]}
    spaces = {
        "image": images(9, 12, 3),
        "numbers": Box(-np.inf, np.inf, (2,), np.float32),
        "both": spaces.Dict({"a": Box(-np.inf, np.inf, (2,), np.float32), "eye": images(9, 12, 3)}),
    }

    def __init__(self, kind="image", render_mode=None):
        self.kind, self.render_mode, self.observation_space = kind, render_mode, self.spaces[kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.count = self.np_random.uniform(0, 9, 2).astype(np.float32), 0
        return self._seen(), {}

    def step(self, action):
        self.count += 1
        self.place = (self.place + self.np_random.normal(size=2).astype(np.float32) + action) % np.float32(9)
        return self._seen(), 100.0 + float(self.place[0]), False, self.count == 12, {}

    def _seen(self):
        parts = {"a": 100 + self.place, "eye": self._picture(9, 12)}
        return parts if self.kind == "both" else parts["eye" if self.kind == "image" else "a"]

    def _picture(self, height, width):
        picture = np.full((height, width, 3), 30, np.uint8)
        picture[tuple(np.int64(self.place * height / 9))] = [250, 130, 10]
        return picture

    def render(self):
        return self._picture(24, 36)


def session_of(kind, run=None, **settings):
    return Session(Config(**{"env": partial(Dot, kind), "steps": 60, **SMALL, **settings}), run)


# ---- observations become rows ----

SHAPES = {  # where channel c of the pixel (y, x) is found
    (9, 10): (1, lambda image, c, y, x: image[y, x]),
    (9, 10, 1): (1, lambda image, c, y, x: image[y, x, c]),
    (9, 10, 3): (3, lambda image, c, y, x: image[y, x, c]),
    (3, 9, 10): (3, lambda image, c, y, x: image[c, y, x]),
    (9, 10, 9): (9, lambda image, c, y, x: image[y, x, c]),
    (4, 9, 10, 3): (12, lambda image, c, y, x: image[c // 3, y, x, c % 3]),
    (2, 3, 9, 10): (6, lambda image, c, y, x: image[c // 3, c % 3, y, x]),
}


def planes(frame_bytes, channels, find, image):
    """Whether these bytes are that image, channel by channel."""
    stored = frame_bytes.reshape(channels, 9, 10)
    everywhere = itertools.product(range(channels), range(9), range(10))
    return all(stored[c, y, x] == find(image, c, y, x) for c, y, x in everywhere)


@pytest.mark.parametrize("shape", list(SHAPES))
def test_every_pixel_of_every_shape_of_image_has_its_place(shape):
    channels, find = SHAPES[shape]
    seen, image = ObservationMap(images(*shape)), some(*shape)
    assert seen.layout == Layout(0, (Picture("observation", channels, 9, 10),), 1)
    row = seen.flatten_one(image)
    assert row.dtype == seen.layout.dtype == np.uint8 and row.shape == (channels * 90,) == (seen.size,)
    assert planes(seen.layout.frames(row[None])[0, 0], channels, find, image)
    back = ObservationMap(space_from_data(space_to_data(images(*shape))))
    assert back.layout == seen.layout


@pytest.mark.parametrize("shape", list(SHAPES))
def test_stacked_frames_lie_one_after_the_other_the_oldest_first(shape):
    channels, find = SHAPES[shape]
    seen, batch = ObservationMap(images(3, *shape), frame_stack=3), some(2, 3, *shape)
    assert seen.layout == Layout(0, (Picture("observation", channels, 9, 10),), 3)
    rows, was_batch = seen.rows(batch)
    frames = seen.layout.frames(rows)
    assert was_batch and frames.shape == (2, 3, channels * 90)
    for row, place in itertools.product(range(2), range(3)):
        assert planes(frames[row, place], channels, find, batch[row, place])
    one, was_batch = seen.rows(batch[1])
    assert not was_batch and (one == rows[1:]).all()


def test_images_nested_anywhere_come_first_and_numbers_keep_their_order_behind_them():
    space = spaces.Dict(
        {
            "a": Box(-1, 1, (2,), np.float64),
            "b": spaces.Tuple([images(8, 9), spaces.Discrete(3), images(4, 4)]),
            "c": spaces.Dict({"eye": images(3, 8, 8), "ear": Box(-5, 5, (), np.float32)}),
        }
    )
    seen = ObservationMap(space)
    flat, colour = some(8, 9, seed=1), some(3, 8, 8, seed=2)
    table = np.arange(16, dtype=np.uint8).reshape(4, 4)
    row = seen.flatten_one({"a": np.array([0.5, -0.25]), "b": (flat, 2, table), "c": {"eye": colour, "ear": 3.0}})
    names = ("observation['b'][0]", "observation['c']['eye']")
    assert seen.layout == Layout(22, (Picture(names[0], 1, 8, 9), Picture(names[1], 3, 8, 8)))
    assert row.tobytes()[: 72 + 192] == flat.tobytes() + colour.tobytes()
    assert row.size == 72 + 192 + 4 * 22
    assert seen.layout.vectors(row[None])[0].tolist() == [0.5, -0.25, 0, 0, 1, *range(16), 3]
    assert seen.layout.vectors(row[None]).dtype == np.float32


@pytest.mark.parametrize("space", [images(4, 4), images(7, 9), images(3, 7, 12), images(8), images(2, 2, 2, 30, 30)])
def test_small_tables_of_bytes_stay_numbers(space):
    seen = ObservationMap(space)
    assert seen.layout == Layout(int(np.prod(space.shape))) and seen.layout.dtype == np.float32
    assert seen.flatten_one(np.full(space.shape, 200, np.uint8)).tolist() == [200.0] * seen.size


def test_a_picture_of_real_numbers_is_no_image():
    assert ObservationMap(Box(0, 1, (9, 10, 3), np.float32)).layout == Layout(270)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.zeros((10, 9), np.uint8), r"observation has shape \(10, 9\), not \(9, 10\)"),
        (np.zeros((9, 10, 1), np.uint8), r"observation has shape \(9, 10, 1\), not \(9, 10\)"),
        (np.zeros((9, 10), np.float32), "observation has dtype float32, not uint8"),
        (np.zeros((9, 10), np.int64), "observation has dtype int64, not uint8"),
        (None, "observation is no array of numbers"),
    ],
)
def test_what_is_no_such_image_is_told_with_field_and_reason(value, sentence):
    with pytest.raises(BadValue, match=sentence):
        ObservationMap(images(9, 10)).flatten_one(value)


def test_an_image_is_copied_because_environments_reuse_their_arrays():
    for shape in SHAPES:
        image = some(*shape)
        row = ObservationMap(images(*shape)).flatten_one(image)
        before = row.copy()
        image[:] = 0
        assert (row == before).all() and row.any()


@pytest.mark.parametrize("dtype", [np.uint16, np.uint64])
def test_wider_unsigned_integers_are_refused_or_made_bytes(dtype):
    seen = ObservationMap(spaces.Dict({"eye": images(8, 8), "n": Box(-1, 1, (2,), np.float32)}))
    try:
        row = seen.flatten_one({"eye": np.full((8, 8), 7, dtype), "n": np.float32([0.5, 0.25])})
    except BadValue:
        return
    assert row.dtype == np.uint8 and (row[:64] == 7).all()
    assert seen.layout.vectors(row[None]).tolist() == [[0.5, 0.25]]


def test_a_space_of_images_is_told_in_a_few_words():
    assert len(str(space_to_data(images(3, 84, 84, 3)))) < 1_000
    odd = Box(np.zeros((8, 8), np.uint8), some(8, 8) | 1, (8, 8), np.uint8)
    assert space_from_data(space_to_data(odd)).shape == (8, 8)


# ---- environments are looked at ----


class Scripted(gymnasium.Env):
    """Shows one observation after the other, whatever is done; pays the number of each; ends after some."""

    action_space = Box(-1, 1, (1,), np.float32)

    def __init__(self, space, shown, terminates=(), truncates=()):
        self.observation_space, self.shown, self.ends = space, shown, (terminates, truncates)
        self.place = -1

    def reset(self, *, seed=None, options=None):
        self.place += 1
        return self.shown[self.place % len(self.shown)], {"place": self.place}

    def step(self, action):
        self.place += 1
        terminated, truncated = (self.place in ends for ends in self.ends)
        return self.shown[self.place % len(self.shown)], self.place, terminated, truncated, {"place": self.place}


def test_grey_is_the_luminance_of_each_pixel():
    colours = {(255, 0, 0): 76, (0, 255, 0): 150, (0, 0, 255): 29, (255, 255, 255): 255, (10, 20, 30): 18, (0, 0, 0): 0}
    image = np.zeros((8, 9, 3), np.uint8)
    image[0, : len(colours)] = list(colours)  # 0.299 red + 0.587 green + 0.114 blue
    opaque = np.concatenate([image, some(8, 9, 1)], axis=2)
    for shown in (image, opaque, image.transpose(2, 0, 1).copy()):
        env = Prepared(Scripted(images(*shown.shape), [shown]), 0, grey=True, frame_stack=1)
        seen, _ = env.reset()
        assert env.observation_space == images(8, 9, 1) and seen.shape == (8, 9, 1) and seen.dtype == np.uint8
        assert seen[0, : len(colours), 0].tolist() == list(colours.values()) and not seen[1:].any()


@pytest.mark.parametrize("shape", [(8, 9), (8, 9, 1)])
def test_what_is_grey_already_stays_as_it_is(shape):
    image = some(*shape)
    seen, _ = Prepared(Scripted(images(*shape), [image]), 0, grey=True, frame_stack=1).reset()
    assert (seen == image.reshape(8, 9, 1)).all()


def test_an_image_of_two_channels_cannot_be_made_grey():
    with pytest.raises(SpaceError, match=r"grey must be left alone here: .* has 2 channels"):
        Prepared(Scripted(images(8, 9, 2), []), 0, grey=True, frame_stack=1)


@pytest.mark.parametrize("arranged", ["(H, W)", "(H, W, 3)", "(H, W, 4)", "(3, H, W)", "(2, H, W, 3)", "(2, 3, H, W)"])
def test_a_smaller_image_has_the_mean_of_the_pixels_each_stands_for(arranged):
    means = 4 * some(2, 8, 8, 4).astype(np.int64) // 5 + 20  # room for what is added and taken away
    blocks = means.repeat(2, axis=1).repeat(3, axis=2)  # six pixels of each: (2, 16, 24, 4)
    blocks = blocks + np.tile([[9, -3, -6], [0, 15, -15]], (8, 8))[None, :, :, None]
    wide = np.uint8(np.clip(blocks, 0, 255))
    assert (wide == blocks).all()
    frames, channels = (2 if arranged[1] == "2" else 1), {"(H, W)": 1, "(H, W, 4)": 4}.get(arranged, 3)
    shown, wanted = wide[:frames, ..., :channels], means[:frames, ..., :channels]
    if "3, H" in arranged:
        shown = shown.transpose(0, 3, 1, 2)
    shown = shown.reshape([{"H": 16, "W": 24}.get(one) or int(one) for one in arranged.strip("()").split(", ")])
    env = Prepared(Scripted(images(*shown.shape), [shown]), 8, grey=False, frame_stack=1)
    seen, _ = env.reset()
    assert seen.shape == env.observation_space.shape == (2, 8, 8, channels)[frames % 2 :]
    assert (seen.reshape(wanted.shape) == wanted).all()


def test_a_smaller_grey_image_is_the_mean_of_the_luminance():
    image = np.zeros((16, 16, 3), np.uint8)
    image[:2, 0] = [255, 0, 0]  # two of the four pixels of the first: 76, and 0 otherwise
    seen, _ = Prepared(Scripted(images(16, 16, 3), [image]), 8, grey=True, frame_stack=1).reset()
    assert seen.shape == (8, 8, 1) and seen[0, 0] == 38 and not seen.reshape(-1)[1:].any()


def test_stacks_begin_anew_with_every_episode():
    shown = [np.full((8, 8), number, np.uint8) for number in range(10)]
    worlds = make_worlds(lambda: Scripted(images(8, 8), shown, terminates=[4], truncates=[6]), view=View(frame_stack=3))

    def stacks(rows):
        return worlds.observation.layout.frames(rows)[0, :, 0].tolist()

    assert stacks(worlds.reset([0])) == [0, 0, 0]
    ticks = [worlds.step(np.zeros((1, 1), np.float32)) for _ in range(7)]
    led_to, looked_at = (
        [stacks(getattr(tick, name)) for tick in ticks] for name in ("next_observation", "observation")
    )
    assert led_to == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 5, 6], [7, 7, 8], [7, 8, 9]]
    assert looked_at == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [5, 5, 5], [7, 7, 7], [7, 7, 8], [7, 8, 9]]


@pytest.mark.parametrize("view", [View(frame_stack=3), View(resize=8, grey=True, frame_stack=3)])
def test_stacked_frames_are_copies_because_environments_reuse_their_arrays(view):
    class Reusing(Scripted):
        def __init__(self):
            super().__init__(images(8, 8), [np.zeros((8, 8), np.uint8)])

        def step(self, action):
            self.shown[0] += 1
            return super().step(action)

    worlds = make_worlds(Reusing, view=view)
    worlds.reset([0])
    rows = [worlds.step(np.zeros((1, 1), np.float32)).next_observation for _ in range(3)]
    stacks = [worlds.observation.layout.frames(row)[0, :, 0].tolist() for row in rows]
    assert stacks == [[0, 0, 1], [0, 1, 2], [1, 2, 3]]


def test_a_table_of_five_dimensions_beside_a_stacked_image_stays_numbers():
    space = spaces.Dict({"eye": images(8, 8), "table": images(2, 1, 1, 8, 8)})
    worlds = make_worlds(lambda: Spaces(space, Box(-1, 1, (1,))), view=View(frame_stack=3))
    assert worlds.observation.layout == Layout(128, (Picture("observation['eye']", 1, 8, 8),), 3)
    assert worlds.reset([0]).shape == (1, 3 * 64 + 4 * 128)


def test_nested_images_are_each_stacked_by_themselves_and_nothing_else_is_changed():
    space = spaces.Dict(
        {"eyes": spaces.Tuple([images(8, 9, 3), images(16, 16)]), "n": Box(-9, 9, (2,)), "table": images(4, 4)}
    )
    chance = np.random.default_rng(0)
    shown = [
        {
            "eyes": (np.full((8, 9, 3), 10 * number, np.uint8), np.full((16, 16), number, np.uint8)),
            "n": chance.uniform(-9, 9, 2).astype(np.float32),
            "table": some(4, 4, seed=number),
        }
        for number in range(4)
    ]
    env = Prepared(Scripted(space, shown, truncates=[3]), 8, grey=True, frame_stack=2)
    stack = images(2, 8, 8, 1)
    assert env.observation_space == spaces.Dict({**space.spaces, "eyes": spaces.Tuple([stack, stack])})
    answers = [(*env.reset(),), *(env.step(np.zeros(1)) for _ in range(3))]
    for number, (seen, *rest) in enumerate(answers):
        assert env.observation_space.contains(seen)
        before = max(0, number - 1)
        assert [one[:, 0, 0, 0].tolist() for one in seen["eyes"]] == [[10 * before, 10 * number], [before, number]]
        assert seen["n"] is shown[number]["n"] and seen["table"] is shown[number]["table"]
        assert rest[-1] == {"place": number} and (number == 0 or rest[:3] == [number, False, number == 3])


@pytest.mark.parametrize(
    ("view", "names"),
    [
        (View(grey=True), "grey must"),
        (View(frame_stack=2), "frame_stack must"),
        (View(resize=9, grey=True), "resize and grey must"),
    ],
)
def test_looking_at_images_where_there_are_none_is_refused(view, names):
    with pytest.raises(ConfigError, match=rf"^{names} be left alone here: the observation .* has no image") as refusal:
        make_worlds(partial(Dot, "numbers"), view=view)
    assert "\n" not in str(refusal.value)


def test_a_ready_made_vector_environment_is_taken_as_it_is():
    for view, names in ((View(frame_stack=2, action_repeat=2), "frame_stack, action_repeat"), (View(9), "pixels")):
        with pytest.raises(ConfigError, match=f"^{names} must be left alone here: .* makes a vector environment"):
            make_worlds(lambda: SyncVectorEnv([Dot] * 2), view=view)


def test_rewards_of_repeated_actions_add_up_and_nothing_is_done_beyond_the_end():
    shown = [np.full((8, 8), number, np.uint8) for number in range(20)]
    env = Repeated(Scripted(images(8, 8), shown, terminates=[5], truncates=[11]), 3)
    answers = []
    for _ in range(2):
        env.reset()
        ended = False
        while not ended:
            seen, reward, terminated, truncated, info = env.step(np.zeros(1))
            ended = terminated or truncated
            answers.append((int(seen[0, 0]), reward, terminated, truncated, info["place"]))
    assert answers == [
        (3, 1 + 2 + 3, False, False, 3),
        (5, 4 + 5, True, False, 5),
        (9, 7 + 8 + 9, False, False, 9),
        (11, 10 + 11, False, True, 11),
    ]


def test_repeated_actions_reach_the_collector_as_single_steps():
    worlds = make_worlds(partial(Dot, "numbers"), view=View(action_repeat=5))
    playing = Collector(worlds, [3], np.random.default_rng(0), 100, 0.1)
    played = [playing.play(lambda observation: observation) for _ in range(3)]
    assert [one.ended[0][2] for one in played if one.ended] == [3]  # twelve steps: five, five, two
    assert [one.transitions.reward[0] > 400 for one in played] == [True, True, False]
    assert playing.steps == 3


def test_what_is_drawn_is_what_is_seen():
    class Blind(Dot):
        def _seen(self):
            return "nobody looks at this"

    worlds = make_worlds(Blind, 2, view=View(pixels=12))
    rows = worlds.reset([1, 2])
    assert worlds.observation.layout == Layout(0, (Picture("observation", 3, 12, 12),))
    assert worlds.observation.space == images(12, 12, 3)
    for env, row in zip(worlds.envs, rows, strict=True):
        drawn = env.unwrapped.render().reshape(12, 2, 12, 3, 3).mean(axis=(1, 3))  # (24, 36) becomes (12, 12)
        assert row.reshape(3, 12, 12) == pytest.approx(drawn.transpose(2, 0, 1), abs=0.51)
        assert len(np.unique(row)) > 3
    tick = worlds.step(np.ones((2, 1), np.float32))
    assert (tick.next_observation != rows).any(axis=1).all()


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (None, "NoneType"),
        ([[1, 2, 3]], "list"),
        (np.zeros((8, 8, 3), np.float32), r"float32 \(8, 8, 3\)"),
        (np.zeros((8, 8), np.uint8), r"uint8 \(8, 8\)"),
        (np.zeros((8, 8, 4), np.uint8), r"uint8 \(8, 8, 4\)"),
    ],
)
def test_a_drawing_that_is_no_picture_is_one_sentence(frame, what):
    class Odd(Dot):
        def render(self):
            return frame

    worlds = make_worlds(Odd, view=View(pixels=8))
    with pytest.raises(
        EnvironmentFailure, match=rf"render\(\) must return bytes \(height, width, 3\), not {what}"
    ) as told:
        worlds.reset([0])
    assert "\n" not in str(told.value) and str(told.value).startswith("Environment 0 (")


def test_an_environment_that_cannot_be_drawn_is_refused():
    class Plain(gymnasium.Env):
        observation_space, action_space = Dot.spaces["numbers"], Dot.action_space

    for make in (Plain, lambda: Dot("image")):  # the second could, but nobody can ask it to
        with pytest.raises(ConfigError, match=r"cannot be drawn: it takes no render_mode, or draws no arrays\.$"):
            make_worlds(make, view=View(pixels=16))


def test_a_wrapper_that_draws_keeps_the_size_it_was_given():
    env = Rendered(Dot(render_mode="rgb_array"), 10)
    seen, _ = env.reset(seed=1)
    assert env.observation_space == images(10, 10, 3) and seen.shape == (10, 10, 3) and seen.dtype == np.uint8
    assert env.step(np.zeros(1, np.float32))[0].shape == (10, 10, 3)


def test_a_view_survives_the_journey_to_a_worker_to_the_bit():
    view = View(pixels=12, grey=True, frame_stack=3, action_repeat=2)

    def play(workers):
        worlds = make_worlds(Dot, 2, workers, view=view)
        try:
            assert worlds.observation.layout == Layout(0, (Picture("observation", 1, 12, 12),), 3)
            playing = Collector(worlds, [5, 6], np.random.default_rng(0), 1_000, 0.1)
            return [playing.play(lambda observation: observation).transitions for _ in range(20)]
        finally:
            worlds.close()

    for here, there in zip(play(0), play(1), strict=True):
        assert all(mine.dtype == its.dtype and (mine == its).all() for mine, its in zip(here, there, strict=True))


@pytest.fixture
def _mujoco_draws():
    try:
        env = gymnasium.make("InvertedPendulum-v5", render_mode="rgb_array", width=16, height=16)
        env.reset(seed=0), env.render(), env.close()
    except Exception as problem:
        pytest.skip(f"MuJoCo cannot draw here: {problem}")


@pytest.mark.usefixtures("_mujoco_draws")
def test_environments_that_draw_in_one_process_do_not_draw_into_one_another():
    def frames(count):
        return [worlds.step(np.zeros((1, 1), np.float32)).next_observation.copy() for _ in range(count)]

    worlds = make_worlds("InvertedPendulum-v5", view=View(pixels=32))
    worlds.reset([0])
    alone = frames(6)
    worlds.reset([0])
    among = frames(2)
    with contextlib.closing(make_worlds("HalfCheetah-v5", view=View(pixels=64))) as others:  # made, played and gone
        others.reset([0])
        among += frames(1)
        others.step(np.zeros((1, 6), np.float32))
        among += frames(1)
    among += frames(2)
    worlds.close()
    assert all((one == other).all() for one, other in zip(alone, among, strict=True))


@pytest.mark.usefixtures("_mujoco_draws")
def test_a_camera_that_goes_along_is_preferred():
    worlds = make_worlds("HalfCheetah-v5", view=View(pixels=16))
    renderer, model = worlds.envs[0].unwrapped.mujoco_renderer, worlds.envs[0].unwrapped.model
    assert renderer.camera_id == model.camera("track").id
    assert (model.vis.quality.shadowsize, model.vis.quality.offsamples) == (0, 0)
    worlds.close()


@pytest.mark.usefixtures("_mujoco_draws")
def test_mujoco_draws_what_can_be_learned_from():
    worlds = make_worlds("InvertedPendulum-v5", view=View(pixels=16))
    rows = [worlds.reset([0]), *(worlds.step(np.ones((1, 1), np.float32)).next_observation for _ in range(4))]
    worlds.close()
    assert worlds.observation.layout == Layout(0, (Picture("observation", 3, 16, 16),))
    assert all(len(np.unique(row)) > 4 for row in rows)
    assert all((before != after).any() for before, after in itertools.pairwise(rows))


def test_bytes_that_are_no_brightness_stay_numbers():
    marks = Box(0, 1, (16, 16), np.uint8)
    assert ObservationMap(marks).layout == Layout(256)
    assert ObservationMap(space_from_data(space_to_data(marks))).layout == Layout(256)
    with pytest.raises(SpaceError, match="resize must be more than 12, the channels of an image"):
        Prepared(Spaces(images(12, 64, 64), Box(-1, 1, (1,))), 8, False, 1)


def test_a_drawing_library_that_is_missing_is_told_in_one_sentence():
    class Bare(Dot):
        def render(self):
            raise gymnasium.error.DependencyNotInstalled("no brush is installed")

    with pytest.raises(ConfigError, match=r"^The environment cannot be drawn: no brush is installed"):
        make_worlds(partial(Bare, "numbers"), view=View(pixels=8)).reset([0])


# ---- the encoder ----

TWO = Layout(2, (Picture("a", 1, 9, 8), Picture("b", 3, 8, 11)), stack=2)


def learner_of(layout=TWO, action_size=2, **settings):
    known = {"hidden": (7,), "buffer_size": 100, "encoder_channels": (4, 3), "encoder_features": 5}
    return Learner(layout, action_size, Config(env="X-v0", **{**known, **settings}), 0)


def rows_of(layout, count, seed=0):
    chance = np.random.default_rng(seed)
    frames = chance.integers(0, 256, (count, layout.stack, layout.frame), np.uint8)
    return layout.joined(frames, chance.standard_normal((count, layout.numbers), dtype=np.float32))


def batch_of(learner, count=6, dtype=torch.float32):
    chance, layout = np.random.default_rng(1), learner.layout
    a, r = chance.uniform(-1, 1, (count, learner.action_size)), chance.standard_normal(count)
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
    found, start = [], 0
    for picture, eye in zip(layout.pictures, encoder.eyes, strict=True):
        x = torch.from_numpy(pixels[..., start : start + picture.size].copy())
        x = x.reshape(len(rows), layout.stack * picture.channels, picture.height, picture.width)
        start += picture.size
        for layer in eye.convolutions:
            if isinstance(layer, torch.nn.Conv2d):
                x = conv2d(x, layer.weight.double(), layer.bias.double(), stride=2, padding=1).clamp(min=0)
        x = linear(x.flatten(1), eye.joined.weight.double(), eye.joined.bias.double())
        found.append(layer_norm(x, (x.shape[1],), eye.norm.weight.double(), eye.norm.bias.double()).tanh())
    return torch.cat([*found, torch.from_numpy(layout.vectors(rows).astype(np.float64))], dim=1)


def test_features_are_what_a_computation_by_hand_gives_and_numbers_pass_unchanged():
    learner, rows = learner_of(), rows_of(TWO, 4)
    rows[0, : TWO.stack * TWO.frame] = 255
    encoder = learner.critics.encoder
    told = encoder(torch.from_numpy(rows)).detach()
    expected = by_hand(encoder, TWO, rows).detach()
    assert told.shape == (4, 2 * 5 + 2) and encoder.size == 12 and told.dtype == torch.float32
    assert told.numpy() == pytest.approx(expected.numpy(), abs=1e-5)
    assert (told[:, 10:].numpy() == TWO.vectors(rows)).all()
    assert told[:, :10].abs().max() < 1 and told[:, :10].std() > 0.1
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


def test_each_image_has_an_eye_of_its_own():
    layout = Layout(0, (Picture("left", 1, 8, 8), Picture("right", 1, 8, 8)))
    encoder = learner_of(layout).critics.encoder
    left, right = encoder.eyes
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
    # What the actor climbs is the value of what the encoder told at step 10, by the critics of step 12.
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


@pytest.mark.parametrize("layout", [Layout(3), Layout(3, (Picture("a", 1, 8, 8),), 2)], ids=["numbers", "images too"])
@pytest.mark.parametrize("chunk", [1, 7, 100, 300])
def test_mean_and_deviation_are_those_of_everything_added(layout, chunk):
    chance = np.random.default_rng(0)
    seen = (chance.standard_normal((300, 3)) * [1, 50, 1e-3] + [1000, -7, 0]).astype(np.float32)
    frames = chance.integers(0, 256, (300, layout.stack, layout.frame), np.uint8)
    rows = layout.joined(frames, seen) if layout.pictures else seen
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
    if layout.pictures:
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
    list(session.advance(60))
    learner, memory = session.learner, session.learner.memory
    raw = memory.columns["observation" if kind == "numbers" else "numbers"][: memory.written]
    assert raw.min() >= 100 and raw.max() < 109.1  # as Dot shows itself
    drawn = learner.draw(np.random.default_rng(0), np.random.default_rng(1))
    stored, recalled = memory.gather(drawn.places), learner.recall(drawn)
    for mine, its in ((recalled.observation, stored.observation), (recalled.next_observation, stored.next_observation)):
        numbers = learner.layout.vectors(mine.numpy())
        assert (numbers == learner.layout.vectors(learner.normalizer(its.numpy()))).all()
        assert np.abs(numbers).max() < 5 and numbers.std() > 0.3
    assert learner.normalizer.count == 60  # what was looked at, once each
    session.close()


@pytest.mark.parametrize("kind", ["numbers", "both"])
def test_the_statistics_stand_still_while_an_agent_is_judged_and_go_with_it(kind, tmp_path):
    session = session_of(kind, tmp_path / "run", normalize_observations=True, eval_every=20, eval_episodes=2)
    list(session.advance(60))
    learner = session.learner
    assert learner.normalizer.count == 60  # three evaluations of 24 steps each have left no trace
    before = learner.normalizer.tensors()
    session._evaluate()
    assert all(torch.equal(one, before[name]) for name, one in learner.normalizer.tensors().items())
    agent = td3.load(tmp_path / "run", env=partial(Dot, kind))
    seen = [session.worlds.envs[0].reset(seed=seed)[0] for seed in range(3)]
    rows = np.stack([session.worlds.observation.flatten_one(one) for one in seen])
    for one, row in zip(seen, rows, strict=True):
        expected = session.worlds.action.to_env(learner.act(row[None]))[0]
        assert agent.act(one) == pytest.approx(expected, abs=1e-6)
    assert np.abs(learner.act(rows) - session_of(kind).learner.act(rows)).max() > 1e-3  # it does make a difference
    td3.evaluate(agent, 1)
    assert agent.act(seen[0]) == pytest.approx(session.worlds.action.to_env(learner.act(rows[:1]))[0], abs=1e-6)
    session.close()


# ---- images are shifted ----

FLAT = Layout(1, (Picture("a", 1, 3, 4),))


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
    told = shifted(rows, FLAT, np.array(list(moved)))
    for row, expected in zip(FLAT.frames(told), moved.values(), strict=True):
        assert row.reshape(3, 4).tolist() == np.array(expected).tolist()
    assert FLAT.vectors(told)[:, 0].tolist() == list(range(7)) and (rows == before).all()
    assert (shifted(rows[:1], FLAT, np.zeros((1, 2), np.int64)) == rows[:1]).all()


def test_all_images_of_a_row_move_alike_and_each_row_by_itself():
    rows, shifts = rows_of(TWO, 5), np.array([[2, -1], [0, 0], [-2, -2], [1, 2], [0, -2]])
    told, start = TWO.frames(shifted(rows, TWO, shifts)), 0
    for picture in TWO.pictures:
        shape = (5, TWO.stack, picture.channels, picture.height, picture.width)
        before, after = (one[..., start : start + picture.size].reshape(shape) for one in (TWO.frames(rows), told))
        for row, (down, right) in enumerate(shifts):
            y = np.clip(np.arange(picture.height) - down, 0, picture.height - 1)
            x = np.clip(np.arange(picture.width) - right, 0, picture.width - 1)
            assert (after[row] == before[row][:, :, y][:, :, :, x]).all()
        start += picture.size


def test_s_and_its_successor_are_shifted_apart_and_numbers_are_left_alone():
    learner = learner_of(random_shift=2, batch_size=500)
    rows = rows_of(TWO, 2)
    frames = TWO.frames(rows)[:1]
    follows = TWO.joined(np.concatenate([frames[:, 1:], frames[:, :1]], axis=1), TWO.vectors(rows)[1:])
    no = np.zeros(1, np.bool_)
    learner.memory.add(
        Transitions.in_a_row(rows[:1], np.zeros((1, 2), np.float32), np.ones(1, np.float32), follows, no)
    )
    drawn = learner.draw(np.random.default_rng(0), np.random.default_rng(1))
    assert drawn.shifts.shape == (2, 500, 2) and set(drawn.shifts.ravel().tolist()) == {-2, -1, 0, 1, 2}
    assert np.abs(np.corrcoef(drawn.shifts.transpose(0, 2, 1).reshape(4, 500)) - np.eye(4)).max() < 0.2
    told, raw = learner.recall(drawn), learner.memory.gather(drawn.places)
    for mine, its, shifts in zip((told[0], told[3]), (raw[0], raw[3]), drawn.shifts, strict=True):
        assert (mine.numpy() == shifted(its.numpy(), TWO, shifts)).all() and not torch.equal(mine, its)
        assert (TWO.vectors(mine.numpy()) == TWO.vectors(its.numpy())).all()
    assert all(torch.equal(told[one], raw[one]) for one in (1, 2, 4, 5))
    unmoved = ready(raw, TWO, None, np.zeros((2, 500, 2), np.int64))
    assert torch.equal(unmoved.observation, raw.observation)
    assert ready(raw, TWO, None, None) is raw
    still = learner_of()
    still.memory = learner.memory
    assert still.draw(np.random.default_rng(0), np.random.default_rng(1)).shifts is None


# ---- rewards are scaled ----


def test_scaled_rewards_are_what_is_learned_from_and_raw_ones_what_is_told():
    session = session_of("numbers", reward_scale=0.25, eval_every=30, eval_episodes=2)
    events = list(session.advance(60))
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
    list(session.advance(60))
    make = session.config.env
    agent = td3.load(tmp_path / "run", env=make)
    worlds = make_worlds(make, view=View.of(session.config))
    env = worlds.envs[0]
    seen = [env.reset(seed=3)[0], *(env.step(np.ones(1, np.float32))[0] for _ in range(4))]
    rows = np.stack([worlds.observation.flatten_one(one) for one in seen])
    expected = session.worlds.action.to_env(session.learner.act(rows))
    assert agent.observation.layout == session.worlds.observation.layout
    for one, action in zip(seen, expected, strict=True):
        assert agent.act(one).shape == (1,) and agent.act(one) == pytest.approx(action, abs=1e-6)
    batch = {key: np.stack([one[key] for one in seen]) for key in seen[0]} if kind == "both" else np.stack(seen)
    assert agent.act(batch).shape == (5, 1) and agent.act(batch) == pytest.approx(expected, abs=1e-6)
    repeat = session.config.action_repeat
    judged = td3.evaluate(agent, 2)
    assert judged.lengths == (12 // repeat,) * 2 and all(1_200 <= one < 1_310 for one in judged.returns)
    session.close()


def test_the_short_way_learns_predicts_saves_and_loads_images(tmp_path):
    agent = td3.TD3(Dot, **SMALL, frame_stack=2, buffer_size=50).learn(60)
    seen = make_worlds(Dot, view=View(frame_stack=2)).envs[0].reset(seed=1)[0]
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
        ({"random_shift": 2, "env": "Pendulum-v1"}, "random_shift must be 0 here: no image is observed; got 2."),
        ({"engine": "native"}, "engine must be torch or auto here: the native engine reads vectors, not images;"),
        ({"normalize_observations": True}, "normalize_observations must be left alone here"),
        ({"buffer_size": 3}, "buffer_size must be at least 4 here"),
    ],
)  # fmt: skip
def test_check_and_train_refuse_the_same(settings, refusal):
    from td3.views.checking import check_environment

    config = Config(**{"env": Dot, "steps": 20, **SMALL, **settings})
    for attempt in (lambda: check_environment(config), lambda: list(td3.train(config))):
        with pytest.raises(ConfigError) as told:
            attempt()
        assert str(told.value).startswith(refusal)


@pytest.mark.parametrize("name", ["pixels", "resize"])
def test_images_too_small_to_be_any_are_refused(name):
    with pytest.raises(ConfigError, match=f"^{name} must be 0, or at least 8; got 7.$"):
        Config(env="Pendulum-v1", **{name: 7})


def test_the_preset_for_images_draws_only_where_it_is_asked_to():
    assert Config(env="X-v0", preset="pixels").pixels == 0
    assert Config(env="X-v0", pixels=84).preset == "pixels"
    assert (Config(env="X-v0", pixels=84).grey, Config(env="X-v0", pixels=84).frame_stack) == (True, 3)
    assert Config(env="X-v0", pixels=84, preset="author").frame_stack == 1
