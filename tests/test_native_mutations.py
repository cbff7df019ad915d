"""The checks of the C++ are checked: each mistake, put into a copy of its source, must give a wrong number.

A mutant is the source with one line changed, compiled with the portable kernels only and run under the check program
of `tests/native`. It is caught if the program runs to its end and the first wrong number, in the order of the steps, is
the one that the changed line computes. A mutant that does not compile, crashes, hangs or only makes NaNs is not caught.
"""

import math
import re
import shutil

import pytest
from native_build import ABSENT, CHECKS, COMPILER, LIBRARY, flags_of_setup, needs_compiler, run

pytestmark = [needs_compiler, pytest.mark.timeout(600)]

ENGINE, CRITIC, ACTOR, ADAM, LAYERS, NETWORKS = (
    f"{name}.inl" for name in ("engine", "critic_pass", "actor_pass", "adam", "layers", "networks")
)

QUANTITIES = (  # in the order of the steps
    "next_action", "next_q", "target", "q", "critic loss", "critics' gradient", "critics",
    "actor loss", "actor's gradient", "actor", "actor target", "critic targets",
)  # fmt: skip

# name, the first quantity that is wrong, file, right, wrong
ALWAYS = [
    ("the larger of both targets", "target", CRITIC, "q2 < q1 || q2 != q2 ? q2 : q1", "q2 > q1 ? q2 : q1"),
    ("no correction of Adam's mean", "critics", ADAM, "lr / (1 - std::pow(BETA1, step))", "lr"),
    ("back through the second critic", "actor's gradient", ACTOR, "backward(networks_.critics[0]", "backward(networks_.critics[1]"),
    ("critic targets at every update", "critic targets", ENGINE, "settings.critic_lr, settings.tau, delayed", "settings.critic_lr, settings.tau, true"),
]  # fmt: skip

