"""The command `td3`: flags become a Config, events become text, errors become one sentence and an exit code.

Exit codes: 0 done, 1 the run failed, 2 bad input, 129, 130 or 143 stopped by a signal after saving. Human text
goes to stderr; with `--json`, exactly one JSON document goes to stdout. Nothing heavy is imported before a
command needs it: `--help` answers at once.
"""

import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from td3.errors import ConfigError, Interrupted, SpaceError, TD3Error
from td3.version import VERSION
from td3.views.commands import COMMANDS
from td3.views.flags import Parser
from td3.views.mistakes import check_flags, having, no_command, no_flag
from td3.views.own_parts import part_names
from td3.views.signals import end_at_once
from td3.views.speaking import answers_only, say
from td3.wording import brief


def entry() -> int:
    """Runs the process `td3`: as `main`, and no signal that comes while Python tidies up leaves a trace."""
    code = main()
    end_at_once()
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line; returns its exit code."""
    with answers_only():
        chosen = None
        try:
            chosen = understand(list(sys.argv[1:] if arguments is None else arguments))
            check_working_directory()
            code: int = chosen.do(chosen)
            return code
        except (ConfigError, SpaceError) as problem:
            return failed(problem, str(problem), 2)
        except TD3Error as problem:
            return failed(problem, str(problem))
        except Interrupted as problem:
            return failed(problem, "stopped.", 128 + problem.signal)
        except KeyboardInterrupt as problem:
            return failed(problem, "stopped.", 130)
        except BrokenPipeError:  # the reader of our answer has gone
            return 1
        except MemoryError as problem:
            return failed(problem, "There is not enough memory.")
        except ImportError as problem:
            return failed(problem, f"A library cannot be loaded: {problem}.")
        except OSError as problem:
            named = f"{problem.filename}: " if problem.filename else ""
            return failed(problem, f"The system refused: {named}{problem.strerror or problem}.")
        except Exception as problem:
            say(*"".join(traceback.format_exception(problem)).splitlines())
            own = ", ".join(part_names(chosen).values()) if chosen else ""
            where = f"td3, or in your own {own}" if own else "td3"
            return failed(problem, f"{type(problem).__name__} was not expected: this is a mistake in {where}.")


def failed(problem: BaseException, sentence: str, code: int = 1) -> int:
    """Says what went wrong, and what is left of the run; returns the exit code."""
    say(f"td3: {sentence}", *filter(None, [getattr(problem, "what_is_left", "")]))
    return code


def check_working_directory() -> None:
    """Refuses one that was removed: PyTorch's libraries would end the process without a word of ours."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise ConfigError("The current working directory was removed: change to another one.") from None


def understand(words: list[str]) -> Namespace:
    """Parses a command line; what is wrong with it is one sentence."""
    words = words or ["--help"]
    parser, commands = make_parser()
    first = words[0].split("=")[0]
    if words[0] in commands:
        check_flags(words[0], words[1:], commands)
    elif not first.startswith("-"):
        raise ConfigError(no_command(words[0], commands))
    elif first not in parser._option_string_actions:
        homes = having(first, commands)
        after = f"{first} must come after a command, as in: {homes[0]} {first}." if homes else ""
        raise ConfigError(after or no_flag(first, "train", commands))
    chosen, unknown = parser.parse_known_args(words)
    if unknown and unknown[0].startswith("-"):
        raise ConfigError(no_flag(unknown[0], chosen.command, commands))
    if unknown:
        raise ConfigError(f"td3 {chosen.command} takes no further word; got {brief(unknown[0])}.")
    return chosen


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    """Makes the parser, and that of each command by its name."""
    parser = Parser(
        prog="td3",
        description="Trains continuous-control agents with Twin Delayed DDPG.",
        epilog="Begin with: td3 train",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"td3 {VERSION}")
    commands: dict[str, Parser] = {}
    group = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, command in COMMANDS.items():
        commands[name] = group.add_parser(name, help=command.HELP, description=command.HELP, allow_abbrev=False)
        commands[name].set_defaults(do=command.run)
        commands[name].add_argument("--json", action="store_true", help="one JSON document on stdout, for programs")
        command.add_arguments(commands[name])
    return parser, commands
