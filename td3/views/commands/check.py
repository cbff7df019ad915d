"""`td3 check`: says whether TD3 can train on an environment, and what looks wrong with it."""

import contextlib
from argparse import Namespace
from collections.abc import Callable, Iterator

from td3.config import Config
from td3.errors import ConfigError
from td3.views.flags import Parser, add_config, add_settings, all_given, find_local_modules, help_of
from td3.views.speaking import answer, at_a_terminal, console, say
from td3.wording import counted

HELP = "Say whether TD3 can train on an environment, what looks wrong with it, and how long a run takes."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = "td3 check ENV [--strict] [--config FILE] [any flag below]"
    parser.add_argument("env", nargs="?", metavar="ENV", help=help_of("env"))
    parser.add_argument("--strict", action="store_true", help="exit with 1 if anything stands out")
    add_config(parser)
    add_settings(parser)


def run(chosen: Namespace) -> int:
    """Makes the environment and reports on it; returns 0, with `--strict` only if nothing stands out."""
    given = all_given(chosen)
    if "env" not in given:
        raise ConfigError("The following arguments are required: ENV; see td3 check --help.")
    config = Config(**given)
    find_local_modules()
    from td3.views.env_report import check_environment, lines_of
    from td3.views.findings import as_data
    from td3.views.findings import lines_of as lines_of_findings

    with progress() if at_a_terminal() and not chosen.json else contextlib.nullcontext(lambda _: None) as show:
        report = check_environment(config, show)
    found, env = report["findings"], report["env"]
    if chosen.json:
        answer({**report, "findings": [as_data(finding, None, config) for finding in found]})
    else:
        nothing = f"Nothing stands out in {counted(report['random_steps'], 'random step')} of {env}."
        say(*lines_of(report), *(lines_of_findings(found, None, config) or [nothing]))
    return 1 if chosen.strict and found else 0


@contextlib.contextmanager
def progress() -> Iterator[Callable[[float], None]]:
    """Shows a bar that disappears when it is done; yields what moves it."""
    from rich.progress import Progress

    with Progress(console=console(), transient=True) as bars:
        bar = bars.add_task("Playing random steps", total=1.0)
        yield lambda done: bars.update(bar, completed=done)