CAMPAIGN = [
    ("the actor plays a'", "next_action", CRITIC, "actor_forward(Weights::target", "actor_forward(Weights::online"),
    ("a' in s", "next_action", CRITIC, "actor_forward(Weights::target, rows, work_.next_input)", "actor_forward(Weights::target, rows, work_.input)"),
    ("noise not clipped", "next_action", CRITIC, "std::min(std::max(noise[j] * scale, -clip), clip)", "noise[j] * scale"),
    ("noise clipped on one side", "next_action", CRITIC, "std::min(std::max(noise[j] * scale, -clip), clip)", "std::min(noise[j] * scale, clip)"),
    ("noise not scaled", "next_action", CRITIC, "noise[j] * scale", "noise[j]"),
    ("one noise for the whole batch", "next_action", CRITIC, "noise_ + static_cast<ptrdiff_t>(i) * actions", "noise_"),
    ("no smoothing", "next_action", CRITIC, "within(action[j] + clipped_noise, 1.0f)", "within(action[j], 1.0f)"),
    ("no clamp of a'", "next_action", CRITIC, "within(action[j] + clipped_noise, 1.0f)", "action[j] + clipped_noise"),
    ("the critics evaluate a'", "next_q", CRITIC, "critic_forward(0, Weights::target", "critic_forward(0, Weights::online"),
    ("one critic target twice", "next_q", CRITIC, "critic_forward(1, Weights::target", "critic_forward(0, Weights::target"),
    ("the first target alone", "target", CRITIC, "q2 < q1 || q2 != q2 ? q2 : q1", "q1"),
    ("the mean of both targets", "target", CRITIC, "q2 < q1 || q2 != q2 ? q2 : q1", "(q1 + q2) / 2"),
    ("ends ignored", "target", CRITIC, "(memory_.terminated[row] ? 0.0f : 1.0f)", "1.0f"),
    ("ends turned round", "target", CRITIC, "memory_.terminated[row] ? 0.0f : 1.0f", "memory_.terminated[row] ? 1.0f : 0.0f"),
    ("ends of other rows", "target", CRITIC, "memory_.terminated[row] ?", "memory_.terminated[i] ?"),
    ("no discount", "target", CRITIC, "future = discount *", "future ="),
    ("gamma for every row", "target", CRITIC, "memory_.discount ? memory_.discount[row] : gamma", "gamma"),
    ("the reward of another row", "target", CRITIC, "memory_.reward[row]", "memory_.reward[i]"),
    ("the critics evaluate (s', a')", "q", CRITIC, "critic_forward(which, Weights::online, rows, work_.input", "critic_forward(which, Weights::online, rows, work_.next_input"),
    ("the critic targets evaluate (s, a)", "q", CRITIC, "critic_forward(which, Weights::online", "critic_forward(which, Weights::target"),
    ("the first critic's loss alone", "critic loss", ENGINE, ": d1 * d1 + d2 * d2;", ": d1 * d1;"),
    ("a loss without its factor two", "critics' gradient", CRITIC, "(2.0f / batch_)", "(1.0f / batch_)"),
    ("a sum for the mean of the critics' loss", "critics' gradient", CRITIC, "(2.0f / batch_)", "2.0f"),
    ("one error for both critics", "critics' gradient", CRITIC, "error = q[which][i] - ", "error = q[0][i] - "),
    ("a squared loss with prioritised sampling", "critics' gradient", CRITIC, "floor > 0 ? within(error, floor) * (1.0f / batch_) :", ""),
    ("a loss that grows without a bound with prioritised sampling", "critics' gradient", CRITIC, "within(error, floor)", "error"),
    ("the floor's factor two", "critics' gradient", CRITIC, "(1.0f / batch_)", "(2.0f / batch_)"),
    ("no half in the loss below the floor", "critic loss", LAYERS, "0.5f * size * size", "size * size"),
    ("no floor in the loss above it", "critic loss", LAYERS, ": floor * size", ": size"),
    ("the critics learn the wrong way", "critics' gradient", CRITIC, "(2.0f / batch_)", "(-2.0f / batch_)"),
    ("gradients through closed ReLUs", "critics' gradient", LAYERS, "p.epilogue = slope", "p.epilogue = Epilogue::none"),
    ("Adam's mean forgets faster", "critics' gradient", ADAM, "BETA1 = 0.9,", "BETA1 = 0.8,"),
    ("Adam's square forgets faster", "critics' gradient", ADAM, "BETA2 = 0.999", "BETA2 = 0.99"),
    ("a square without its gradient squared", "critics' gradient", ADAM, "constant<Numbers>(1 - BETA2) * g * g", "constant<Numbers>(1 - BETA2) * g"),
    ("no correction of Adam's square", "critics", ADAM, "1 / std::sqrt(1 - std::pow(BETA2, step))", "1.0"),
    ("a correction that is one step late", "critics", ADAM, "lr / (1 - std::pow(BETA1, step))", "lr / (1 - std::pow(BETA1, step + 1))"),
    ("a larger epsilon", "critics", ADAM, "EPSILON = 1e-8", "EPSILON = 1e-5"),
    ("Adam climbs", "critics", ADAM, "- constant<Numbers>(step.rate) * m", "+ constant<Numbers>(step.rate) * m"),
    ("the actor's rate for the critics", "critics", ENGINE, "settings.critic_lr", "settings.actor_lr"),
    ("the critics' rate for the actor", "actor", ENGINE, "settings.actor_lr", "settings.critic_lr"),
    ("the actor learns at every update", "actor's gradient", ENGINE, "delayed ? tasks_.all_phases : tasks_.critic_phases", "tasks_.all_phases"),
    ("the actor asks Q2", "actor loss", ACTOR, "critic_forward(0, Weights::online", "critic_forward(1, Weights::online"),
    ("the actor asks the target of Q1", "actor loss", ACTOR, "critic_forward(0, Weights::online", "critic_forward(0, Weights::target"),
    ("the actor target's action", "actor loss", ACTOR, "actor_forward(Weights::online", "actor_forward(Weights::target"),
    ("actions without tanh", "next_action", LAYERS, "hyperbolic_tangent(load(output + j))", "load(output + j)"),
    ("the actor descends", "actor's gradient", ACTOR, "-1.0f / batch_", "1.0f / batch_"),
    ("a sum for the mean of the actor's loss", "actor's gradient", ACTOR, "-1.0f / batch_", "-1.0f"),
    ("no derivative of tanh", "actor's gradient", ACTOR, "1.0f - action[j] * action[j]", "1.0f"),
    ("the observation's gradient for the action's", "actor's gradient", NETWORKS, "transposed_of(weight, i == 0 ? observations : 0)", "transposed_of(weight)"),
    ("the actor target stays", "actor target", ENGINE, "settings.actor_lr, settings.tau, true", "settings.actor_lr, settings.tau, false"),
    ("the critic targets stay", "critic targets", ENGINE, "settings.critic_lr, settings.tau, delayed", "settings.critic_lr, settings.tau, false"),
    ("τ and 1 − τ exchanged", "actor target", ADAM, "constant<Numbers>(tau)", "constant<Numbers>(1 - tau)"),
    ("targets that move away", "actor target", ADAM, "(value - load_as<Numbers>(target))", "(load_as<Numbers>(target) - value)"),
    ("weights that are not packed again", "critic loss", ADAM, "pack(p, from, to, step.move_target);", ""),
    ("targets that are not packed again", "critic loss", ADAM, "pack(p, from, to, step.move_target);", "pack(p, from, to, false);"),
]  # fmt: skip

