"""Words that messages are made of."""

import pytest

from td3.environments.descriptions import describe_layout
from td3.types import Layout
from td3.wording import brief, counted, did_you_mean


def test_a_count_of_one_has_a_noun_of_one():
    assert [counted(number, "action") for number in (0, 1, 2, 1_000)] == [
        "0 actions",
        "1 action",
        "2 actions",
        "1,000 actions",
    ]
    assert (counted(1, "process"), counted(2, "process")) == ("1 process", "2 processes")
    assert (describe_layout(Layout(1)), describe_layout(Layout(3))) == ("1 observation", "3 observations")


class Broken:
    def __repr__(self):
        raise RuntimeError("no name")


def test_a_value_is_quoted_on_one_line_and_cut_where_it_is_long():
    assert (brief("a\nb"), brief(5), brief(5, str)) == ("'a\\nb'", "5", "5")
    assert brief([[1, 2], "x"]) == "[[1, 2], 'x']"
    assert len(brief("9" * 5_000)) < 120 and brief("9" * 5_000).startswith("'999")
    for value, kind in ((10**5_000, "int"), (Broken(), "Broken"), ((10**5_000,), "tuple")):
        assert kind in brief(value) and len(brief(value)) < 120


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("--setps", ["--steps", "--seed"], "--steps"),
        ("--batch_size", ["--batch-size", "--buffer-size"], "--batch-size"),
        ("-steps", ["--steps", "--seed"], "--steps"),
        ("batchSize", ["batch_size", "buffer_size"], "batch_size"),
        ("trian", ["train", "explain"], "train"),
        ("--lr", ["--run", "--help"], None),
        ("--learning-rate", ["--action-repeat", "--eval-every"], None),
        ("--discount", ["--json", "--num-envs"], None),
        ("Pong-v5", ["Ant-v5", "Hopper-v5"], None),
    ],
)
def test_only_a_slip_of_the_finger_gets_a_suggestion(word, known, meant):
    assert did_you_mean(word, known) == (f" Did you mean {meant}?" if meant else "")
