"""`td3 train`: trains an agent and keeps the run in a folder."""

import time
from argparse import Namespace
from pathlib import Path

from td3.config import Config, env_name
from td3.config.env import folder_name
from td3.errors import ConfigError
from td3.views.flags import Parser, add_config, add_settings, all_given, find_local_modules, help_of
from td3.views.own_parts import add_parts, load_parts, part_names

HELP = "Train an agent and keep the run in a folder."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = "td3 train [ENV] [--run DIR [--resume]] [--steps N] [--seed N] [--config FILE] [any flag below]"
    parser.add_argument("env", nargs="?", metavar="ENV", help=help_of("env"))
    parser.add_argument("--run", metavar="DIR", help="a new folder for the run (default: one under runs/)")
    parser.add_argument("--resume", action="store_true", help="continue the run in --run DIR, if there is one already")
    add_config(parser)
    add_display(parser)
    add_parts(parser)
    add_settings(parser)


def add_display(parser: Parser) -> None:
    """Adds the flags that say how a run is shown."""
    parser.add_argument("--quiet", action="store_true", help="say only how it ended")
    parser.add_argument("--watch", action="store_true", help="show the run on a live web page, too")


def run(chosen: Namespace) -> int:
    """Trains; returns the exit code."""
    given = all_given(chosen)
    config = Config(**given)
    if chosen.run == "":
        raise ConfigError("--run must be the name of a folder; got ''.")
    if chosen.resume and chosen.run is None:
        raise ConfigError("--resume needs --run DIR, the folder of the run that is begun or continued.")
    find_local_modules()
    parts = load_parts(chosen)
    from td3.resuming import asked_again
    from td3.storage import RunFolder
    from td3.training import resume, train
    from td3.views.run_display import Again, follow

    folder = Path(chosen.run) if chosen.run else new_folder(config)
    again = Again(folder, None, part_names(chosen))
    if chosen.resume and not RunFolder.is_new(folder):
        return follow(resume(folder, **asked_again(folder, config, given), **parts), again, chosen)
    return follow(train(config, folder, **parts), again, chosen)


def new_folder(config: Config) -> Path:
    """Names a folder: runs/Pendulum-v1-seed0-20260131-235959, with a number behind it if that is taken."""
    base = Path("runs") / f"{folder_name(env_name(config.env))}-seed{config.seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = base, 2
    while folder.exists():
        folder, number = base.with_name(f"{base.name}-{number}"), number + 1
    return folder
