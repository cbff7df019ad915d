"""The tests of TD7 in C++ are tested: each mistake, put into a copy of its source, gives a wrong number where it is.

A mutant is the library with one line changed and the portable kernels alone. `native_td7_check.py` compares it with the
page; the first wrong quantity, in the order of the steps, must be the one that the changed line computes.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from engines import needs_native
from native_build import ABSENT, COMPILER, LIBRARY, flags_of_setup, needs_compiler, run

pytestmark = [needs_compiler, needs_native, pytest.mark.timeout(600)]
CHECK = Path(__file__).parent / "native_td7_check.py"

EMBEDDING, CRITIC, ACTOR, ENGINE, TASKS, NETWORKS, NORM, VECTORS, PRODUCT = (
    f"{name}.inl"
    for name in (
        "embedding_pass", "td7_critic_pass", "td7_actor_pass", "td7_engine", "td7_tasks", "td7_networks", "norm",
        "vectors", "product",
    )
)  # fmt: skip

# name, the first quantity that is wrong, file, right, wrong
ALWAYS = [
    ("no gradient through the norm", "embedding's gradient", NORM, "(gradient - part) * factor", "gradient * factor"),
    ("f_t before f_{t−1}", "target embedding", TASKS, "p.tensor.target + first, p.tensor.value + first", "p.tensor.target + first, (task.leader ? task.leader->tensor.value : p.tensor.value) + first"),
    ("the embedding that learns feeds the critics", "q", EMBEDDING, "through(networks_.fixed_f, weights,", "through(weights == Weights::online ? networks_.f : networks_.fixed_f, weights,"),
]  # fmt: skip

CAMPAIGN = [
    ("a target that learns too", "embedding loss", EMBEDDING, "rows, work_.next_input, work_.f_hidden, work_.raw", "rows, work_.input, work_.f_hidden, work_.raw"),
    ("a prediction without the action", "embedding loss", EMBEDDING, "work_.pair.at(i) + z, work_.input.at(i) + networks_.observations, sizeof(float) * actions", "work_.pair.at(i) + z, work_.input.at(i) + networks_.observations, 0"),
    ("no norm", "embedding loss", NORM, "mean < SMALLEST ? SMALLEST : mean", "1.0f"),
    ("a sum for the mean of the norm", "embedding loss", NORM, "sizes[0] + sizes[1]) / static_cast<float>(columns)", "sizes[0] + sizes[1])"),
    ("signs in the norm", "embedding loss", NORM, "numbers < Vector{} ? -numbers : numbers", "numbers"),
    ("a sum for the mean over the embedding", "embedding's gradient", EMBEDDING, "2.0f / (static_cast<float>(batch_) * static_cast<float>(z))", "2.0f / static_cast<float>(batch_)"),
    ("the embedding's rate is the critics'", "embedding", ENGINE, "settings.embedding_lr", "settings.critic_lr"),
    ("no slope of the ELU", "embedding's gradient", VECTORS, "y < Vector{} ? y + broadcast(1.0f) : broadcast(1.0f)", "y - y + broadcast(1.0f)"),
    ("a ReLU for the ELU", "embedding loss", VECTORS, "return x < zero ? low : x;", "return x < zero ? zero : x;"),
    ("the actor's f for a'", "next_action", CRITIC, "embed(Weights::target, rows, work_.next_input)", "embed(Weights::online, rows, work_.next_input)"),
    ("noise that is not clipped", "next_action", CRITIC, "within(noise[j] * scale, clip)", "noise[j] * scale"),
    ("g_t for the targets", "next_q", CRITIC, "embed_pair(Weights::target", "embed_pair(Weights::online"),
    ("no clipping", "clipped next_q", CRITIC, "settings_.clip_targets && next_q == next_q", "false"),
    ("clipping from below alone", "clipped next_q", CRITIC, "!(next_q <= high) ? high : next_q", "next_q"),
    ("the larger value", "clipped next_q", CRITIC, "q2 < q1 || q2 != q2 ? q2 : q1", "q2 > q1 ? q2 : q1"),
    ("a squared loss with prioritised sampling", "critics' gradient", CRITIC, "within(error, floor) * (1.0f / batch_)", "error * (2.0f / batch_)"),
    ("the linear layer gets no gradient", "critics' gradient", CRITIC, "inputs,\n                       work_.critic_linear_deltas[which]);", "inputs,\n                       inputs);"),
    ("the smallest target for the largest", "target", ENGINE, "largest = y > largest", "largest = y < largest"),
    ("the first critic alone", "actor loss", ACTOR, "settings_.both_critics ? 2 : 1", "1"),
    ("a sum for the mean of both", "actor's gradient", ACTOR, "static_cast<float>(critics * batch_)", "static_cast<float>(batch_)"),
    ("no way through z^sa", "actor's gradient", ACTOR, "(deltas.at(i)[j] + more.at(i)[j]) *", "deltas.at(i)[j] *"),
    ("no way through (s, a)", "actor's gradient", ACTOR, "(deltas.at(i)[j] + more.at(i)[j]) *", "more.at(i)[j] *"),
    ("the state's columns of g for the action's", "actor's gradient", NETWORKS, "weight.columns + embedding + column", "weight.columns + column"),
    ("z^sa of the stored action", "actor loss", ACTOR, "embed_pair(Weights::online, rows, work_.input);", ""),
    ("targets that are never copied", "actor target", ENGINE, "phase_ends_ = &tasks_.phases[delayed][copied]", "phase_ends_ = &tasks_.phases[delayed][false]"),
    ("copies at a rate", "actor target", ENGINE, "static_cast<float>(settings_.rate)", "0.5f"),
    ("f_t stays", "fixed embedding", TASKS, "follow(p.tensor.value + first, task.leader->tensor.value + first, count, rate);", ""),
    ("copies that are not packed", "next_action", TASKS, "pack_target(p, task.from, task.to);", ""),
    ("columns that are not packed again", "actor's gradient", ENGINE, "if (copied) networks_.pack_action_columns();", ""),
]  # fmt: skip

MUTANTS = [pytest.param(*one, id=one[0]) for one in ALWAYS] + [
    pytest.param(*one, id=one[0], marks=pytest.mark.campaign) for one in CAMPAIGN
]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Compiles what no mutant changes, once."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "absent.cpp").write_text(ABSENT)
    return [
        compiled(source, folder)
        for source in (LIBRARY / "interface.cpp", LIBRARY / "thread_pool.cpp", folder / "absent.cpp")
    ]


def compiled(source, folder):
    made = folder / f"{source.stem}.o"
    run([COMPILER, *flags_of_setup(), "-O1", "-fPIC", "-I", LIBRARY, "-c", source, "-o", made])
    return made


def wrong_in(folder, objects, file="", right="", wrong=""):
    """Builds the library in this folder, with one line changed; returns the wrong quantities."""
    source = folder / "source"
    shutil.copytree(LIBRARY, source)
    if file:
        text = (source / file).read_text()
        assert text.count(right) == 1, f"{right!r} is {text.count(right)} times in {file}: renew this mutant"
        (source / file).write_text(text.replace(right, wrong))
    made = folder / f"_engine{sysconfig.get_config_var('EXT_SUFFIX')}"
    portable = compiled(source / "portable.cpp", folder)
    run([COMPILER, *flags_of_setup(), "-shared", *objects, portable, "-o", made])
    out, _ = run([sys.executable, CHECK, folder], timeout=300)
    return out.splitlines()


def test_without_a_mutant_nothing_is_wrong(tmp_path, objects):
    assert wrong_in(tmp_path, objects) == []


@pytest.mark.parametrize(("name", "quantity", "file", "right", "wrong"), MUTANTS)
def test_a_mutant_gives_a_wrong_number(name, quantity, file, right, wrong, tmp_path, objects):
    found = wrong_in(tmp_path, objects, file, right, wrong)
    assert [*found, None][0] == quantity, f"{name}: {found}"
