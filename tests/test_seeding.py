"""Random streams: where they stand is plain data, and forged data is refused."""

import numpy as np
import pytest

from td3 import seeding

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
    with pytest.raises(ValueError, match="the state of a random stream cannot be used: "):
        seeding.put_state(rng, {**good, **forged})


@pytest.mark.parametrize("forged", [None, [], "x", 5, {}])
def test_what_is_no_state_at_all_is_a_value_error(forged):
    with pytest.raises(ValueError, match="the state of a random stream cannot be used: "):
        seeding.put_state(np.random.default_rng(0), forged)


def test_a_stream_goes_on_where_it_stood():
    rng, again = np.random.default_rng(0), np.random.default_rng(1)
    rng.random(7, dtype=np.float32)
    seeding.put_state(again, seeding.state_of(rng))
    assert (again.random(9, dtype=np.float32) == rng.random(9, dtype=np.float32)).all()
