"""`td3 check`: says whether TD3 can train on an environment."""

from argparse import Namespace

from td3.views.flags import Parser, add_settings, config_of, find_local_modules, help_of
from td3.views.speaking import answer, say

HELP = "Say whether TD3 can train on an environment, and what it observes."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = "td3 check ENV [any flag below]"
    parser.add_argument("env", metavar="ENV", help=help_of("env"))
    add_settings(parser)


def run(chosen: Namespace) -> int:
    """Makes the environment and reports on it; returns the exit code."""
    config = config_of(chosen)
    find_local_modules()
    from td3.views.env_report import check_environment, lines_of

    report = check_environment(config)
    if chosen.json:
        answer(report)
    else:
        say(*lines_of(report))
    return 0
