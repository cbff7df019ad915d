"""`td3 export`: writes a run's policy to one file for elsewhere: ONNX, C or JavaScript."""

from argparse import Namespace

from td3.config import env_name
from td3.export.endings import ENDINGS, checked_path
from td3.views.extras import needs
from td3.views.flags import Parser, add_run, find_local_modules
from td3.views.own_parts import add_parts, load_parts, part_names
from td3.views.speaking import answer, say
from td3.wording import counted

HELP = "Write a run's policy to one file for elsewhere: .onnx, .c or .js."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    add_run(parser)
    formats = "; ".join(f"{ending} for {what}" for ending, what in ENDINGS.items())
    parser.add_argument("file", metavar="FILE", help=f"the file to write, by its ending: {formats}")
    parser.add_argument("--checkpoint", metavar="WHICH", default="last", help="last (default), best, or a step")
    add_parts(parser, ("learner",))


def run(chosen: Namespace) -> int:
    """Exports; returns the exit code."""
    path = checked_path(chosen.file)
    if path.suffix.lower() == ".onnx":
        needs("onnx", "export")
    if part_names(chosen):
        find_local_modules()
    parts = load_parts(chosen)
    from td3.agent import load
    from td3.learner.making import use_threads

    use_threads(1)
    agent = load(chosen.run, chosen.checkpoint, **parts)
    for note in agent.notes:
        say(f"Note: {note}")
    exported = agent.export(chosen.file)
    name = env_name(agent.config.env)
    if chosen.json:
        answer(
            {
                "file": chosen.file,
                "env": name,
                "step": agent.step,
                "bytes": exported.size,
                "observations": exported.observations,
                "remembered": exported.remembered,
                "error": exported.error,
                "tool": exported.tool,
                "unchecked": exported.unchecked,
            }
        )
        return 0
    say(f"{name} after {counted(agent.step, 'step')} is in {chosen.file}, {counted(exported.size, 'byte')}.")
    sampled = exported.observations - exported.remembered
    which = f"{exported.remembered:,} remembered" if exported.remembered else ""
    which += " and " if exported.remembered and sampled else ""
    which += f"{sampled:,} sampled" if sampled else ""
    say(
        f"It acts as the agent does on {which} observations: the largest difference is {exported.error:.1e} of the "
        f"action's range ({exported.tool})."
    )
    if exported.unchecked:
        say(f"Note: {exported.unchecked}: the file itself was not run, only what it is made from.")
    return 0
