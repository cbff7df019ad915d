"""Random streams: where they stand is plain data, and forged data is refused."""

import json
import shutil
from itertools import islice

import numpy as np
import pytest
from refusals import UNSAID, check_names, refusal

from bench.forging import forge, newest
from td3 import TD3, load, seeding
from td3.views import cli

FORGED = [
    {"state": hex(2**128)},
    {"state": "-0x5"},
    {"state": "zz"},
    {"state": 5},
    {"inc": hex(2**200)},
    {"inc": None},
    {"has_uint32": 2**40},
    {"uinteger": 2**32},
    {"uinteger": 2**70},
    {"uinteger": -1},
    {"uinteger": float("inf")},
    {"uinteger": float("nan")},
    {"uinteger": "9" * 5_000},
    {"uinteger": []},
]


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_a_forged_state_is_a_value_error(forged):
    rng = np.random.default_rng(0)
    good = seeding.state_of(rng)
    with refusal(ValueError, "random stream"):
        seeding.load_state(rng, {**good, **forged})


@pytest.mark.parametrize("forged", [None, [], "x", 5, {}])
def test_what_is_no_state_at_all_is_a_value_error(forged):
    with refusal(ValueError, "random stream"):
        seeding.load_state(np.random.default_rng(0), forged)


def test_a_stream_goes_on_where_it_stood():
    rng, again = np.random.default_rng(0), np.random.default_rng(1)
    rng.random(7, dtype=np.float32)
    seeding.load_state(again, seeding.state_of(rng))
    assert (again.random(9, dtype=np.float32) == rng.random(9, dtype=np.float32)).all()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "kept"
    TD3("Pendulum-v1", warmup_steps=10, hidden=(4,), batch_size=4, eval_every=20, eval_episodes=1).learn(20).save(
        folder
    )
    return folder


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replay.uinteger", 2**70),
        ("smoothing.has_uint32", 10**400),
        ("playing.chance.state", hex(2**128)),
        ("playing.chance.inc", None),
        ("due", 10**400),
        ("best", 10**400),
        ("best", "high"),
        ("seconds", 10**400),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_a_forged_checkpoint_is_refused_in_one_line(path, value, kept, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(kept, run)

    def change(state):
        *parents, last = path.split(".")
        for parent in parents:
            state = state[parent]
        assert last in state
        state[last] = value

    forge(run, change)
    assert cli.main(["resume", str(run), "--steps", "30", "--quiet"]) == 1
    err = capsys.readouterr().err
    check_names(err, newest(run).name)


def test_a_checkpoint_of_5000_digits_is_one_that_there_is_not(kept, capsys):
    assert cli.main(["evaluate", str(kept), "--checkpoint", "9" * 5_000]) == 2
    err = capsys.readouterr().err
    check_names(err, "checkpoint", UNSAID, "last", "best", 20)
    assert "got '999" in err and len(err) < 300
    with refusal(ValueError, "checkpoint", UNSAID, "last", "best", 20):
        load(kept, checkpoint=10**5_000)
    assert load(kept, checkpoint=np.int64(20)).step == load(kept, checkpoint="20").step == 20


def test_numpys_older_generator_is_put_back_where_it_was_and_nowhere_else():
    rng = np.random.RandomState(3)
    rng.normal()  # of two that it draws at once, it keeps the second
    state, expected = seeding.state_of(rng), [rng.normal(), rng.normal(), rng.randint(2**31)]
    again = np.random.RandomState(0)
    seeding.load_state(again, json.loads(json.dumps(state)))
    assert [again.normal(), again.normal(), again.randint(2**31)] == expected
    for forged in ({"key": "00"}, {"key": 5}, {"place": 625}, {"place": -1}, {"gauss": "x"}):
        with pytest.raises(ValueError, match="random stream"):
            seeding.load_state(again, {**state, **forged})


def test_seeds_that_follow_are_those_that_a_larger_count_has():
    first = seeding.environment_seeds(1, "restarts", 3, 7)
    further = islice(seeding.further_seeds(1, "restarts", 3, 7), 2)
    assert seeding.environment_seeds(1, "restarts", 5, 7) == [*first, *further]
