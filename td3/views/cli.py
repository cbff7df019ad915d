"""The command `td3`: flags become a Config, events become text, errors become one sentence and an exit code.

Exit codes: 0 done, 1 the run failed, 2 bad input, 129, 130 or 143 stopped by a signal after saving. Human text
goes to stderr; with `--json`, exactly one JSON document goes to stdout. Nothing heavy is imported before a
command needs it: `--help` answers at once.
"""

import argparse
import contextlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from td3.benchmark.cases import CASES, SECTIONS
from td3.config import GROUPS, SETTINGS, Config, checked
from td3.config.env import parse_env_args
from td3.config.explanation import explained
from td3.config.values import whole_number_in
from td3.errors import ConfigError, Interrupted, SpaceError, TD3Error
from td3.synonyms import command_for, instead_of
from td3.version import VERSION
from td3.views.signals import end_at_once
from td3.views.speaking import answer, answers_only, say, shell_command, shell_word, write_out
from td3.wording import brief, counted, did_you_mean

if TYPE_CHECKING:
    from td3.events import Event


class Parser(argparse.ArgumentParser):
    """argparse, but what it refuses becomes our one sentence."""

    def __init__(self, **known: Any) -> None:
        super().__init__(**known)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1e-5 too is a value, and no flag

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message[0].upper() + message[1:] + f"; see {self.prog} --help.")

    def _print_message(self, message: str, _file: Any = None) -> None:
        write_out(message)


def main(arguments: Sequence[str] | None = None) -> int:
    with answers_only():
        try:
            chosen = understand(list(sys.argv[1:] if arguments is None else arguments))
            check_working_directory()
            result: int = chosen.do(chosen)
            return result
        except (ConfigError, SpaceError) as problem:
            return failed(problem, str(problem), 2)
        except TD3Error as problem:
            return failed(problem, str(problem))
        except Interrupted as problem:
            return failed(problem, "stopped.", 128 + problem.signal)
        except KeyboardInterrupt as problem:
            return failed(problem, "stopped.", 130)
        except BrokenPipeError:  # the reader of our answer has gone: nobody is left to tell
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
            return failed(problem, f"{type(problem).__name__} was not expected: this is a mistake in td3.")


def check_working_directory() -> None:
    """PyTorch's libraries end the process without a word of ours where it is gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise ConfigError("The current working directory was removed: change to another one.") from None


def entry() -> int:
    """The process `td3`: as `main`, and what ends it while Python tidies up leaves no trace."""
    code = main()
    end_at_once()
    return code


def failed(problem: BaseException, sentence: str, code: int = 1) -> int:
    """Says what went wrong, and what is left of the run; the exit code."""
    say(f"td3: {sentence}", *filter(None, [getattr(problem, "what_is_left", "")]))
    return code


def understand(words: list[str]) -> argparse.Namespace:
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


YES_OR_NO = ("true", "false", "yes", "no", "on", "off", "1", "0")


def check_flags(command: str, words: list[str], commands: dict[str, Parser]) -> None:
    """Refuses what argparse would misread: an unknown flag's value, a value where none belongs, numbers apart."""
    known = commands[command]._option_string_actions
    for place, word in enumerate(takewhile(lambda word: word != "--", words)):
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            continue
        if name not in known:
            raise ConfigError(no_flag(name, command, commands))
        after = words[place + 1 :]
        if known[name].nargs == 0 and (equals or (after and after[0].casefold() in YES_OR_NO)):
            ways = " or ".join(known[name].option_strings)
            raise ConfigError(f"{name} takes no value: write {ways} alone; got {brief(value if equals else after[0])}.")
        numbers = list(takewhile(str.isdecimal, after))
        if len(numbers) > 1 and "," in str(known[name].metavar):
            raise ConfigError(f"{name} takes numbers with commas between them: {name} {brief(','.join(numbers), str)}.")


def having(name: str, commands: dict[str, Parser]) -> list[str]:
    """The commands that know a flag."""
    return [f"td3 {command}" for command, parser in commands.items() if name in parser._option_string_actions]


