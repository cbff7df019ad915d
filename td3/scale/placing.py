"""Where the runs of a plan train: in processes of this machine, or on a Ray cluster."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from td3.config.words import words_of
from td3.machine import cores
from td3.studies import Driver, Job, Plan, PlannedRun, ProcessJob

PATIENCE = 60.0  # seconds without a word from a node


def most_jobs(threads: int) -> int:
    """Returns how many runs of so many threads may train on this machine at once."""
    return max(1, cores() // threads)


def words_for(run: PlannedRun, *place: str | Path) -> list[str]:
    """Returns the words of `td3` that begin a run, and continue it if it is begun."""
    env, *settings = words_of(run.given)
    return ["train", env, *map(str, place), "--resume", *settings, "--quiet"]


def on_this_machine(plan: Plan, jobs: int) -> Driver:
    """Makes a driver that starts a process for each run; it finds the user's modules where this process does."""
    found = os.pathsep.join(filter(None, sys.path))

    def start(run: PlannedRun) -> Job:
        """Starts a process."""
        words = words_for(run, "--run", plan.path_of(run))
        return ProcessJob(words, env={**os.environ, "PYTHONPATH": found} if ":" in str(run.config.env) else None)

    return Driver(plan, jobs, start)


@contextlib.contextmanager
def on_cluster(address: str, patience: float, threads: int) -> "Iterator[tuple[list[str], Callable[..., Driver]]]":
    """Connects to a cluster; returns what is odd about its nodes, and what makes a driver of a plan.

    The driver has as many jobs as the cluster has CPUs for, unless a number is given.
    """
    from td3.scale.rays import RayCluster

    with RayCluster(address, patience) as cluster:

        def drive(plan: Plan, jobs: int | None = None) -> Driver:
            """Makes a driver that places each run on a node."""
            most = max(1, cluster.cpus // threads)
            return Driver(plan, jobs or most, lambda run: cluster.start(plan.path_of(run), words_for(run), run.config))

        yield cluster.notes, drive
