"""Trains 12 runs as a study: measures what two jobs gain, then kills its driver, and compares every folder.

    python -m bench.studies --kills 10 --rounds 2

The driver is killed with −9 at random moments, alone or together with the runs that train; after each kill the same
command continues. At the end each run must hold what the same run of an undisturbed study holds, and a run that was
finished before a kill must not have been touched after it.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.survival import fingerprint
from td3.machine import cores
from td3.studies import PlannedRun, Study, read_spec

SPEC = """
env = "Pendulum-v1"
seeds = {seeds}
steps = {steps}
warmup_steps = 500
eval_every = 500
eval_episodes = 2
checkpoint_every = 250
film = false

[settings.author]
[settings.small]
hidden = [32, 32]
[settings.slow]
tau = 0.001
"""


def command(place: Path, study: str, jobs: int) -> list[str]:
    words = ["study", str(place / "spec.toml"), "--study", str(place / study), "--jobs", str(jobs), "--quiet"]
    return [sys.executable, "-m", "td3", *words]


def trained(place: Path, study: str, jobs: int) -> float:
    """Trains a whole study, and returns the seconds it took."""
    began = time.monotonic()
    subprocess.run(command(place, study, jobs), check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def gain(place: Path, rounds: int) -> float:
    """Returns how much faster two jobs are than one: interleaved, the best of each."""
    best = {1: float("inf"), 2: float("inf")}
    for number in range(rounds):
        for jobs in best:
            best[jobs] = min(best[jobs], trained(place, f"jobs-{jobs}-{number}", jobs))
    print(f"one job {best[1]:.1f} s, two jobs {best[2]:.1f} s: {best[1] / best[2]:.2f} × as fast", flush=True)
    return best[1] / best[2]


def kill_and_continue(place: Path, kills: int, jobs: int, rng: random.Random) -> dict[str, int]:
    """Kills the driver until it was killed so often, then lets it end; counts what happened."""
    study = Study(place / "killed", read_spec(place / "spec.toml"))
    length = trained(place, "undisturbed", jobs)
    counts = {"killed": 0, "with its runs": 0, "finished": 0, "begun again": 0, "different": 0}
    finished: dict[str, list[tuple[str, int]]] = {}
    while True:
        driver = subprocess.Popen(command(place, "killed", jobs), stderr=subprocess.PIPE)
        if counts["killed"] < kills:
            with contextlib.suppress(subprocess.TimeoutExpired):
                driver.wait(rng.uniform(0.1, 1.5 * length / kills) + 1.0)  # a second until Python is there
        if counts["killed"] < kills and driver.poll() is None:
            children = children_of(driver.pid) if rng.random() < 0.5 else []
            for process in [driver.pid, *children]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            counts["killed"] += 1
            counts["with its runs"] += bool(children)
            driver.communicate()
            for name, files in finished.items():
                counts["begun again"] += files_of(study.path / name) != files
            finished.update({run.name: files_of(study.path_of(run)) for run in done(study)})
            continue
        _, words = driver.communicate()
        if driver.returncode != 0:
            raise SystemExit(words.decode())
        break
    counts["finished"] = len(done(study))
    for name, files in finished.items():
        counts["begun again"] += files_of(study.path / name) != files
    for run in study.runs:
        counts["different"] += fingerprint(study.path_of(run)) != fingerprint(place / "undisturbed" / run.name)
    return counts


def done(study: Study) -> list[PlannedRun]:
    return [run for run in study.runs if study.standing(run).done(run.config.steps)]


def files_of(run: Path) -> list[tuple[str, int]]:
    """Returns every file of a run with the moment of its last change; but for the lock, which says who had it."""
    files = [path for path in run.rglob("*") if path.is_file() and path.name != "lock"]
    return sorted((path.relative_to(run).as_posix(), path.stat().st_mtime_ns) for path in files)


def children_of(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text() if Path("/proc").is_dir() else ""
    return [int(word) for word in text.split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="of the measurement of speed; 0 for none")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which it is killed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "spec.toml").write_text(SPEC.format(seeds=chosen.seeds, steps=chosen.steps))
        if chosen.rounds:
            gain(place, chosen.rounds)
        counts = kill_and_continue(place, chosen.kills, min(2, cores()), random.Random(chosen.seed))
    print(", ".join(f"{what} {count}" for what, count in counts.items()))
    return 1 if counts["different"] or counts["begun again"] else 0


if __name__ == "__main__":
    sys.exit(main())