def no_command(word: str, commands: Iterable[str]) -> str:
    """Says which command was meant, as far as that can be known."""
    meant = command_for(word)
    if not meant and (":" in word or re.search(r"-v\d+$", word)):
        meant = shell_command("train", word)
    near = f": use {meant}." if meant else f".{did_you_mean(word, commands)}"
    return f"{brief(word)} is no command of td3{near} There are: {', '.join(commands)}."


RENAMED = {("evaluate", "eval_episodes"): "--episodes"}  # what a setting is called as a flag of one command


def no_flag(name: str, command: str, commands: dict[str, Parser]) -> str:
    """Says which flag was meant: one by another library's name, one of another command, or a near miss."""
    name = brief(name.split("=")[0], str)
    own = commands[command]._option_string_actions
    words = {action.dest: action.metavar for action in commands[command]._actions if not action.option_strings}
    missing: list[str] = []

    def shown(setting: str) -> str:
        """A setting as this command takes it."""
        if word := words.get(setting) or words.get(f"{setting}s"):
            return f"{word}, without a flag before it"
        known = RENAMED.get((command, setting), flag(setting))
        if known not in own:
            missing.append(known)
        return known

    setting = name.strip("-").replace("-", "_")
    advice = f"use {shown(setting)}"
    if missing:  # no setting of this command by its own name: perhaps by another library's
        missing.clear()
        advice = instead_of(setting, shown)
    homes = having(name, commands)
    if homes and (missing or not advice):
        kept = "; a run keeps the settings it began with" if command == "resume" and setting in SETTINGS else ""
        return f"{name} is no flag of td3 {command}, but of {' and '.join(homes)}{kept}."
    if advice:
        return f"{name} is no flag of td3 {command}{'; with td3 train, ' if missing else ': '}{advice}."
    return f"{name} is no flag of td3 {command}.{did_you_mean(name, own)}"


def make_parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="td3",
        description="Trains continuous-control agents with Twin Delayed DDPG.",
        epilog="Begin with: td3 train",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"td3 {VERSION}")
    commands: dict[str, Parser] = {}
    group = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, do: Callable[[argparse.Namespace], int], words: str) -> Parser:
        commands[name] = group.add_parser(name, help=words, description=words, allow_abbrev=False)
        commands[name].set_defaults(do=do)
        commands[name].add_argument("--json", action="store_true", help="one JSON document on stdout, for programs")
        return commands[name]

    train = command("train", run_train, "Train an agent and keep the run in a folder.")
    train.add_argument("env", nargs="?", metavar="ENV", help=help_of("env"))
    train.add_argument("--run", metavar="DIR", help="a new folder for the run (default: one under runs/)")
    train.add_argument("--quiet", action="store_true", help="say only how it ended")
    train.add_argument("--watch", action="store_true", help="show the run on a live web page, too")
    with_settings(train)

    resume = command("resume", run_resume, "Go on with a run that was stopped or killed, as if it never had been.")
    resume.add_argument("run", metavar="RUN", help="the run's folder")
    resume.add_argument("--steps", metavar="N", help="a further goal than the run's own")
    resume.add_argument("--engine", metavar=metavar("engine"), help="go on with another engine")
    resume.add_argument("--film", action=argparse.BooleanOptionalAction, help="go on with or without films")
    resume.add_argument(
        "--without-memory", action="store_true", help="where part of the replay memory is damaged, go on without it"
    )
    resume.add_argument("--quiet", action="store_true", help="say only how it ended")
    resume.add_argument("--watch", action="store_true", help="show the run on a live web page, too")
    trusting(resume)

    evaluate = command("evaluate", run_evaluate, "Play a run's agent without noise and tell its returns.")
    evaluate.add_argument("run", metavar="RUN", help="the run's folder")
    evaluate.add_argument("--episodes", metavar="N", default="10", help="how many (default: 10)")
    evaluate.add_argument("--seed", metavar="N", default="0", help="of the episodes' starts (default: 0)")
    evaluate.add_argument("--checkpoint", metavar="WHICH", default="last", help="last (default), best, or a step")
    trusting(evaluate)

    verify = command("verify", run_verify, "Check every checkpoint of a run against its hashes.")
    verify.add_argument("run", metavar="RUN", help="the run's folder")

    check = command("check", run_check, "Say whether TD3 can train on an environment, and what it will see.")
    check.add_argument("env", metavar="ENV", help=help_of("env"))
    with_settings(check)

    command("selftest", run_selftest, "Compare every engine's update with an independent float64 reference.")

    watch = command("watch", run_watch, "Show runs on a live web page, while they train and after.")
    watch.add_argument("runs", nargs="?", metavar="RUNS", help="a run, or a folder with runs below it (default: runs)")
    serving(watch)
    watch.add_argument("--until-closed", action="store_true", help=argparse.SUPPRESS)  # for `train --watch`

    explain = command("explain", run_explain, "Show the fifteen steps, moving, on a small agent that learns meanwhile.")
    serving(explain)

    bench = command("bench", run_bench, "Measure speed, side by side with the peers that are installed.")
    bench.add_argument("--threads", metavar="N,N", help="numbers of threads (default: 1 and every core)")
    bench.add_argument("--sections", metavar="A,B", help=f"of {', '.join(SECTIONS)} (default: all)")
    bench.add_argument("--cases", metavar="A,B", help=f"of {', '.join(CASES)} (default: all)")
    bench.add_argument("--rounds", metavar="N", default="40", help="interleaved rounds (default: 40)")
    bench.add_argument("--picture", metavar="FILE", help="draw a picture too, as .png or .svg")
    return parser, commands


