"""The tests are tested: each mistake that others have made, put into our code, must be caught (see `mutants`)."""

import pytest
from mutants import MUTANTS, guards_of, mutated, put_in, results_of


@pytest.mark.parametrize(("name", "module", "right", "wrong", "tests"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_a_mutant_does_not_survive(name, module, right, wrong, tests, monkeypatch):
    guards = guards_of(tests)  # before the mutant is put in, or it would stay there
    put_in(monkeypatch, *mutated(name, module, right, wrong))
    seen = []
    for guard, result in results_of(guards):
        seen.append(f"{guard} {result}")
        if result == "caught":
            return
    pytest.fail(f"with {name}, no assertion of {tests} fails:\n" + "\n".join(seen))


@pytest.mark.parametrize("tests", sorted({mutant[-1] for mutant in MUTANTS}))
def test_without_a_mutant_every_guard_passes(tests):
    wrong = [(guard, result) for guard, result in results_of(guards_of(tests)) if result != "passed"]
    assert not wrong


def crash():
    raise KeyError("a name that is gone")


def fail():
    assert 1 == 2


def assert_within_td3():
    code = compile("assert False", "td3/learner/td3.py", "exec")
    exec(code)


def pass_by():
    assert 1 == 1


def test_only_a_failed_assertion_of_a_test_counts_as_caught():
    results = [result for _, result in results_of([crash, fail, assert_within_td3, pass_by])]
    assert results == ["crashed", "caught", "crashed", "passed"]


def test_a_mutant_whose_text_is_gone_is_not_passed_over():
    with pytest.raises(AssertionError, match="renew the mutant 'stale'"):
        mutated("stale", "td3.replay.links", "no such line", "")
