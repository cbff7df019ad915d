"""Studies on Ray: a node lost, a driver killed, the same bytes; nothing listens to others, and nothing is left."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import runs

import td3
from td3.config import Config
from td3.scale.runner import FOLDER
from td3.scale.watcher import end_all, processes_of
from td3.storage import verify
from td3.storage.record import last_step

pytest.importorskip("ray", reason="needs ray: pip install -e '.[scale]'")
TESTS = Path(__file__).parent
LONG = {**runs.SMALL, "steps": 1_800, "checkpoint_every": 200, "eval_every": 600, "buffer_size": 1_000, "threads": 1}
FLAGS = [
    *("--steps", "1800", "--warmup-steps", "20", "--hidden", "8,8", "--batch-size", "16", "--buffer-size", "1000"),
    *("--log-every", "20", "--eval-every", "600", "--eval-episodes", "1", "--checkpoint-every", "200", "--no-film"),
]
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@pytest.fixture
def short():
    """A folder for a cluster: the paths of its sockets must be short."""
    path = tempfile.mkdtemp(prefix="td3-test-", dir="/tmp")
    yield path
    end_all(path)


@pytest.fixture
def cluster(short):
    """Starts three nodes; returns their process and address."""
    words = [sys.executable, str(TESTS / "three_nodes.py"), short]
    env = {**os.environ, **TOKEN, "PYTHONPATH": str(TESTS.parent)}
    with (
        Path(short, "log").open("w") as log,  # not a pipe: nodes would hold it
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
        ) as process,
    ):
        address = process.stdout.readline().strip()
        assert address, Path(short, "log").read_text()[-3_000:]
        yield process, address
        process.stdin.close()
    assert list(processes_of(short)) == [] and not Path(short).exists()


def study(tmp_path, *words, task="Pendulum-v1", **env):
    """Starts `td3 study` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "td3", "study", task, "--study", "s", *FLAGS, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_of(tmp_path, seed, task="Pendulum-v1"):
    return tmp_path / f"s/{task}/default/seed-{seed}"


def wait_for(process, condition):
    """Waits for something while a process runs; pytest limits the time."""
    while not condition():
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


def alone(tmp_path, seed, **settings):
    path = tmp_path / f"alone-{seed}"
    list(td3.train(Config(**{**LONG, **settings}, seed=seed), path))
    return runs.contents(path)


def whole(*folders):
    return not any(problem for folder in folders if folder.exists() for problem in verify(folder).values())


def test_a_study_that_loses_a_node_ends_with_the_same_bytes_and_was_whole_all_the_time(cluster, tmp_path):
    process, address = cluster
    homes, go_on = [run_of(tmp_path, seed, "waiting-Waiting") for seed in range(2)], tmp_path / "go-on"
    words = ["--seeds", "2", "--env-arg", f"file={go_on}", "--ray", address, "--patience", "20"]
    driver = study(tmp_path, *words, task="waiting:Waiting", **TOKEN)
    wait_for(driver, lambda: all(last_step(home / "metrics.jsonl") > 400 for home in homes))
    print("lose 1", file=process.stdin, flush=True)
    wait_for(driver, lambda: process.stdout.readline() == "lost\n")
    go_on.touch()  # until now no run could end
    looks = 0
    while driver.poll() is None:
        assert whole(*homes)
        looks += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            driver.wait(0.5)
    said = driver.communicate()[1]
    assert driver.returncode == 0 and looks >= 2, said
    assert sum("is placed again from step" in line for line in said.splitlines()) == 1, said
    assert "ray" not in said.lower().replace("--ray", "")  # its noise is in the log
    for seed, home in enumerate(homes):
        assert runs.contents(home) == alone(tmp_path, seed, env="waiting:Waiting", env_args={"file": str(go_on)})


def listeners(processes):
    """The addresses on which these processes listen, as the kernel writes them: little-endian, in hexadecimal."""
    sockets = {}
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                sockets[f"socket:[{fields[9]}]"] = fields[1].split(":")[0]
    found = []
    for process in processes:
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{process}/fd").iterdir():
                with contextlib.suppress(OSError):
                    found.append(sockets.get(str(file.readlink()), ""))
    return {one for one in found if one}


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def test_a_driver_killed_on_its_own_cluster_leaves_nothing_and_continues_to_the_same_bytes(tmp_path, short):
    homes = [run_of(tmp_path, seed) for seed in range(2)]
    shared_memory = sorted(Path("/dev/shm").iterdir())
    first = study(tmp_path, "--seeds", "2", "--jobs", "1", "--ray", "local", TMPDIR=short)
    wait_for(first, lambda: any((homes[1] / "checkpoints").glob("[0-9]*")))
    (folder,) = [str(path) for path in Path(short).iterdir() if path.name.startswith("td3-ray-")]
    processes = list(processes_of(folder))
    assert len(processes) >= 6
    assert listeners([*processes, first.pid]) <= LOOPBACK and listeners(processes)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    while list(processes_of(folder)) or Path(folder).exists():
        pass  # pytest limits the time
    assert sorted(Path("/dev/shm").iterdir()) == shared_memory
    assert whole(*homes)
    begun = (homes[0] / "versions.json").stat().st_mtime_ns, sorted((homes[0] / "checkpoints").iterdir())
    again = study(tmp_path, "--seeds", "2", "--ray", "local", "--jobs", "1", TMPDIR=short)
    said = again.communicate()[1]
    assert again.returncode == 0, said
    assert "seed-0" not in said and "seed-1 begins" not in said  # it has a checkpoint, or is done
    assert begun == ((homes[0] / "versions.json").stat().st_mtime_ns, sorted((homes[0] / "checkpoints").iterdir()))
    for seed, home in enumerate(homes):
        assert runs.contents(home) == alone(tmp_path, seed)
    assert [path.name for path in Path(short).iterdir() if path.name.startswith("td3-")] == []
    assert FOLDER not in os.environ