def with_settings(parser: Parser) -> None:
    """A flag for every field of a Config."""
    parser.add_argument_group("settings", "A task or preset may choose another default than the one in brackets.")
    for group, names in GROUPS.items():
        settings = parser.add_argument_group(group)
        for name in names:
            if name == "env":
                continue
            if isinstance(SETTINGS[name].default, bool):
                either = argparse.BooleanOptionalAction
                settings.add_argument(flag(name), dest=f"set_{name}", action=either, help=help_of(name))
            elif name == "env_args":
                words = f"{help_of(name)}; once for each"
                settings.add_argument(flag(name), dest="env_args", action="append", metavar="NAME=VALUE", help=words)
            else:
                settings.add_argument(flag(name), dest=f"set_{name}", metavar=metavar(name), help=help_of(name))


def config_of(chosen: argparse.Namespace) -> Config:
    """The Config that these flags ask for."""
    given = {name: getattr(chosen, f"set_{name}") for name in SETTINGS if name not in ("env", "env_args")}
    values: dict[str, Any] = {
        name: text if isinstance(text, bool) else SETTINGS[name].parse(text)
        for name, text in given.items()
        if text is not None
    }
    if chosen.env_args:
        values["env_args"] = parse_env_args(chosen.env_args)
    return Config(**values) if chosen.env is None else Config(env=chosen.env, **values)


def trusting(parser: Parser) -> None:
    parser.add_argument("--env", metavar="ENV", help="play this environment instead of the one the run names")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the Python code the run's env names, and start as many processes as it asks for",
    )


def serving(parser: Parser) -> None:
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, this machine alone); any other needs the token it prints",
    )
    parser.add_argument("--port", metavar="N", help="the port to listen on (default: the first free one from 8533 on)")


def flag(name: str) -> str:
    if name == "env_args":
        return "--env-arg"
    return "--" + name.replace("_", "-")


def metavar(name: str) -> str:
    known = SETTINGS[name]
    if known.choices:
        return "|".join(known.choices)
    if known.is_list:
        return ",".join("N" for _ in known.default or (1, 1))
    return "X" if known.type is float else "N"


def help_of(name: str) -> str:
    return explained(SETTINGS[name]).replace("%", "%%")  # argparse's own sign


