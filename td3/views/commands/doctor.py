"""`td3 doctor`: says why a run does not learn."""

from argparse import Namespace

from td3.config import env_name
from td3.views.flags import Parser, add_run
from td3.views.speaking import answer, say
from td3.wording import counted

HELP = "Say why a run does not learn: at most three findings, the worst first."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if anything stands out")


def run(chosen: Namespace) -> int:
    """Looks at the run's record; returns 0, with `--strict` only if nothing stands out."""
    from td3.diagnosis import findings, read_evidence
    from td3.views.findings import as_data, lines_of

    evidence = read_evidence(chosen.run)
    found, env = findings(evidence), env_name(evidence.config.env)
    if chosen.json:
        plain = [as_data(finding, chosen.run, evidence.config) for finding in found]
        answer({"run": chosen.run, "env": env, "step": evidence.step, "findings": plain})
    elif found:
        say(*lines_of(found, chosen.run, evidence.config))
    else:
        say(
            f"Nothing stands out in {counted(evidence.step, 'step')} of {env}.",
            "Should it not learn all the same: docs/it-does-not-learn.md has what no record shows.",
        )
    return 1 if chosen.strict and found else 0
