"""Where the runs of a study or of a search train: in processes of this machine, or on a Ray cluster."""

import contextlib
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from td3.errors import ConfigError
from td3.machine import cores
from td3.views.extras import needs
from td3.views.flags import Parser, find_local_modules, whole_number
from td3.views.speaking import others_into, say, say_in_handler
from td3.wording import brief, counted

if TYPE_CHECKING:
    from td3.storage.study import StudyFolder
    from td3.studies import Driver, Plan

PATIENCE = 60  # seconds without a word from a node


class Placing(NamedTuple):
    """What the flags say: the cluster's address, or None; how long a node may be silent; runs at once, if given."""

    address: str | None
    patience: float
    jobs: str | None


def add_placing(parser: Parser) -> None:
    """Adds the flags that say where runs train, and how many at once."""
    parser.add_argument("--jobs", metavar="N", help="runs that train at once [default and most: the available cores]")
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="train on a Ray cluster: local (started here), auto (the one of this machine) or HOST:PORT",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        help=f"with --ray: a run whose node is silent for so long is placed elsewhere [{PATIENCE}]",
    )


def placing_of(chosen: Namespace, threads: int) -> Placing:
    """Reads and checks the flags, for runs that have so many threads each."""
    if chosen.ray is None:
        if chosen.patience is not None:
            raise ConfigError(f"--patience is for --ray ADDRESS; got {brief(chosen.patience)}.")
        placing = Placing(None, 0.0, chosen.jobs)
    else:
        from td3.scale.addresses import checked_address

        patience = whole_number("--patience", chosen.patience or str(PATIENCE), 5, 86_400)
        placing = Placing(checked_address(chosen.ray), float(patience), chosen.jobs)
    jobs_for(threads, placing.jobs, cores() if placing.address in (None, "local") else None)
    return placing


def jobs_for(threads: int, asked: str | None, available: int | None) -> int:
    """Returns how many runs train at once: as many as asked, or as the available cores allow, which is the most."""
    most = None if available is None else max(1, available // threads)
    jobs = (most or 1) if asked is None else whole_number("--jobs", asked, 1)
    if most is not None and jobs > most:
        each = f", with {counted(threads, 'thread')} each" if threads > 1 else ""
        raise ConfigError(
            f"--jobs must be at most {most}, for this process may use {counted(available or 0, 'core')}{each}; "
            f"got {jobs}."
        )
    return jobs


def check_cluster(placing: Placing) -> None:
    """Refuses a cluster that cannot be used, before anything is written."""
    if placing.address is not None:
        needs("ray", "scale")
        find_local_modules()
        from td3.scale.addresses import check_answers

        check_answers(placing.address)


@contextlib.contextmanager
def drivers(placing: Placing, threads: int, folder: "StudyFolder") -> "Iterator[Callable[[Plan], Driver]]":
    """Returns what makes a driver of a plan; connected to the cluster, if there is one, until the block ends.

    What Ray has to say goes to a log in the folder, which must be open.
    """
    from td3.scale.placing import on_cluster, on_this_machine

    if placing.address is None:
        jobs = jobs_for(threads, placing.jobs, cores())
        yield lambda plan: on_this_machine(plan, jobs)
        return
    with (
        folder.log() as log,
        others_into(log),
        on_cluster(placing.address, placing.patience, threads) as (notes, drive),
    ):
        say(*notes)
        asked = None if placing.jobs is None else jobs_for(threads, placing.jobs, None)
        yield lambda plan: drive(plan, asked)


def placing_words(chosen: Namespace) -> list[str]:
    """Returns the flags again, for the command that continues."""
    given = {"--jobs": chosen.jobs, "--ray": chosen.ray, "--patience": chosen.patience}
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def stopper(driver: "Driver") -> Callable[[int, Any], None]:
    """Returns a handler of signals that lets the runs of a driver save and end."""

    def stop(number: int, _frame: Any) -> None:
        """Takes down a signal."""
        driver.signals.append(number)
        more = "once more leaves at once" if len(driver.signals) == 1 else "once more ends them"
        say_in_handler(f"Stopping the runs after their step or evaluation; {more}.")

    return stop
