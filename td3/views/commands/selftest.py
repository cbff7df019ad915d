"""`td3 selftest`: compares every engine's update with an independent float64 reference."""

from argparse import Namespace

from td3.config import Config
from td3.views.flags import Parser
from td3.views.speaking import answer, say

HELP = "Compare every engine's update with an independent float64 reference."


def add_arguments(_parser: Parser) -> None:
    """Adds nothing: this command has no flags of its own."""


def run(chosen: Namespace) -> int:
    """Compares; returns 0 if every engine is within its limit."""
    from td3.learner import why_not_native
    from td3.learner.selftest import selftest

    results = []
    if why := why_not_native(Config()):
        say(f"–    native: not compared, for {why}.")
    for result in selftest():
        results.append(result)
        if not chosen.json:
            say(
                f"{'ok  ' if result.passed else 'FAIL'} {result.engine} {result.precision}: after {result.updates} "
                f"updates the largest relative error is {result.error:.1e} (at most {result.limit:.0e} allowed)."
            )
    if chosen.json:
        answer([{**result._asdict(), "passed": result.passed} for result in results])
    return 0 if all(result.passed for result in results) else 1
