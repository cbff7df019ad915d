"""`td3 resume`: continues a run that was stopped or killed, with changed settings if they are given."""

from argparse import Namespace
from pathlib import Path

from td3.config import SETTINGS
from td3.schedule import RESUMABLE
from td3.views.commands.train import add_display
from td3.views.flags import Parser, add_run, add_setting, add_trust, find_local_modules, given_settings
from td3.views.own_parts import add_parts, load_parts, part_names

HELP = "Continue a run that was stopped or killed, exactly as if it had never been stopped."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = "td3 resume RUN [--steps N] [any flag below]"
    add_run(parser)
    parser.add_argument(
        "--without-memory", action="store_true", help="continue without the damaged part of the replay memory"
    )
    add_display(parser)
    add_trust(parser)
    add_parts(parser)
    changes = parser.add_argument_group(
        "changed settings",
        "The run keeps what is not given; what is given holds from here on, and stands in its record.",
    )
    for name in RESUMABLE:
        known = SETTINGS[name]  # its default is no default here: the run has a value
        add_setting(changes, name, known.meaning + (f" [{known.allowed}]" if known.allowed else ""))


def run(chosen: Namespace) -> int:
    """Continues the run; returns the exit code."""
    changes = given_settings(chosen)
    names = part_names(chosen)
    if chosen.env or chosen.trust or names:
        find_local_modules()
    parts = load_parts(chosen)
    from td3.training import resume
    from td3.views.run_display import Again, follow

    events = resume(
        chosen.run,
        env=chosen.env,
        trust=chosen.trust,
        without_memory=chosen.without_memory,
        **parts,
        **changes,
    )
    return follow(events, Again(Path(chosen.run), chosen.env, names), chosen)