def run_train(chosen: argparse.Namespace) -> int:
    config = config_of(chosen)
    if chosen.run == "":
        raise ConfigError("--run must be the name of a folder; got ''.")
    find_local_modules()
    from td3.training import train
    from td3.views.training import new_folder, watch_training

    folder = Path(chosen.run) if chosen.run else new_folder(config)
    with page_beside(chosen, folder, train(config, folder)) as events:
        return watch_training(events, folder, None, quiet=chosen.quiet, as_json=chosen.json)


def run_resume(chosen: argparse.Namespace) -> int:
    steps = None if chosen.steps is None else number_for("steps", "--steps", chosen.steps)
    if chosen.env or chosen.trust:
        find_local_modules()
    from td3.training import resume
    from td3.views.training import watch_training

    engine = None if chosen.engine is None else checked("engine", chosen.engine)
    events = resume(chosen.run, steps, chosen.env, chosen.trust, engine, chosen.film, chosen.without_memory)
    with page_beside(chosen, Path(chosen.run), events) as followed:
        return watch_training(followed, Path(chosen.run), chosen.env, quiet=chosen.quiet, as_json=chosen.json)


@contextlib.contextmanager
def page_beside(chosen: argparse.Namespace, folder: Path, events: "Iterator[Event]") -> "Iterator[Iterator[Event]]":
    """The run's events; and the live page, if it is wished, for as long as the run trains."""
    if not chosen.watch:
        yield events
        return
    needs_page()
    from td3.views.watching import begun, beside

    events = begun(events)
    with beside(folder) as address:
        say(f"Watch it at {address}")
        yield events
    say(f"The page ended with the run; look again with: {shell_command('watch', folder)}")


def run_verify(chosen: argparse.Namespace) -> int:
    from td3.storage import verify

    found = verify(chosen.run)
    whole = bool(found) and not list(found.values())[-1]
    if chosen.json:
        answer({"run": chosen.run, "whole": whole, "checkpoints": found})
    else:
        for name, problem in found.items():
            say(f"{'damaged' if problem else 'whole  '} {name}{'  ' if problem else ''}{problem}")
        verdict = "The newest checkpoint is whole." if whole else "The newest checkpoint is not whole."
        say(verdict if found else "There are no checkpoints.")
    return 0 if whole else 1


def run_evaluate(chosen: argparse.Namespace) -> int:
    episodes = number_for("eval_episodes", "--episodes", chosen.episodes)
    seed = number_for("seed", "--seed", chosen.seed)
    if chosen.env or chosen.trust:
        find_local_modules()
    from td3.agent import evaluate, load
    from td3.config import env_name
    from td3.learner.making import use_threads

    use_threads(1)  # one observation at a time gives two threads nothing to share
    agent = load(chosen.run, chosen.checkpoint, chosen.env, chosen.trust)
    for note in agent.notes:
        say(f"Note: {note}")
    evaluation = evaluate(agent, episodes, seed)
    name = env_name(agent.config.env)
    if chosen.json:
        answer(
            {
                "env": name,
                "step": agent.step,
                "episodes": evaluation.episodes,
                "mean": evaluation.mean,
                "std": evaluation.std,
                "returns": evaluation.returns,
            }
        )
    else:
        say(
            f"{name} after {counted(agent.step, 'step')}, {counted(evaluation.episodes, 'episode')} without noise: "
            f"{evaluation.mean:.1f} ± {evaluation.std:.1f} (lowest {min(evaluation.returns):.1f}, "
            f"highest {max(evaluation.returns):.1f})."
        )
    return 0


def run_check(chosen: argparse.Namespace) -> int:
    config = config_of(chosen)
    find_local_modules()
    from td3.views.checking import check_environment, lines_of

    found = check_environment(config)
    if chosen.json:
        answer(found)
    else:
        say(*lines_of(found))
    return 0


def run_selftest(chosen: argparse.Namespace) -> int:
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


