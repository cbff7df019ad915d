"""Odd spaces: each is either played, rightly, or refused in one clear sentence."""

import gymnasium
import numpy as np
import pytest
from example_envs import Spaces, with_actions
from gymnasium import spaces

from td3.collection import Collector
from td3.environments import ActionMap, ObservationMap
from td3.environments.descriptions import oddities
from td3.environments.faults import BadValue
from td3.environments.serial import SerialEnvs
from td3.environments.space_data import space_from_data, space_to_data
from td3.errors import SpaceError

Box = spaces.Box

OBSERVATIONS = {
    "plain": (Box(-1, 1, (3,), np.float32), 3),
    "float64": (Box(-np.inf, np.inf, (3,), np.float64), 3),
    "float16": (Box(-1, 1, (3,), np.float16), 3),
    "scalar": (Box(-1, 1, (), np.float32), 1),
    "matrix": (Box(-1, 1, (2, 3), np.float32), 6),
    "four dimensions": (Box(-1, 1, (2, 1, 3, 2), np.float32), 12),
    "bytes": (Box(0, 255, (4, 4), np.uint8), 16),
    "integers": (Box(-5, 5, (2,), np.int64), 2),
    "booleans": (Box(0, 1, (2,), np.bool_), 2),
    "discrete": (spaces.Discrete(4), 4),
    "discrete from −2": (spaces.Discrete(4, start=-2), 4),
    "many discretes": (spaces.MultiDiscrete([2, 3]), 5),
    "binary": (spaces.MultiBinary(3), 3),
    "dict": (spaces.Dict({"a": Box(-1, 1, (2,)), "b": spaces.Discrete(3)}), 5),
    "tuple": (spaces.Tuple([Box(-1, 1, (2,)), Box(0, 9, (1,), np.int32)]), 3),
    "dict out of order": (spaces.Dict([("z", Box(-1, 1, (2,))), ("a", Box(5, 6, (1,))), (0, spaces.Discrete(2))]), 5),
    "bytes as categories": (spaces.Discrete(200, start=-2), 200),
    "nested": (spaces.Dict({"a": spaces.Tuple([Box(-1, 1, ()), spaces.Dict({"z": spaces.Discrete(2)})])}), 3),
}


@pytest.mark.parametrize("name", list(OBSERVATIONS))
def test_an_observation_becomes_one_vector_of_finite_float32(name):
    space, size = OBSERVATIONS[name]
    envs = SerialEnvs(name, [Spaces(space, Box(-1, 1, (1,)))])
    collector = Collector(envs, [7], np.random.default_rng(0), 100, 0.1)
    rows = [collector.collect(lambda o: o).transitions for _ in range(25)]
    for row in rows:
        assert row.observation.shape == (1, size) and row.observation.dtype == np.float32
        assert np.isfinite(row.next_observation).all()
    sample = space.sample()
    flat = ObservationMap(space).flatten_one(sample)
    assert flat == pytest.approx(gymnasium.spaces.flatten(space, sample).astype(np.float32))
    batch = gymnasium.vector.utils.batch_space(space, 3).sample()
    many, was_batch = ObservationMap(space).rows(batch)
    assert was_batch and many.shape == (3, size)
    rows_of_batch = list(gymnasium.vector.utils.iterate(gymnasium.vector.utils.batch_space(space, 3), batch))
    assert many[2] == pytest.approx(ObservationMap(space).flatten_one(rows_of_batch[2]))


@pytest.mark.parametrize("name", list(OBSERVATIONS))
def test_a_space_survives_the_journey_through_plain_data(name):
    space, size = OBSERVATIONS[name]
    back = space_from_data(space_to_data(space))
    sample = space.sample()
    assert ObservationMap(back).size == size
    assert (ObservationMap(back).flatten_one(sample) == ObservationMap(space).flatten_one(sample)).all()


