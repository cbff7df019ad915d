"""Images from the environment to a row of bytes: drawn, shrunk, grey, stacked, and what is refused."""

import contextlib
import itertools
from functools import partial

import gymnasium
import numpy as np
import pytest
from dots import Box, Dot, images, some
from example_envs import Spaces
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from layouts import image_part, layout_of

from td3.collection import Collector
from td3.config import Config
from td3.environments import ObservationMap, Wrappers, make_envs
from td3.environments.faults import BadValue
from td3.environments.space_data import space_from_data, space_to_data
from td3.environments.wrappers import Prepared, Rendered, Repeated
from td3.errors import ConfigError, EnvironmentFailure, SpaceError
from td3.types import Layout, Part

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
    assert seen.layout == layout_of(0, (image_part("observation", channels, 9, 10),), 1)
    row = seen.flatten_one(image)
    assert row.dtype == seen.layout.dtype == np.uint8 and row.shape == (channels * 90,) == (seen.size,)
    assert planes(seen.layout.frames(row[None])[0, 0], channels, find, image)
    back = ObservationMap(space_from_data(space_to_data(images(*shape))))
    assert back.layout == seen.layout


@pytest.mark.parametrize("shape", list(SHAPES))
def test_stacked_frames_lie_one_after_the_other_the_oldest_first(shape):
    channels, find = SHAPES[shape]
    seen, batch = ObservationMap(images(3, *shape), frame_stack=3), some(2, 3, *shape)
    assert seen.layout == layout_of(0, (image_part("observation", channels, 9, 10),), 3)
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
    assert seen.layout.parts == (
        Part("observation['a']", "vector", (2,)),
        image_part("observation['b'][0]", 1, 8, 9),
        Part("observation['b'][1]", "category", (3,)),
        Part("observation['b'][2]", "vector", (16,)),
        Part("observation['c']['ear']", "vector", (1,)),
        image_part("observation['c']['eye']", 3, 8, 8),
    )
    assert (seen.layout.numbers, seen.layout.frame, seen.layout.stack) == (22, 72 + 192, 1)
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
    envs = make_envs(
        lambda: Scripted(images(8, 8), shown, terminates=[4], truncates=[6]), wrappers=Wrappers(frame_stack=3)
    )

    def stacks(rows):
        return envs.observation.layout.frames(rows)[0, :, 0].tolist()

    assert stacks(envs.reset([0])) == [0, 0, 0]
    results = [envs.step(np.zeros((1, 1), np.float32)) for _ in range(7)]
    led_to, looked_at = (
        [stacks(getattr(result, name)) for result in results] for name in ("next_observation", "observation")
    )
    assert led_to == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 5, 6], [7, 7, 8], [7, 8, 9]]
    assert looked_at == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [5, 5, 5], [7, 7, 7], [7, 7, 8], [7, 8, 9]]


@pytest.mark.parametrize("wrappers", [Wrappers(frame_stack=3), Wrappers(resize=8, grey=True, frame_stack=3)])
def test_stacked_frames_are_copies_because_environments_reuse_their_arrays(wrappers):
    class Reusing(Scripted):
        def __init__(self):
            super().__init__(images(8, 8), [np.zeros((8, 8), np.uint8)])

        def step(self, action):
            self.shown[0] += 1
            return super().step(action)

    envs = make_envs(Reusing, wrappers=wrappers)
    envs.reset([0])
    rows = [envs.step(np.zeros((1, 1), np.float32)).next_observation for _ in range(3)]
    stacks = [envs.observation.layout.frames(row)[0, :, 0].tolist() for row in rows]
    assert stacks == [[0, 0, 1], [0, 1, 2], [1, 2, 3]]


def test_a_table_of_five_dimensions_beside_a_stacked_image_stays_numbers():
    space = spaces.Dict({"eye": images(8, 8), "table": images(2, 1, 1, 8, 8)})
    envs = make_envs(lambda: Spaces(space, Box(-1, 1, (1,))), wrappers=Wrappers(frame_stack=3))
    eye, table = image_part("observation['eye']", 1, 8, 8), Part("observation['table']", "vector", (128,))
    assert envs.observation.layout == Layout([eye, table], 3)
    assert envs.reset([0]).shape == (1, 3 * 64 + 4 * 128)