def run_watch(chosen: argparse.Namespace) -> int:
    needs_page()
    folder = Path(chosen.runs or "runs")
    if chosen.runs and not chosen.until_closed and not folder.is_dir():
        raise ConfigError(f"RUNS must be a folder; {chosen.runs!r} is none.")
    from td3.views.watching import watch

    return watch(folder, chosen.host, port_of(chosen), as_json=chosen.json, until_closed=chosen.until_closed)


def run_explain(chosen: argparse.Namespace) -> int:
    needs_page()
    from td3.views.watching import explain

    return explain(chosen.host, port_of(chosen), as_json=chosen.json)


def port_of(chosen: argparse.Namespace) -> int | None:
    return None if chosen.port is None else whole_number("--port", chosen.port, at_least=0, at_most=65_535)


def needs_page() -> None:
    for module in ("starlette", "uvicorn", "plotly"):
        needs(module, "watch")


def run_bench(chosen: argparse.Namespace) -> int:
    from td3.benchmark.report import draw, tables
    from td3.benchmark.running import bench
    from td3.learner.making import cores

    most = cores()
    threads = [whole_number("--threads", one, at_least=1) for one in words_of(chosen.threads)] or [1, most]
    if max(threads) > most:
        raise ConfigError(f"--threads must be at most {most}, the cores there are; got {max(threads)}.")
    sections, cases = among("--sections", chosen.sections, SECTIONS), among("--cases", chosen.cases, CASES)
    rounds = whole_number("--rounds", chosen.rounds, at_least=1)
    if chosen.picture:
        needs("matplotlib", "plot")
        if Path(chosen.picture).suffix not in (".png", ".svg") or not Path(chosen.picture).absolute().parent.is_dir():
            raise ConfigError(f"--picture must be a .png or .svg in a folder that exists; got {chosen.picture!r}.")
    result = bench(sorted(set(threads)), sections=sections, cases=cases, rounds=rounds, seconds=0.1)
    if chosen.picture:
        draw(result, Path(chosen.picture))
    if chosen.json:
        answer(result)
    else:
        say(*tables(result).splitlines())
    return 0


def words_of(text: str | None) -> list[str]:
    return text.split(",") if text else []


def among(name: str, text: str | None, allowed: Iterable[str]) -> list[str]:
    """The words of a list, each of them allowed; all of them where none is given."""
    allowed = list(allowed)
    for word in words_of(text):
        if word not in allowed:
            known = ", ".join(allowed)
            raise ConfigError(f"{name} must be of {known}; got {brief(word)}.{did_you_mean(word, allowed)}")
    return words_of(text) or allowed


def needs(module: str, extra: str) -> None:
    """An optional library is there, or one sentence tells how to get it."""
    if importlib.util.find_spec(module) is None:
        checkout = Path(__file__).parents[2]
        what, flags = f"td3[{extra}]", ""
        if (checkout / "pyproject.toml").is_file():
            what, flags = f"{'.' if checkout.samefile(os.curdir) else checkout}[{extra}]", "-e "
        raise ConfigError(f"This needs {module}, which is not installed: pip install {flags}{shell_word(what)}")


def whole_number(name: str, text: str, at_least: int, at_most: int | None = None) -> int:
    try:
        number = whole_number_in(text)
    except ValueError:
        number = at_least - 1
    if number < at_least or (at_most is not None and number > at_most):
        limit = f"at least {at_least}" if at_most is None else f"from {at_least} to {at_most:,}"
        raise ConfigError(f"{name} must be a whole number, {limit}; got {brief(text)}.")
    return number


def number_for(setting: str, name: str, text: str) -> int:
    """A whole number within the limits of a setting, for a flag of another name or command."""
    known = SETTINGS[setting]
    return whole_number(name, text, known.at_least, known.at_most)  # type: ignore[arg-type]


def find_local_modules() -> None:
    """`module:Env` is found beside where the command was typed, as `python -m` would find it."""
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.append(here)  # last: a file of the user's never stands in for a library
