"""Trains a study on three nodes in network namespaces, pulls one cable, kills another node, and compares the bytes.

    python -m bench.scale                 (as root, on Linux; needs the extra scale)

A bridge in a namespace of its own joins the head (10.213.0.1, where the study is started) and two nodes. Once every
run has a checkpoint, the first node's cable is pulled (`ip link set … down`), and all processes of the second node are
killed with -9. Every second `td3 verify` looks at every folder at home. In the end each run must have the networks,
optimisers, memory, counters, random streams and metrics of one trained alone.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import td3
from bench.survival import fingerprint
from td3.errors import TD3Error
from td3.storage import verify
from td3.storage.record import last_step

NAMES = ("td3-head", "td3-one", "td3-two")
BRIDGE = "td3-bridge"
ADDRESS = "10.213.0.{}"
PORT = 6379
SETTINGS: dict[str, Any] = {
    "steps": 20_000, "hidden": (32, 32), "batch_size": 32, "checkpoint_every": 500, "eval_every": 4_000, "threads": 1,
    "eval_episodes": 2, "film": False,
}  # fmt: skip
FLAGS = [
    *("--steps", "20000", "--hidden", "32,32", "--batch-size", "32", "--checkpoint-every", "500"),
    *("--eval-every", "4000", "--eval-episodes", "2", "--no-film"),
]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Three namespaces on a bridge, each with loopback and one address; all that runs in them is ended afterwards."""
    try:
        ip("netns", "add", BRIDGE)
        ip("-n", BRIDGE, "link", "add", "br0", "type", "bridge")
        ip("-n", BRIDGE, "link", "set", "br0", "up")
        for number, name in enumerate(NAMES, start=1):
            ip("netns", "add", name)
            ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{number}", "netns", BRIDGE)
            ip("-n", BRIDGE, "link", "set", f"port{number}", "master", "br0", "up")
            ip("-n", name, "address", "add", f"{ADDRESS.format(number)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in (*NAMES, BRIDGE):
            kill_all(name)
            subprocess.run(["ip", "netns", "del", name], check=False)


def processes_in(name: str) -> list[int]:
    found = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def kill_all(name: str) -> int:
    """Ends every process in a namespace of ours with -9; returns how many there were."""
    killed: set[int] = set()
    for _ in range(40):
        found = processes_in(name)
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        killed |= set(found)
        if not found:
            break
        time.sleep(0.1)
    return len(killed)


def start_node(number: int, folder: Path, env: dict[str, str]) -> None:
    """Starts Ray in a namespace, with one CPU."""
    name, own = NAMES[number - 1], ADDRESS.format(number)
    where = (
        ["--head", f"--port={PORT}", "--include-dashboard=false"]
        if number == 1
        else [f"--address={ADDRESS.format(1)}:{PORT}"]
    )
    words = [str(Path(sys.executable).parent / "ray"), "start", *where, f"--node-ip-address={own}", "--num-cpus=1"]
    words += ["--disable-usage-stats", f"--object-store-memory={80 * 2**20}"]
    words += [f"--temp-dir={folder}/ray"] if number == 1 else []
    log = folder / f"node-{number}.log"
    with log.open("w") as file:
        code = subprocess.run(["ip", "netns", "exec", name, *words], env=env, stdout=file, stderr=file, check=False)
    if code.returncode:
        raise SystemExit(f"Node {number} does not start: {log.read_text()[-2000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--patience", default="10", help="of td3 study, in seconds")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="td3-scale-", dir="/tmp"))
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    env = {
        **os.environ,
        **token,
        "RAY_TMPDIR": str(folder),
        "RAY_memory_monitor_refresh_ms": "0",
        "TMPDIR": str(folder),
    }
    study = folder / "study"
    homes = [study / f"Pendulum-v1/default/seed-{seed}" for seed in range(3)]
    with namespaces():
        for number in (1, 2, 3):
            start_node(number, folder, env)
        words = ["study", "Pendulum-v1", "--seeds", "3", "--study", str(study), *FLAGS, "--patience", chosen.patience]
        with (folder / "said").open("w") as said:
            driver = subprocess.Popen(
                [
                    "ip",
                    "netns",
                    "exec",
                    NAMES[0],
                    sys.executable,
                    "-m",
                    "td3",
                    *words,
                    "--ray",
                    f"{ADDRESS.format(1)}:{PORT}",
                ],
                env=env,
                stdout=said,
                stderr=said,
            )
        campaign = Campaign(driver, homes, folder / "said")
        campaign.until(lambda: all(checkpoints(home) for home in homes))
        ip("-n", NAMES[1], "link", "set", "eth0", "down")
        campaign.note("pulled the cable of node 2")
        campaign.note(f"killed {kill_all(NAMES[2])} processes of node 3")
        campaign.until(lambda: campaign.placements() >= 2)
        campaign.note("both runs were placed again")
        campaign.until(lambda: False)
    campaign.note(f"the study ended with code {driver.returncode}, after {campaign.placements()} placements anew")
    print((folder / "said").read_text())
    same = []
    for seed, home in enumerate(homes):
        alone = folder / f"alone-{seed}"
        list(td3.train(td3.Config(env="Pendulum-v1", seed=seed, **SETTINGS), alone))
        same.append(driver.returncode == 0 and fingerprint(home) == fingerprint(alone))
    lost = len(list(folder.glob("td3-run-*")))  # a machine that is off cannot remove anything
    print(
        f"{campaign.looks} looks at 3 folders, {campaign.damaged} damaged; same bytes: {same}; "
        f"{lost} folders on lost nodes"
    )
    good = all(same) and not campaign.damaged and driver.returncode == 0 and lost <= 2
    if good:
        shutil.rmtree(folder)
    return 0 if good else 1


class Campaign:
    """Looks at the folders at home every second while the study trains."""

    def __init__(self, driver: "subprocess.Popen[bytes]", homes: list[Path], said: Path) -> None:
        self.driver, self.homes, self.said = driver, homes, said
        self.looks, self.damaged, self.began = 0, 0, time.monotonic()

    def placements(self) -> int:
        return self.said.read_text().count("is placed again")

    def note(self, text: str) -> None:
        steps = [last_step(home / "metrics.jsonl") for home in self.homes]
        print(f"{time.monotonic() - self.began:6.1f} s  {text}; steps at home {steps}", flush=True)

    def until(self, condition: Callable[[], bool]) -> None:
        """Waits for something, or for the end of the study."""
        while self.driver.poll() is None and not condition():
            for home in self.homes:
                if home.exists():
                    try:
                        wrong = {name: why for name, why in verify(home).items() if why}
                    except TD3Error as problem:
                        wrong = {"folder": str(problem)}
                    self.damaged += bool(wrong)
                    if wrong:
                        self.note(f"{home}: {wrong}")
            self.looks += 1
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.driver.wait(1.0)


def checkpoints(home: Path) -> list[Path]:
    return [path for path in home.glob("checkpoints/*") if path.name[0].isdigit()]


if __name__ == "__main__":
    sys.exit(main())