MUTANTS = [pytest.param(*one, id=one[0]) for one in ALWAYS] + [
    pytest.param(*one, id=one[0], marks=pytest.mark.campaign) for one in CAMPAIGN
]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """Compiles what no mutant changes, once."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "absent.cpp").write_text(ABSENT)
    sources = [LIBRARY / "interface.cpp", LIBRARY / "thread_pool.cpp", CHECKS / "check.cpp", folder / "absent.cpp"]
    return [compiled(source, folder, LIBRARY) for source in sources]


def compiled(source, folder, headers):
    made = folder / f"{source.stem}.o"
    run([COMPILER, *flags_of_setup(), "-O1", "-I", headers, "-c", source, "-o", made])
    return made


def check_program(folder, objects, file=None, right="", wrong=""):
    """Builds the check program in this folder, with one line of the library changed."""
    source = folder / "source"
    shutil.copytree(LIBRARY, source)
    if file:
        text = (source / file).read_text()
        assert text.count(right) == 1, f"{right!r} is {text.count(right)} times in {file}: renew this mutant"
        (source / file).write_text(text.replace(right, wrong))
    program = folder / "check"
    run([COMPILER, *flags_of_setup(), *objects, compiled(source / "portable.cpp", folder, source), "-o", program])
    return program


def wrong_quantities(report):
    """Returns which quantities of an update have wrong numbers, in the order of the steps. NaN and infinity are none."""
    outputs = {"next_q1": "next_q", "next_q2": "next_q", "q1": "q", "q2": "q"}
    means = ("critic loss", "actor loss", "q", "q", "target")
    tensors = {
        ("actor", "value"): "actor", ("actor", "target"): "actor target",
        ("critics", "value"): "critics", ("critics", "target"): "critic targets",
    }  # fmt: skip
    wrong = set()
    for line in report.splitlines():
        if found := re.search(r": (next_action|next_q1|next_q2|target|q1|q2): differs by (\S+);", line):
            quantity, number = outputs.get(found[1], found[1]), found[2]
        elif found := re.search(r": mean (\d) is (\S+), not", line):
            quantity, number = means[int(found[1])], found[2]
        elif found := re.search(r": means: number (\d+) is (\S+), not", line):
            quantity, number = means[int(found[1]) % 5], found[2]
        elif found := re.search(
            r": (actor|critics) (?:weight|bias) \d+'s (\w+): (?:differs by|number \d+ is) ([^\s;,]+)", line
        ):
            quantity, number = tensors.get(found.groups()[:2], f"{found[1]}'s gradient".replace("s's", "s'")), found[3]
        else:
            continue
        if math.isfinite(float(number)):
            wrong.add(quantity)
    return sorted(wrong, key=QUANTITIES.index)


def test_without_a_mutant_every_check_passes(tmp_path, objects):
    out, _ = run([check_program(tmp_path, objects)], timeout=300)
    assert wrong_quantities(out) == []
    assert int(re.fullmatch(r"(\d+) checks passed\n", out)[1]) > 10_000


@pytest.mark.parametrize(("name", "quantity", "file", "right", "wrong"), MUTANTS)
def test_a_mutant_of_the_library_gives_a_wrong_number(name, quantity, file, right, wrong, tmp_path, objects):
    out, _ = run([check_program(tmp_path, objects, file, right, wrong)], status=1, timeout=300)
    assert re.search(r"^\d+ checks failed\n\d+ checks passed\n$", out, re.MULTILINE), "it did not run to its end"
    assert [*wrong_quantities(out), None][0] == quantity, f"{name}: {wrong_quantities(out)}\n{out[:2_000]}"


def test_a_crash_and_a_nan_are_no_wrong_numbers(tmp_path, objects):
    crashing = check_program(tmp_path, objects, CRITIC, "load_batch(memory_", "std::abort(), load_batch(memory_")
    with pytest.raises(AssertionError, match="check ended with -6"):
        run([crashing], status=1, timeout=300)
    assert wrong_quantities("1+1 (3) x7 portable: target: differs by inf; the scale is 1, allowed is 5e-06 of it") == []
    assert wrong_quantities("1+1 (3) x7 portable: mean 0 is nan, not 0.5") == []
    assert wrong_quantities("1+1 (3) x7 portable: mean 0 is 0.25, not 0.5") == ["critic loss"]
