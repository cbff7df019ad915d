"""`td3 verify`: checks every checkpoint of a run against its hashes."""

from argparse import Namespace

from td3.views.flags import Parser, add_run
from td3.views.speaking import answer, say

HELP = "Check every checkpoint of a run against its hashes."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)


def run(chosen: Namespace) -> int:
    """Checks; returns 0 only if the newest checkpoint is whole."""
    from td3.storage import verify

    problems = verify(chosen.run)
    whole = bool(problems) and not list(problems.values())[-1]
    if chosen.json:
        answer({"run": chosen.run, "whole": whole, "checkpoints": problems})
    else:
        for name, problem in problems.items():
            say(f"{'damaged' if problem else 'whole  '} {name}{'  ' if problem else ''}{problem}")
        verdict = "The newest checkpoint is whole." if whole else "The newest checkpoint is not whole."
        say(verdict if problems else "There are no checkpoints.")
    return 0 if whole else 1
