"""`td3 resume`: continues a run that was stopped or killed."""

from argparse import BooleanOptionalAction, Namespace
from pathlib import Path

from td3.config import checked
from td3.views.commands.train import add_display
from td3.views.flags import Parser, add_run, add_trust, find_local_modules, metavar, number_for
from td3.views.own_parts import add_parts, load_parts, part_names

HELP = "Continue a run that was stopped or killed, exactly as if it had never been stopped."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    parser.add_argument("--steps", metavar="N", help="train for more steps than the run was started with")
    parser.add_argument("--engine", metavar=metavar("engine"), help="continue with another engine")
    parser.add_argument("--film", action=BooleanOptionalAction, help="continue with or without films")
    parser.add_argument(
        "--without-memory", action="store_true", help="continue without the damaged part of the replay memory"
    )
    add_display(parser)
    add_trust(parser)
    add_parts(parser)


def run(chosen: Namespace) -> int:
    """Continues the run; returns the exit code."""
    steps = None if chosen.steps is None else number_for("steps", "--steps", chosen.steps)
    engine = None if chosen.engine is None else checked("engine", chosen.engine)
    names = part_names(chosen)
    if chosen.env or chosen.trust or names:
        find_local_modules()
    parts = load_parts(chosen)
    from td3.training import resume
    from td3.views.run_display import Again, follow

    events = resume(chosen.run, steps, chosen.env, chosen.trust, engine, chosen.film, chosen.without_memory, **parts)
    return follow(events, Again(Path(chosen.run), chosen.env, names), chosen)