BOX = {"type": "Box", "shape": [3], "dtype": "float32"}
NO_SPACES = {
    "nothing": None,
    "a list": [],
    "another kind": {"type": "Text", "shape": [3]},
    "no shape": {"type": "Box", "dtype": "float32"},
    "a shape below zero": {**BOX, "shape": [-1]},
    "half a shape": {**BOX, "shape": [0.5]},
    "too many dimensions": {**BOX, "shape": 100 * [1]},
    "objects": {**BOX, "dtype": "O"},
    "a dtype that is a shape": {**BOX, "dtype": "(100000000,)f4"},
    "text for bounds": {**BOX, "low": "nan", "high": "inf"},
    "one bound": {**BOX, "low": 0.0},
    "bounds of another shape": {**BOX, "low": [0.0, 0.0], "high": [1.0, 1.0]},
    "bounds the wrong way round": {**BOX, "low": 1.0, "high": 0.0},
    "a byte below zero": {**BOX, "dtype": "uint8", "low": -1, "high": 255},
    "no category": {"type": "Discrete", "n": 0, "start": 0},
    "a start beyond 64 bits": {"type": "Discrete", "n": 2, "start": 2**70},
    "categories of text": {"type": "MultiDiscrete", "nvec": ["2"], "start": [0]},
    "a key that is none": {"type": "Dict", "spaces": [[None, BOX]]},
    "100 million numbers": {**BOX, "shape": [10**8]},
    "more numbers than 64 bits count": {**BOX, "shape": 3 * [2**40]},
    "100 million categories": {"type": "Discrete", "n": 10**8, "start": 0},
    "1,000 parts of 100,000": {"type": "Tuple", "spaces": 1_000 * [{**BOX, "shape": [100_000]}]},
    "300,000 parts": {"type": "MultiDiscrete", "nvec": 300_000 * [2], "start": 300_000 * [0]},
}


@pytest.mark.parametrize("name", list(NO_SPACES))
def test_data_that_describes_no_space_or_one_too_large_is_refused(name):
    with pytest.raises(SpaceError, match="No space is described"):
        space_from_data(NO_SPACES[name])


def test_an_observation_too_large_to_be_read_back_is_refused_before_training():
    large = Box(0, 255, (2**12, 2**12 + 1), np.uint8)
    with pytest.raises(SpaceError, match=r"16,781,312 numbers in 1 parts"):
        ObservationMap(large)
    assert ObservationMap(Box(0, 255, (2**12, 2**12), np.uint8)).size == 2**24


def test_an_action_space_survives_the_journey_through_plain_data():
    space = Box(np.array([-3, 0, 5], np.float32), np.array([7, 0.1, 5], np.float32))
    back = space_from_data(space_to_data(space))
    assert back == space
    tried = np.array([[-1, 1], [0.3, 0.2]], np.float32)
    assert (ActionMap(back).to_env(tried) == ActionMap(space).to_env(tried)).all()


ACTIONS = {
    "one": ([-2], [2], [[-2], [2]]),
    "asymmetric": ([-1, 0], [3, 10], [[-1, 0], [3, 10]]),
    "shape ()": (-2, 5, [-2, 5]),
    "shape (2, 3)": (
        [[0, 1, 2], [3, 4, 5]],
        [[1, 3, 5], [7, 9, 11]],
        [[[0, 1, 2], [3, 4, 5]], [[1, 3, 5], [7, 9, 11]]],
    ),
    "a constant among them": ([-1, 4], [1, 4], [[-1, 4], [1, 4]]),
    "narrow, far from nought": ([1000.0], [1000.5], [[1000.0], [1000.5]]),
}


@pytest.mark.parametrize("name", list(ACTIONS))
def test_minus_one_and_one_are_the_environments_bounds(name):
    low, high, ends = ACTIONS[name]
    env = with_actions(low, high)
    actions = ActionMap(env.action_space)
    extreme = np.array([[-1] * actions.size, [1] * actions.size], np.float32)
    executed = actions.to_env(extreme)
    assert executed.dtype == np.float32 and executed.tolist() == ends
    middle = actions.to_env(0 * extreme)[0]
    assert middle == pytest.approx((np.array(ends[0]) + np.array(ends[1])) / 2)
    collector = Collector(SerialEnvs(name, [env]), [1], np.random.default_rng(0), 50, 0.1)
    for _ in range(60):  # the environment itself asserts that every action is inside its space
        collector.collect(lambda o, size=actions.size: np.ones((1, size), np.float32))
    assert len(env.actions) == 60


