"""`td3 tune`: searches settings for an environment with Optuna, trial by trial, and continues what was begun."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from td3.config import SETTINGS
from td3.config.env import folder_name
from td3.config.trust import immodest, needs_trust, why_not_trusted
from td3.errors import ConfigError
from td3.views.commands.study import make_once
from td3.views.extras import needs
from td3.views.flags import Parser, add_config, add_settings, all_given, whole_number
from td3.views.placing import add_placing, check_cluster, drivers, placing_of, placing_words, stopper
from td3.views.signals import handled_by
from td3.views.speaking import answer, at_a_terminal, say, shell_command
from td3.wording import brief

if TYPE_CHECKING:
    from collections.abc import Callable

    from td3.studies import Driver, Plan
    from td3.studies.tune_spec import TuneSpec
    from td3.studies.tuner import Tuner
    from td3.studies.tuning import TrialRecord

HELP = "Search settings for an environment with Optuna, and continue a search that was begun."


def add_arguments(parser: Parser) -> None:
    """Adds the flags of this command."""
    tuned = ", ".join(name for name, known in SETTINGS.items() if known.tuned)
    parser.usage = (
        "td3 tune ENV|TUNE [--trials N] [--steps N] [--space FILE] [--confirm N] [--jobs N] [--ray ADDRESS] "
        "[any flag below]"
    )
    parser.add_argument("what", metavar="WHAT", help="an environment, or the folder of a search that is begun")
    parser.add_argument("--trials", metavar="N", help="trials in all; a larger number continues a search [default 30]")
    parser.add_argument("--seeds-per-trial", metavar="N", help="runs of each trial, with a seed each [default 1]")
    parser.add_argument(
        "--space", metavar="FILE", help=f"a TOML file with the settings to search and their ranges [default: {tuned}]"
    )
    parser.add_argument("--sampler", metavar="tpe|random", help="what proposes settings [default tpe]")
    parser.add_argument(
        "--pruner", metavar="median|hyperband|none", help="what ends trials that fall behind [default median]"
    )
    parser.add_argument(
        "--confirm", metavar="N", help="after the search, train the best and the default settings with N fresh seeds"
    )
    add_placing(parser)
    parser.add_argument("--tune", metavar="DIR", help="the folder of the search (default: one under tunes/)")
    parser.add_argument("--picture", metavar="FILE", help="plot the trials, as .png or .svg")
    parser.add_argument("--quiet", action="store_true", help="say only what failed, and what was found")
    parser.add_argument("--trust", action="store_true", help="import the Python code that the folder of a search names")
    add_config(parser)
    parser.add_argument_group("fixed settings", "A setting that is given is not searched; --seed is the search's own.")
    add_settings(parser)


def run(chosen: Namespace) -> int:
    """Trains the trials that are left; returns the exit code."""
    spec, folder = spec_of(chosen)
    placing = placing_of(chosen, spec.default.threads)
    confirm = 0 if chosen.confirm is None else whole_number("--confirm", chosen.confirm, 1, 1_000)
    needs("optuna", "tune")
    if chosen.picture is not None:
        picture = Path(chosen.picture)
        if picture.suffix not in (".png", ".svg") or not picture.parent.is_dir():
            raise ConfigError(f"--picture must be a .png or .svg in a folder that exists; got {brief(chosen.picture)}.")
        needs("matplotlib", "plot")
    from td3.studies.tuner import Tuner

    tuner = Tuner(folder, spec)
    tuner.check()
    check_cluster(placing)
    if not tuner.folder.spec.is_file():
        make_once(spec.default)
    with tuner, drivers(placing, spec.default.threads, tuner.folder) as drive:
        return search(tuner, drive, confirm, chosen)


def spec_of(chosen: Namespace) -> "tuple[TuneSpec, Path]":
    """Makes the search that a command line asks for, and names its folder."""
    from td3.storage.journal import TUNE_SPEC
    from td3.studies.tune_spec import MOST_SEEDS, MOST_TRIALS, TuneSpec, read_space, read_tune_spec

    chosen.env = None
    given, own = all_given(chosen), dict[str, Any]()
    first = Path(chosen.what)
    folder = first if (first / TUNE_SPEC).is_file() else None
    if folder is None and first.is_dir():
        raise ConfigError(f"{brief(chosen.what)} is a folder without {TUNE_SPEC}: it is no search.")
    if folder is not None and chosen.tune is not None:
        raise ConfigError(f"--tune is not needed: {brief(chosen.what)} is the folder of a search.")
    if chosen.tune == "":
        raise ConfigError("--tune must be the name of a folder; got ''.")
    if given.get("env", chosen.what) != chosen.what and folder is None:
        raise ConfigError(f"env is {brief(given['env'])} in {chosen.config}; got {brief(chosen.what)}.")
    given.pop("env", None)
    if chosen.trials is not None:
        own["trials"] = whole_number("--trials", chosen.trials, 1, MOST_TRIALS)
    if chosen.seeds_per_trial is not None:
        own["seeds_per_trial"] = whole_number("--seeds-per-trial", chosen.seeds_per_trial, 1, MOST_SEEDS)
    own |= {name: getattr(chosen, name) for name in ("sampler", "pruner") if getattr(chosen, name) is not None}
    own |= {"space": read_space(chosen.space)} if chosen.space is not None else {}
    own |= {"seed": given.pop("seed")} if "seed" in given else {}
    if folder is None:
        spec = TuneSpec.of({"env": chosen.what, **own, "settings": given})
        return spec, Path(chosen.tune or Path("tunes") / folder_name(chosen.what)[:150])
    before = read_tune_spec(folder / TUNE_SPEC).to_data()
    spec = TuneSpec.of({**before, **own, "settings": {**before["settings"], **given}})
    if not chosen.trust:
        how = "say that you trust it (--trust), or name your own environment."
        if reason := why_not_trusted(spec.default, how):
            raise ConfigError(reason)
        if excess := immodest(spec.default):
            raise ConfigError(f"{excess} that you trust (--trust).")
    return spec, folder


def search(tuner: "Tuner", drive: "Callable[[Plan], Driver]", confirm: int, chosen: Namespace) -> int:
    """Trains to the end or to the first signal, shows what was found, and returns the exit code."""
    from td3.studies.tune_picture import draw_search
    from td3.studies.tune_results import Confirmation
    from td3.studies.tuning import best_of
    from td3.views.tune_display import LiveSearch, PlainSearch, report_of

    quiet = chosen.quiet or chosen.json
    driver = drive(tuner)
    view = LiveSearch(tuner, driver) if at_a_terminal() and not quiet else PlainSearch(tuner, driver, quiet)
    with handled_by(stopper(driver)), view:
        for event in tuner.events(driver):
            view.show(event)
    trials = tuner.search.trials()
    best = best_of(trials)
    write_results(tuner, trials, best)
    if chosen.picture is not None:
        draw_search(tuner.spec, trials, Path(chosen.picture))
    confirmation = None
    if confirm and best is not None and not driver.signals and not tuner.hopeless:
        if not quiet:
            say(*view.ending())
        confirmation = Confirmation(tuner, best, confirm)
        driver = drive(confirmation)
        with handled_by(stopper(driver)):
            for one in driver.events():
                view.show_confirming(one)
    report = report_of(tuner, confirmation)
    if chosen.json:
        answer(report)
    else:
        say(*view.results(report, shown=confirmation is not None and not quiet))
        if driver.signals:
            trust = ["--trust"] if needs_trust(tuner.spec.default) else []
            more = ["--confirm", str(confirm)] if confirm else []
            say(f"Continue with: {shell_command('tune', tuner.path, *placing_words(chosen), *more, *trust)}")
        elif best is not None:
            from td3.storage.journal import BEST

            say(f"Train with: {shell_command('train', '--config', tuner.path / BEST)}")
    if driver.signals:
        return 128 + driver.signals[0]
    return 0 if best is not None else 1


def write_results(tuner: "Tuner", trials: "list[TrialRecord]", best: "TrialRecord | None") -> None:
    """Writes the table of all trials, and the best settings, if there are any, into the folder."""
    from td3.storage.journal import BEST, RESULTS
    from td3.studies.tune_results import best_toml, csv_of

    tuner.folder.write_file(RESULTS, csv_of(tuner.spec, trials))
    if best is not None:
        tuner.folder.write_file(BEST, best_toml(tuner.spec, best))
