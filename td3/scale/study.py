"""Trains a study from Python: `for event in td3.study({"env": "Pendulum-v1", "seeds": 3}, "studies/mine")`."""

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from td3.config.env import env_name, has_no_name
from td3.errors import ConfigError
from td3.scale.addresses import WORDS, check_answers, checked_address
from td3.scale.placing import PATIENCE, most_jobs, on_cluster, on_this_machine
from td3.studies import Driver, Spec, Study, StudyEvent, read_spec
from td3.wording import brief


def study(
    spec: Mapping[str, Any] | str | Path,
    folder: str | Path,
    *,
    jobs: int | None = None,
    ray: str | None = None,
    patience: float = PATIENCE,
) -> Iterator[StudyEvent]:
    """Trains environments × settings × seeds, several runs at once, and continues what was begun in the folder.

    `spec` is the path of a TOML file, or a dict with the same names: `{"env": [...], "seeds": 5, "steps": 100_000,
    "settings": {"author": {}, "wide": {"hidden": (512, 512)}}}`. An environment is an id, or a class or function that
    other processes can import. `jobs` runs train at once, by default as many as there are cores; `ray` is the address
    of a cluster, as of `td3 study --ray`. Nothing is printed; leaving the loop early lets the runs save and end.
    """
    planned = Study(folder, read_spec(spec) if isinstance(spec, str | Path) else Spec.of(with_names(spec)))
    threads = max(run.config.threads for run in planned.runs)
    if ray is not None and not isinstance(ray, str):
        raise ConfigError(f"ray must be the address of a cluster: {WORDS}; got {brief(ray)}.")
    if isinstance(patience, bool) or not isinstance(patience, int | float) or not 5 <= patience <= 86_400:
        raise ConfigError(f"patience must be a number of seconds from 5 to 86,400; got {brief(patience)}.")
    check_jobs(jobs, None if ray is not None and checked_address(ray) != "local" else most_jobs(threads))
    if ray is not None and importlib.util.find_spec("ray") is None:
        raise ConfigError("ray is not installed, which this needs: pip install 'td3[scale]'")
    planned.check()
    return events(planned, jobs, threads, ray, patience)


def events(planned: Study, jobs: int | None, threads: int, ray: str | None, patience: float) -> Iterator[StudyEvent]:
    """Yields what happens, from the first event on: until then nothing is written."""
    with contextlib.ExitStack() as stack:
        if ray is not None:
            check_answers(ray)
        stack.enter_context(planned)
        if ray is None:
            driver: Driver = on_this_machine(planned, jobs or most_jobs(threads))
        else:
            _, drive = stack.enter_context(on_cluster(ray, patience, threads))
            driver = drive(planned, jobs)
        yield from driver.events()


def with_names(spec: Any) -> dict[str, Any]:
    """Returns a spec with the names of its environments; one that no other process can import is refused."""
    if not isinstance(spec, Mapping):
        raise ConfigError(f"spec must be the path of a TOML file, or a dict with the same names; got {brief(spec)}.")
    given = spec.get("env")
    several = given if isinstance(given, list | tuple) else [given]
    names = [env_name(env) if callable(env) else env for env in several]
    for name in names:
        if isinstance(name, str) and (has_no_name(name) or name.startswith("__main__:")):
            raise ConfigError(
                f"env must be an id, or a class or function in a module that other processes can import; got {name!r}."
            )
    return {**spec, **({"env": names} if "env" in spec else {})}


def check_jobs(jobs: int | None, most: int | None) -> None:
    """Refuses a number of runs at once that is none, or more than the cores allow."""
    wrong = jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1)
    if wrong or (jobs is not None and most is not None and jobs > most):
        limit = "at least 1" if most is None else f"from 1 to {most}, for as many runs at once as there are cores"
        raise ConfigError(f"jobs must be a whole number, {limit}; got {brief(jobs)}.")