REFUSED = {
    "no bounds": (Box(-np.inf, np.inf, (2,)), r"dimension \[0\] has no finite bounds: \[-inf, inf\]"),
    "half bounds": (Box(np.float32([0, 0]), np.float32([1, np.inf])), r"dimension \[1\] has no finite bounds"),
    "absurd bounds": (Box(-3e38, 3e38, (1,)), r"dimension \[0\] is wider than 2,000,000: \[-3e\+38, 3e\+38\]"),
    "integers": (Box(-1, 1, (2,), np.int64), r"real-valued actions; .* holds int64"),
    "empty": (Box(-1, 1, (0,)), r"is empty"),
    "all constant": (Box(np.float32([1]), np.float32([1])), r"low == high everywhere"),
    "discrete": (spaces.Discrete(3), r"Box of real numbers; this environment has Discrete\(3\)"),
    "dict": (spaces.Dict({"a": Box(-1, 1, (1,))}), r"Box of real numbers; this environment has Dict"),
    "many discretes": (spaces.MultiDiscrete([2, 2]), r"Box of real numbers"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_an_action_space_that_cannot_work_is_one_clear_sentence(name):
    space, sentence = REFUSED[name]
    with pytest.raises(SpaceError, match=sentence) as refusal:
        SerialEnvs(name, [Spaces(Box(-1, 1, (1,)), space)])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (spaces.Text(5), "observation is a Text, which TD3 cannot read"),
        (spaces.Dict({"a": spaces.Sequence(spaces.Discrete(2))}), r"observation\['a'\] is a Sequence"),
        (Box(-1, 1, (0,)), "is empty"),
    ],
)
def test_an_observation_space_that_cannot_work_is_one_clear_sentence(space, sentence):
    with pytest.raises(SpaceError, match=sentence):
        ObservationMap(space)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.array([0.0, np.inf], np.float32), "observation holds inf at index 1"),
        (np.array([1e300, 0.0]), "observation holds inf at index 0"),
        (np.zeros(3, np.float32), r"observation has shape \(3,\), not \(2,\)"),
        (np.array(["a", "b"]), "observation has dtype <U1, not float32"),
        (np.array([1j, 0]), "observation has dtype complex128, not float32"),
        (None, "observation is no array of numbers"),
        ([[1.0], [2.0, 3.0]], "observation is missing or malformed"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_field_and_reason(value, sentence):
    with pytest.raises(BadValue, match=sentence):
        ObservationMap(Box(-1, 1, (2,), np.float32)).flatten_one(value)


def test_lists_python_numbers_and_double_precision_are_accepted_as_they_are_common():
    seen = ObservationMap(Box(-1, 1, (2,), np.float32))
    assert seen.flatten_one([0.5, 1]).tolist() == [0.5, 1.0]
    assert seen.flatten_one(np.array([0.25, 2.0])).tolist() == [0.25, 2.0]


def test_an_observation_is_copied_because_environments_reuse_their_arrays():
    seen, array = ObservationMap(Box(-1, 1, (2,), np.float32)), np.zeros(2, np.float32)
    kept = seen.flatten_one(array)
    array[:] = 9
    assert kept.tolist() == [0, 0]


def test_images_constants_and_tiny_ranges_are_noted():
    image = ObservationMap(Box(0, 1, (64, 64, 3), np.float32))
    notes = oddities(image, ActionMap(Box(np.float32([-1, 2]), np.float32([1, 2]))))
    assert [note.split(":")[0] for note in notes] == [
        "observation (64, 64, 3) float32 is read as 12288 numbers in a row",
        "The observation is 12,288 numbers long",
        "1 action dimensions have low == high",
    ]
    stacked = ObservationMap(Box(0, 255, (4, 64, 64, 1), np.uint8))
    (note,) = oddities(stacked, ActionMap(Box(-1, 1, (1,))))
    assert "4 frames that the environment stacks itself" in note and "frame_stack 4" in note
    assert "narrower than 0.001" in oddities(ObservationMap(spaces.Discrete(2)), ActionMap(Box(0, 1e-4, (1,))))[0]
