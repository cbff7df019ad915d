"""Some of `python -m bench.surroundings`: commands in odd surroundings end as documented, and runs go on exactly."""

import pytest

from bench import surroundings


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def expected(place):
    return surroundings.prepared(place)


@pytest.mark.parametrize(
    "case",
    [
        "closed <&- >&- 2>&-: train",
        "full log: resume",
        "full stdout: help",
        "a working directory that is gone: verify",
    ],
)
def test_a_command_in_odd_surroundings_ends_as_documented(case, place, expected):
    found = dict(surroundings.in_surroundings(place, case, expected))
    assert found and not any(found.values()), found


def test_a_closed_terminal_under_the_live_view_saves_a_run_that_goes_on_exactly(place):
    name = "a closed terminal under the live view"
    assert surroundings.stopped(place, name, surroundings.references(place)) == []