def test_nested_images_are_each_stacked_by_themselves_and_nothing_else_is_changed():
    space = spaces.Dict(
        {"eyes": spaces.Tuple([images(8, 9, 3), images(16, 16)]), "n": Box(-9, 9, (2,)), "table": images(4, 4)}
    )
    rng = np.random.default_rng(0)
    shown = [
        {
            "eyes": (np.full((8, 9, 3), 10 * number, np.uint8), np.full((16, 16), number, np.uint8)),
            "n": rng.uniform(-9, 9, 2).astype(np.float32),
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
    ("wrappers", "names"),
    [
        (Wrappers(grey=True), "grey must"),
        (Wrappers(frame_stack=2), "frame_stack must"),
        (Wrappers(resize=9, grey=True), "resize and grey must"),
    ],
)
def test_looking_at_images_where_there_are_none_is_refused(wrappers, names):
    sentence = rf"^{names} be left alone here, or pixels say how large .* has no image"
    with pytest.raises(ConfigError, match=sentence) as refusal:
        make_envs(partial(Dot, "numbers"), wrappers=wrappers)
    assert "\n" not in str(refusal.value)


def test_a_ready_made_vector_environment_is_taken_as_it_is():
    for wrappers, names in (
        (Wrappers(frame_stack=2, action_repeat=2), "frame_stack, action_repeat"),
        (Wrappers(9), "pixels"),
    ):
        with pytest.raises(ConfigError, match=f"^{names} must be left alone here: .* makes a vector environment"):
            make_envs(lambda: SyncVectorEnv([Dot] * 2), wrappers=wrappers)


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
    envs = make_envs(partial(Dot, "numbers"), wrappers=Wrappers(action_repeat=5))
    collector = Collector(envs, [3], np.random.default_rng(0), 100, 0.1)
    played = [collector.collect(lambda observation: observation) for _ in range(3)]
    assert [one.episodes[0][2] for one in played if one.episodes] == [3]  # twelve steps: five, five, two
    assert [one.transitions.reward[0] > 400 for one in played] == [True, True, False]
    assert collector.steps == 3


def test_what_is_drawn_is_what_is_seen():
    class Blind(Dot):
        def _seen(self):
            return "nobody looks at this"

    envs = make_envs(Blind, 2, wrappers=Wrappers(pixels=12))
    rows = envs.reset([1, 2])
    assert envs.observation.layout == layout_of(0, (image_part("observation", 3, 12, 12),))
    assert envs.observation.space == images(12, 12, 3)
    for env, row in zip(envs.envs, rows, strict=True):
        drawn = env.unwrapped.render().reshape(12, 2, 12, 3, 3).mean(axis=(1, 3))  # (24, 36) becomes (12, 12)
        assert row.reshape(3, 12, 12) == pytest.approx(drawn.transpose(2, 0, 1), abs=0.51)
        assert len(np.unique(row)) > 3
    result = envs.step(np.ones((2, 1), np.float32))
    assert (result.next_observation != rows).any(axis=1).all()


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

    envs = make_envs(Odd, wrappers=Wrappers(pixels=8))
    with pytest.raises(
        EnvironmentFailure, match=rf"render\(\) must return bytes \(height, width, 3\), not {what}"
    ) as caught:
        envs.reset([0])
    assert "\n" not in str(caught.value) and str(caught.value).startswith("Environment 0 (")


def test_an_environment_that_cannot_be_drawn_is_refused():
    class Plain(gymnasium.Env):
        observation_space, action_space = Dot.spaces["numbers"], Dot.action_space

    for make in (Plain, lambda: Dot("image")):  # the second could, but nobody can ask it to
        with pytest.raises(ConfigError, match=r"cannot be drawn: it takes no render_mode, or draws no arrays\.$"):
            make_envs(make, wrappers=Wrappers(pixels=16))


def test_a_wrapper_that_draws_keeps_the_size_it_was_given():
    env = Rendered(Dot(render_mode="rgb_array"), 10)
    seen, _ = env.reset(seed=1)
    assert env.observation_space == images(10, 10, 3) and seen.shape == (10, 10, 3) and seen.dtype == np.uint8
    assert env.step(np.zeros(1, np.float32))[0].shape == (10, 10, 3)


def test_a_view_survives_the_journey_to_a_worker_to_the_bit():
    wrappers = Wrappers(pixels=12, grey=True, frame_stack=3, action_repeat=2)

    def play(workers):
        envs = make_envs(Dot, 2, workers, wrappers=wrappers)
        try:
            assert envs.observation.layout == layout_of(0, (image_part("observation", 1, 12, 12),), 3)
            collector = Collector(envs, [5, 6], np.random.default_rng(0), 1_000, 0.1)
            return [collector.collect(lambda observation: observation).transitions for _ in range(20)]
        finally:
            envs.close()

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
        return [envs.step(np.zeros((1, 1), np.float32)).next_observation.copy() for _ in range(count)]

    envs = make_envs("InvertedPendulum-v5", wrappers=Wrappers(pixels=32))
    envs.reset([0])
    alone = frames(6)
    envs.reset([0])
    among = frames(2)
    with contextlib.closing(
        make_envs("HalfCheetah-v5", wrappers=Wrappers(pixels=64))
    ) as others:  # made, played and gone
        others.reset([0])
        among += frames(1)
        others.step(np.zeros((1, 6), np.float32))
        among += frames(1)
    among += frames(2)
    envs.close()
    assert all((one == other).all() for one, other in zip(alone, among, strict=True))


@pytest.mark.usefixtures("_mujoco_draws")
def test_a_camera_that_goes_along_is_preferred():
    envs = make_envs("HalfCheetah-v5", wrappers=Wrappers(pixels=16))
    renderer, model = envs.envs[0].unwrapped.mujoco_renderer, envs.envs[0].unwrapped.model
    assert renderer.camera_id == model.camera("track").id
    assert (model.vis.quality.shadowsize, model.vis.quality.offsamples) == (0, 0)
    envs.close()


@pytest.mark.usefixtures("_mujoco_draws")
def test_mujoco_draws_what_can_be_learned_from():
    envs = make_envs("InvertedPendulum-v5", wrappers=Wrappers(pixels=16))
    rows = [envs.reset([0]), *(envs.step(np.ones((1, 1), np.float32)).next_observation for _ in range(4))]
    envs.close()
    assert envs.observation.layout == layout_of(0, (image_part("observation", 3, 16, 16),))
    assert all(len(np.unique(row)) > 4 for row in rows)
    assert all((before != after).any() for before, after in itertools.pairwise(rows))


def test_bytes_that_are_no_brightness_stay_numbers():
    marks = Box(0, 1, (16, 16), np.uint8)
    assert ObservationMap(marks).layout == Layout(256)
    assert ObservationMap(space_from_data(space_to_data(marks))).layout == Layout(256)
    with pytest.raises(SpaceError, match="resize must be more than 12, the channels of an image"):
        Prepared(Spaces(images(12, 64, 64), Box(-1, 1, (1,))), 8, False, 1)


def test_an_environment_that_lacks_a_library_is_not_asked_whether_it_meant_itself(monkeypatch):
    def lacking():
        raise gymnasium.error.DependencyNotInstalled("no engine is installed")

    monkeypatch.setitem(gymnasium.registry, "Car-v0", gymnasium.envs.registration.EnvSpec("Car-v0", lacking))
    with pytest.raises(ConfigError) as caught:
        make_envs("Car-v0")
    assert str(caught.value) == "env 'Car-v0' cannot be made: no engine is installed."


def test_a_drawing_library_that_is_missing_is_told_in_one_sentence():
    class Bare(Dot):
        def render(self):
            raise gymnasium.error.DependencyNotInstalled("no brush is installed")

    with pytest.raises(ConfigError, match=r"^The environment cannot be drawn: no brush is installed"):
        make_envs(partial(Bare, "numbers"), wrappers=Wrappers(pixels=8)).reset([0])


@pytest.mark.parametrize("name", ["pixels", "resize"])
def test_images_too_small_to_be_any_are_refused(name):
    with pytest.raises(ConfigError, match=f"^{name} must be 0, or at least 8; got 7.$"):
        Config(env="Pendulum-v1", **{name: 7})


def test_the_preset_for_images_draws_only_where_it_is_asked_to():
    assert Config(env="X-v0", preset="pixels").pixels == 0
    assert Config(env="X-v0", pixels=84).preset == "pixels"
    assert (Config(env="X-v0", pixels=84).grey, Config(env="X-v0", pixels=84).frame_stack) == (True, 3)
    assert Config(env="X-v0", pixels=84, preset="author").frame_stack == 1
