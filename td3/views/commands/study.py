"""`td3 study`: trains environments × settings × seeds, several runs at once, and continues what was begun."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from td3.config.env import folder_name
from td3.config.trust import immodest, needs_trust, why_not_trusted
from td3.config.values import whole_number_in
from td3.errors import ConfigError
from td3.machine import cores
from td3.views.extras import needs
from td3.views.flags import (
    Parser,
    add_settings,
    find_local_modules,
    given_settings,
    given_task,
    whole_number,
    words_of,
)
from td3.views.signals import handled_by
from td3.views.speaking import answer, at_a_terminal, others_into, say, say_in_handler, shell_command, write_out
from td3.wording import brief, counted

if TYPE_CHECKING:
    from td3.studies import Driver, Job, PlannedRun, Study

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
    parser.add_argument("--jobs", metavar="N", help="runs that train at once [default and most: the available cores]")
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="train on a Ray cluster: local (started here), auto (the one of this machine) or HOST:PORT",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        help="with --ray: a run whose node is silent for so long is placed elsewhere [60]",
    )
    parser.add_argument("--study", metavar="DIR", help="the folder of the study (default: one under studies/)")
    parser.add_argument("--print", action="store_true", help="train nothing: print a command for each run that is left")
    parser.add_argument("--quiet", action="store_true", help="say only what failed, and how it ended")
    parser.add_argument("--trust", action="store_true", help="import the Python code that the folder of a study names")
    add_settings(parser)


def run(chosen: Namespace) -> int:
    """Trains what is left of the study; returns the exit code."""
    study = study_of(chosen)
    study.check()
    address, patience = cluster_of(chosen)
    jobs = jobs_for(study, chosen.jobs, cores() if address in (None, "local") else None)
    if chosen.print:
        commands = [shell_command(*command(study, run)) for run in study.left()]
        answer({"study": str(study.path), "commands": commands}) if chosen.json else write_out(
            "".join(f"{one}\n" for one in commands)
        )
        return 0
    if address is not None:
        return train_on_cluster(study, chosen, address, patience)
    from td3.studies import Driver, ProcessJob

    with study:

        def start(run: "PlannedRun") -> ProcessJob:
            return ProcessJob([*map(str, command(study, run)), "--quiet"])

        return train(study, Driver(study, jobs, start), chosen)


def jobs_for(study: "Study", asked: str | None, available: int | None) -> int:
    """Returns how many runs train at once: as many as asked, or as the available cores allow, which is the most."""
    threads = max(run.config.threads for run in study.runs)
    most = None if available is None else max(1, available // threads)
    jobs = (most or 1) if asked is None else whole_number("--jobs", asked, 1)
    if most is not None and jobs > most:
        each = f", with {counted(threads, 'thread')} each" if threads > 1 else ""
        raise ConfigError(
            f"--jobs must be at most {most}, for this process may use {counted(available or 0, 'core')}{each}; "
            f"got {jobs}."
        )
    return jobs


def cluster_of(chosen: Namespace) -> tuple[str | None, float]:
    """Returns the address of the cluster that a command line asks for, if any, and how long a node may be silent."""
    if chosen.ray is None:
        if chosen.patience is not None:
            raise ConfigError(f"--patience is for --ray ADDRESS; got {brief(chosen.patience)}.")
        return None, 0.0
    from td3.scale.addresses import checked_address

    address = checked_address(chosen.ray)
    return address, float(whole_number("--patience", chosen.patience or "60", 5, 86_400))


def train_on_cluster(study: "Study", chosen: Namespace, address: str, patience: float) -> int:
    """Trains on a Ray cluster; what Ray has to say goes to a log in the folder of the study."""
    needs("ray", "scale")
    find_local_modules()
    from td3.scale.addresses import check_answers
    from td3.scale.rays import RayCluster
    from td3.studies import Driver

    check_answers(address)  # before anything is written
    with study, study.folder.log() as log, others_into(log), RayCluster(address, patience) as cluster:
        say(*cluster.notes)

        def start(run: "PlannedRun") -> "Job":
            env, *settings = words_of(run.given)
            return cluster.start(study.path_of(run), ["train", env, "--resume", *settings, "--quiet"], run.config)

        jobs = jobs_for(study, chosen.jobs or str(jobs_for(study, None, cluster.cpus)), None)
        return train(study, Driver(study, jobs, start), chosen)


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

    def stop(number: int, _frame: Any) -> None:
        driver.signals.append(number)
        more = "once more leaves at once" if len(driver.signals) == 1 else "once more ends them"
        say_in_handler(f"Stopping the runs after their step or evaluation; {more}.")

    with handled_by(stop), view:
        for event in driver.events():
            view.show(event)
    report = summary(study, view.failed)
    if chosen.json:
        answer(report)
    else:
        say(*view.ending(report))
        if driver.signals:
            trust = ["--trust"] if any(needs_trust(run.config) for run in study.runs) else []
            say(f"Continue with: {shell_command('study', study.path, *trust)}")
        elif report["finished"]:
            say(
                f"Look at them with: {shell_command('runs', study.path)}",
                f"              or: {shell_command('watch', study.path)}",
            )
    if driver.signals:
        return 128 + driver.signals[0]
    return 1 if view.failed else 0
