"""Ray: starts or finds a cluster, checks its nodes, and places runs on them. The only module that imports it."""

import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from td3.config import Config
from td3.config.env import env_name
from td3.errors import ConfigError, RunError
from td3.machine import cores
from td3.scale.addresses import AUTO, LOCAL, check_answers, is_loopback
from td3.scale.remote import NodeLost, RemoteJob
from td3.scale.runner import FOLDER, Report, Runner
from td3.scale.sources import sources_of
from td3.scale.versions import Setup, check_setup, setup, setup_with_kernels
from td3.scale.watcher import Watcher
from td3.storage.scratch import private_folder

PATIENCE = 60.0  # seconds without a word from a node
START = 30.0  # seconds for a cluster to let us in, at least: it may be starting on a busy machine
LOOK = 0.5  # seconds between two looks whether a call is still wanted
STORE = 150 * 2**20  # bytes of Ray's object store on this machine: nothing stays in it for long

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
# Without it Ray listens on every interface; it counts only when Ray is imported.
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class RayCluster:
    """A cluster to train on, connected as long as it is used as a context."""

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        """`patience` is how long a node may be silent before its run is placed elsewhere."""
        self.address, self.patience = address, patience
        self.notes: list[str] = []  # on nodes that are not quite as this one
        self._watcher: Watcher | None = None
        self._here = setup()
        self._sources: dict[str, dict[str, bytes]] = {}
        self._environ: dict[str, str | None] = {}  # variables as they were before

    def __enter__(self) -> Self:
        self._set({name: value for name, value in QUIET.items() if name not in os.environ})
        try:
            self._connect()
            self.notes = self._check_nodes()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cpus(self) -> int:
        """Returns how many CPUs its nodes have."""
        import ray

        return int(ray.cluster_resources().get("CPU", 0))

    def start(self, home: Path, words: list[str], config: Config) -> RemoteJob:
        """Begins a run, or continues it, on some node.

        `words` are those of `td3 train … --resume`, but for the folder.
        """
        env = env_name(config.env)
        if env not in self._sources:
            self._sources[env] = sources_of(env)
        return RemoteJob(home, words, config, lambda job: self._place(job, config.threads), self._sources[env])

    def close(self) -> None:
        """Disconnects; a cluster that was started here is ended, and nothing is left of it."""
        import ray

        ray.shutdown()
        if self._watcher is not None:
            self._watcher.end()
            self._watcher = None
        for name, value in self._environ.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._environ = {}

    def _set(self, variables: Mapping[str, str]) -> None:
        self._environ.update({name: os.environ.get(name) for name in variables})
        os.environ.update(variables)

    def _connect(self) -> None:
        check_answers(self.address)
        if is_loopback(self.address if self.address != AUTO else os.environ.get("RAY_ADDRESS", "")):
            self._set(ON_LOOPBACK)  # Ray would look for it at this machine's other address, and wait
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": None}
        if self.address == LOCAL:
            options = {**options, **self._local_options()}
        else:
            options["address"] = self.address
        import ray

        try:
            with deadline(max(START, self.patience)):
                ray.init(**options)
        except TimeoutError:
            raise ConfigError(
                f"--ray {self.address} has not let us in within {max(START, self.patience):g} s: is it the address of "
                "the head, and is a node of the cluster on this machine (ray start --address …)?"
            ) from None
        except ConnectionError:
            raise ConfigError(
                f"--ray {self.address}: no Ray cluster is running on this machine. Start one (ray start --head), start "
                "this command on one of its nodes, or use --ray local."
            ) from None
        except Exception as problem:
            raise ConfigError(f"--ray {self.address} cannot be used: {first_line(problem)}") from None

    def _local_options(self) -> dict[str, Any]:
        """Prepares a cluster of our own: on loopback, with a secret of its own, in a folder of this user alone."""
        folder = private_folder("td3-ray-")
        self._watcher = Watcher(folder)
        self._set({**ON_LOOPBACK, FOLDER: str(folder)})
        if not any(name.startswith("RAY_AUTH_") for name in os.environ):
            self._set({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
        return {
            "address": "local",
            "num_cpus": cores(),
            "include_dashboard": False,
            "object_store_memory": STORE,
            "_temp_dir": str(folder / "ray"),
        }

    def _check_nodes(self) -> list[str]:
        """Asks every node for its versions; refuses one that would train differently."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [node for node in ray.nodes() if node["Alive"]]
        ask = ray.remote(num_cpus=0, max_retries=0)(setup_with_kernels)
        asked = [
            (node, ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote())
            for node in nodes
        ]
        here, notes, seconds = setup_with_kernels(), list[str](), max(PATIENCE, self.patience)
        for node, answer in asked:
            host = node["NodeManagerHostname"]
            try:
                notes += check_setup(here, ray.get(answer, timeout=seconds))
            except ConfigError:
                raise
            except ray.exceptions.GetTimeoutError:
                notes.append(f"Node {host} has not answered within {seconds:g} s; its versions are compared later.")
            except Exception as problem:
                if isinstance(getattr(problem, "cause", None), ImportError) or "ModuleNotFoundError" in str(problem):
                    raise ConfigError(
                        f"td3 cannot be imported on node {host}: install td3 {here.versions['td3']} there."
                    ) from None
                notes.append(f"Node {host} cannot be asked for its versions: {first_line(problem)}")
        return notes

    def _place(self, job: RemoteJob, threads: int) -> "RayNode":
        """Starts a runner on some node that has room for it; waits for that, and tries other nodes meanwhile."""
        while True:
            node = RayNode(threads, self.patience, job)
            try:
                found = node.hello()
            except Silent:
                node.kill()
                if job.asked_to_end:
                    raise
                job.say("waits for a node with room for it")
            except NodeLost:
                node.kill()
                raise
            else:
                check_setup(self._here, found)
                return node


class Silent(NodeLost):
    """A node from which no word came in time."""


class RayNode:
    """A `Runner` as an actor of Ray. What Ray raises becomes `NodeLost`, and no call waits longer than `patience`."""

    def __init__(self, threads: int, patience: float, job: RemoteJob) -> None:
        import ray

        self._patience, self._job, self._host = patience, job, "a node"
        remote: Any = ray.remote(Runner)
        # At most once: a runner that is lost is replaced by us, from the newest checkpoint at home.
        self._actor = remote.options(
            num_cpus=threads, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        ).remote()

    def hello(self) -> Setup:
        """Waits until it is placed; returns the versions of its node."""
        found: Setup = self._call("hello", wanted=lambda: not self._job.asked_to_end)
        self._host = found.host
        return found

    def place(self) -> str:
        """Returns the path of the run's folder there."""
        return str(self._call("place"))

    def put(self, place: str, data: bytes) -> None:
        """Sends a piece of a file from which the run continues."""
        self._call("put", place, data)

    def start(self, words: list[str], sources: Mapping[str, bytes], again: bool) -> None:
        """Starts the run there."""
        self._call("start", words, dict(sources), again)

    def report(self, sent: Collection[str], seconds: float) -> Report:
        """Returns what is new there."""
        report: Report = self._call("report", list(sent), seconds)
        return report

    def read(self, place: str, start: int, size: int) -> bytes:
        """Reads a piece of a file there."""
        data: bytes = self._call("read", place, start, size)
        return data

    def send(self, number: int) -> None:
        """Sends the process there a signal."""
        self._call("send", number)

    def leave(self) -> None:
        """Ends what is left there, and gives the place free."""
        try:
            if not self._job.abandoned:
                self._call("leave")
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the actor; its process notices, and removes its folder."""
        import ray

        try:
            ray.kill(self._actor)
        except Exception:  # it is gone already, or Ray is
            return

    def _call(self, name: str, *arguments: Any, wanted: Callable[[], bool] | None = None) -> Any:
        import ray

        wanted = wanted or (lambda: not self._job.abandoned)
        until = time.monotonic() + self._patience
        try:
            answer = getattr(self._actor, name).remote(*arguments)
            while not ray.wait([answer], timeout=LOOK)[0]:
                if not wanted():
                    raise Silent("It was asked to end.")
                if time.monotonic() > until:
                    raise Silent(f"No word came from {self._host} for {self._patience:g} s.")
            return ray.get(answer)
        except RunError:
            raise
        except ray.exceptions.RayTaskError as problem:
            raise NodeLost(f"{self._host}: {first_line(problem.cause or problem)}") from None
        except ray.exceptions.RayError as problem:
            lost = "died" if self._host != "a node" else "was lost before it could begin"
            raise NodeLost(f"The runner on {self._host} {lost} ({type(problem).__name__}).") from None


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the block after so many seconds; on the main thread alone."""

    def over(_number: int, _frame: Any) -> None:
        raise TimeoutError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def first_line(problem: BaseException) -> str:
    """Returns what an error says, as far as it is one sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = lines[0] if lines else type(problem).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."
