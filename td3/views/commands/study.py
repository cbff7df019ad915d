"""`td3 study`: trains environments × settings × seeds, several runs at once, and continues what was begun."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from td3.config.env import folder_name
from td3.config.trust import immodest, needs_trust, why_not_trusted
from td3.config.values import whole_number_in
from td3.config.words import words_of
from td3.errors import ConfigError
from td3.views.flags import Parser, add_settings, find_local_modules, given_settings, given_task
from td3.views.placing import add_placing, check_cluster, drivers, placing_of, placing_words, stopper
from td3.views.signals import handled_by
from td3.views.speaking import answer, at_a_terminal, say, shell_command, write_out
from td3.wording import brief

if TYPE_CHECKING:
    from td3.config import Config
    from td3.studies import Driver, PlannedRun, Study

HELP = "Train several environments, settings and seeds, and continue what was begun."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    parser.usage = (
        "td3 study SPEC.toml|STUDY|ENV… [--seeds N] [--jobs N] [--ray ADDRESS] [--study DIR] [--print] [any flag below]"
    )
    parser.add_argument(
        "what", nargs="+", metavar="WHAT", help="a TOML file, the folder of a study, or one or more environments"
    )
    parser.add_argument(
        "--seeds", metavar="N", help="seeds of each setting: 5 for 0 to 4, or a list as 0,3,7 [default 5]"
    )
    add_placing(parser)
    parser.add_argument("--study", metavar="DIR", help="the folder of the study (default: one under studies/)")
    parser.add_argument("--print", action="store_true", help="train nothing: print a command for each run that is left")
    parser.add_argument("--quiet", action="store_true", help="say only what failed, and how it ended")
    parser.add_argument("--trust", action="store_true", help="import the Python code that the folder of a study names")
    add_settings(parser)


def run(chosen: Namespace) -> int:
    """Trains what is left of the study; returns the exit code."""
    study = study_of(chosen)
    study.check()
    threads = max(run.config.threads for run in study.runs)
    placing = placing_of(chosen, threads)
    if chosen.print:
        commands = [shell_command(*command(study, run)) for run in study.left()]
        answer({"study": str(study.path), "commands": commands}) if chosen.json else write_out(
            "".join(f"{one}\n" for one in commands)
        )
        return 0
    check_cluster(placing)
    check_envs(study)
    with study, drivers(placing, threads, study.folder) as drive:
        return train(study, drive(study), chosen)


def check_envs(study: "Study") -> None:
    """Refuses an environment that cannot be made, before anything is written; one of a begun run was made before."""
    known: set[str] = set()
    for run in study.runs:
        if study.standing(run).begun:
            known.add(str(run.config.env))
    for run in study.runs:
        if str(run.config.env) not in known:
            known.add(str(run.config.env))
            make_once(run.config)


def make_once(config: "Config") -> None:
    """Makes an environment and closes it again: what is wrong with it is said in one sentence."""
    find_local_modules()
    from td3.environments import Wrappers, make_envs

    make_envs(config.env, wrappers=Wrappers.of(config), env_args=config.env_args).close()


def command(study: "Study", run: "PlannedRun") -> list[str | Path]:
    """Returns the words that begin a run, and continue it if it is begun."""
    env, *settings = words_of(run.given)
    return ["train", env, "--run", study.path_of(run), "--resume", *settings]


def study_of(chosen: Namespace) -> "Study":
    """Makes the study that a command line asks for; flags win over its file."""
    from td3.storage.study import SPEC
    from td3.studies import Spec, Study, read_spec

    given = given_settings(chosen)
    if "seed" in given:
        raise ConfigError(f"--seed belongs to one run: a study has --seeds N; got {brief(given['seed'])}.")
    seeds, first = seeds_of(chosen.seeds), Path(chosen.what[0])
    chosen.env = None
    given.update(given_task(chosen))
    folder = first if (first / SPEC).is_file() else None
    if folder is not None or first.suffix == ".toml":
        if len(chosen.what) > 1:
            raise ConfigError(f"td3 study takes one file or one folder of a study; got {brief(chosen.what[1])} too.")
        if folder is not None and chosen.study is not None:
            raise ConfigError(
                f"--study is not needed: {brief(chosen.what[0])} is the folder of a study; got {brief(chosen.study)}."
            )
        if folder is not None and any(folder.glob("*/*/seed-*.json")):
            raise ConfigError(
                f"{brief(chosen.what[0])} holds results, and no runs: name its {SPEC}, and a folder for the runs with "
                "--study DIR."
            )
        spec = read_spec(folder / SPEC if folder else first).changed((), seeds, given)
        study = Study(folder or place(chosen, first.stem), spec)
        if folder is not None and not chosen.trust:
            check_trusted(study)
        return study
    if first.is_dir():
        raise ConfigError(f"{brief(chosen.what[0])} is a folder without {SPEC}: it is no study.")
    spec = Spec.of({"env": list(chosen.what), **({} if seeds is None else {"seeds": seeds}), **given})
    return Study(place(chosen, "-".join(map(folder_name, chosen.what))), spec)


def check_trusted(study: "Study") -> None:
    """Refuses what the folder of a study names, and somebody else may have written."""
    for run in study.runs:
        if reason := why_not_trusted(run.config, "say that you trust it (--trust), or name your own SPEC.toml."):
            raise ConfigError(reason)
        if excess := immodest(run.config):
            raise ConfigError(f"{excess} that you trust (--trust).")


def place(chosen: Namespace, name: str) -> Path:
    """Returns the folder of a study."""
    if chosen.study == "":
        raise ConfigError("--study must be the name of a folder; got ''.")
    return Path(chosen.study or Path("studies") / folder_name(name)[:150])


def seeds_of(text: str | None) -> int | list[int] | None:
    """Reads `5` as a number of seeds, and `0,3,7` or `3,` as a list of them."""
    try:
        if text is None or "," not in text:
            return None if text is None else whole_number_in(text)
        return [whole_number_in(one) for one in text.split(",") if one.strip()]
    except ValueError:
        raise ConfigError(f"--seeds must be a whole number, or a list such as 0,3,7; got {brief(text)}.") from None


def train(study: "Study", driver: "Driver", chosen: Namespace) -> int:
    """Trains to the end or to the first signal, shows it, and returns the exit code."""
    from td3.views.study_display import LiveStudy, PlainStudy, summary

    quiet = chosen.quiet or chosen.json
    view = LiveStudy(study, driver) if at_a_terminal() and not quiet else PlainStudy(study, driver, quiet)

    with handled_by(stopper(driver)), view:
        for event in driver.events():
            view.show(event)
    report = summary(study, view.failed)
    if chosen.json:
        answer(report)
    else:
        say(*view.ending(report))
        if driver.signals:
            trust = ["--trust"] if any(needs_trust(run.config) for run in study.runs) else []
            say(f"Continue with: {shell_command('study', study.path, *placing_words(chosen), *trust)}")
        elif report["finished"]:
            say(
                f"Compare them with: {shell_command('compare', study.path)}",
                f"   or look at them: {shell_command('watch', study.path)}",
            )
    if driver.signals:
        return 128 + driver.signals[0]
    return 1 if view.failed else 0
