"""Runs the commands in odd surroundings, and looks at exit codes, at what they say and at what is left of the run.

    python -m bench.surroundings

Signals, lost terminals, closed streams, full disks, odd locales, few descriptors, little memory, folders that are gone.
No case may end in a traceback or another exit code than the documented ones; a run that was stopped must be whole, and
when it is resumed it must end as one that nobody touched.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pty
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import td3
from bench import survival
from td3.errors import TD3Error
from td3.storage import verify

TD3 = [sys.executable, "-m", "td3"]
LONG = {"steps": 3_000, "checkpoint_every": 500, "eval_every": 1_000}  # long enough to be hit by a signal
PATIENCE = 120.0  # seconds until a command counts as hung
REFUSED = (1, 2)
FINE = (0,)
EITHER = (0, 1, 2)
NO_TERMINAL = {"TERM": None}
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass
class Surroundings:
    """Where a command is run; `codes` are the exit codes that are right for each, by its name, or for all."""

    shell: str = ""  # redirections, as a shell has them
    before: str = ""  # what the shell does first
    environ: dict[str, str | None] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)
    codes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    otherwise: tuple[int, ...] = FINE


@dataclass
class Ended:
    code: int
    out: str
    err: str


def surroundings() -> dict[str, Surroundings]:
    found = {"usual": Surroundings()}
    for closed in range(1, 8):
        words = " ".join(word for bit, word in enumerate(("<&-", ">&-", "2>&-")) if closed >> bit & 1)
        found[f"closed {words}"] = Surroundings(words)
    full = {"help": (1,), "train help": (1,), "evaluate --json": (1,)}
    found["full log"] = Surroundings("2>/dev/full")
    found["full stdout"] = Surroundings(">/dev/full", codes=full)
    found["full log and full stdout"] = Surroundings(">/dev/full 2>/dev/full", codes=full)
    found["full log and closed stdin"] = Surroundings("<&- 2>/dev/full")
    found["no HOME"] = Surroundings(environ={"HOME": None})
    found["a HOME that cannot be written"] = Surroundings(environ={"HOME": "/proc"})
    found["a HOME that is no folder"] = Surroundings(environ={"HOME": os.devnull})
    found["TERM=dumb"] = Surroundings(environ={"TERM": "dumb"})
    found["no TERM"] = Surroundings(environ=NO_TERMINAL)
    found["ASCII locale"] = Surroundings(environ=ASCII)
    found["PYTHONIOENCODING=ascii"] = Surroundings(environ={"PYTHONIOENCODING": "ascii"})
    found["PYTHONIOENCODING=latin-1"] = Surroundings(environ={"PYTHONIOENCODING": "latin-1:strict"})
    found["no TMPDIR"] = Surroundings(environ={"TMPDIR": "/nowhere/at/all"})
    found["umask 077"] = Surroundings(before="umask 077")
    found["umask 777"] = Surroundings(before="umask 777", otherwise=EITHER)
    found["an empty environment"] = Surroundings(environ=dict.fromkeys(os.environ) | {"PYTHONPATH": path_of_td3()})
    found["a working directory that is gone"] = Surroundings(
        before='mkdir "$PLACE/gone"; cd "$PLACE/gone"; rmdir "$PLACE/gone"',
        codes={"help": FINE, "train help": FINE},
        otherwise=(2,),
    )
    found["a working directory that cannot be written"] = Surroundings(before="cd /proc")
    for number in (12, 16, 24, 32, 64):
        found[f"{number} descriptors"] = Surroundings(
            limits={resource.RLIMIT_NOFILE: number}, otherwise=EITHER if number < 24 else FINE
        )
    for megabytes in (250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000):
        found[f"{megabytes} MB of addresses"] = Surroundings(
            limits={resource.RLIMIT_AS: megabytes * 10**6},
            codes={"help": FINE, "train help": FINE},
            otherwise=EITHER,
        )
    for size in (0, 500, 5_000, 50_000):
        found[f"files of at most {size} bytes"] = Surroundings(
            limits={resource.RLIMIT_FSIZE: size},
            codes={"train": EITHER, "resume": EITHER},
        )
    return found


def loads(limits: dict[int, int]) -> bool:
    """Whether PyTorch can be loaded at all under these limits; where not, its libraries may end any process."""
    words = [sys.executable, "-c", "import torch"]
    return not subprocess.run(words, capture_output=True, preexec_fn=lambda: limited(limits), check=False).returncode


def limited(limits: dict[int, int]) -> None:
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))


def path_of_td3() -> str:
    return str(Path(td3.__file__).parents[1])


def commands(place: Path) -> dict[str, list[str]]:
    """Each command, with a run of its own where it writes."""
    return {
        "help": ["--help"],
        "train help": ["train", "--help"],
        "verify": ["verify", str(place / "whole")],
        "evaluate": ["evaluate", str(place / "whole"), "--episodes", "1"],
        "evaluate --json": ["evaluate", str(place / "whole"), "--episodes", "1", "--json"],
        "check": ["check", "Pendulum-v1"],
        "train": survival.words(place / "new"),
        "resume": ["resume", str(place / "half")],
    }


def run(words: list[str], place: Path, where: Surroundings) -> Ended:
    """Runs a command there, and collects what still can be collected."""
    environ = {**os.environ, "PLACE": str(place), "PYTHONPATH": path_of_td3(), **where.environ}
    script = f"{where.before}; " if where.before else ""
    script += f'exec {shlex.join(TD3)} "$@" {where.shell}'

    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *words],
        capture_output=True,
        cwd=place,
        env={name: value for name, value in environ.items() if value is not None},
        preexec_fn=lambda: limited(where.limits),
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def problems_of(name: str, ended: Ended, allowed: tuple[int, ...]) -> list[str]:
    """What is wrong with how a command ended."""
    wrong = []
    if ended.code not in allowed:
        wrong.append(f"exit code {ended.code}, not {' or '.join(map(str, allowed))}")
    if any(word in ended.out + ended.err for word in ("Traceback", "Error in ", "Exception ignored")):
        wrong.append("a traceback")
    if ended.code == 2 and ended.err and not ended.err.startswith("td3: "):
        wrong.append("no sentence of ours")
    if name == "evaluate --json" and ended.out:
        try:
            json.loads(ended.out)
        except ValueError:
            wrong.append("an answer that is no JSON document")
    elif "help" not in name and ended.out:
        wrong.append("words on stdout")
    most = 16 if name in ("train", "resume") else 12 if ended.code == 0 else 3
    if len(ended.err.splitlines()) > most:
        wrong.append(f"more than {most} lines on stderr")
    return [f"{one}: {ended.err.strip()[-600:]}" for one in wrong]


def in_surroundings(place: Path, chosen: str, expected: str) -> Iterator[tuple[str, list[str]]]:
    """Every command in all surroundings, or those cases that have `chosen` in their name."""
    for title, where in surroundings().items():
        for name, words in commands(place).items():
            if chosen not in f"{title}: {name}":
                continue
            shutil.rmtree(place / "new", ignore_errors=True)
            shutil.rmtree(place / "half", ignore_errors=True)
            shutil.copytree(place / "stopped", place / "half")
            try:
                ended = run(words, place, where)
            except subprocess.TimeoutExpired:
                yield f"{title}: {name}", ["it did not end"]
                continue
            allowed = where.codes.get(name, where.otherwise)
            if ended.code < 0 and where.limits and not loads(where.limits):
                allowed += (ended.code,)
            wrong = problems_of(name, ended, allowed)
            trained = {"train": place / "new", "resume": place / "half"}.get(name)
            if trained and ended.code == 0:
                wrong += unlike(trained, expected)
            yield f"{title}: {name}", wrong


def unlike(run: Path, expected: str) -> list[str]:
    """What of a finished run is not as in one that nobody touched."""
    try:
        wrong = [f"the checkpoint is not whole: {why}" for why in list(verify(run).values())[-1:] if why]
        for line in (run / "metrics.jsonl").read_bytes().splitlines():
            json.loads(line)  # nobody has written into it but us
        return wrong if survival.fingerprint(run) == expected else [*wrong, "the run ended differently"]
    except (TD3Error, OSError, ValueError) as problem:
        return [f"the run cannot be read: {problem}"]


class Terminal:
    """A terminal that a command is started on, and that can be closed."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()

    def become_controlling(self) -> None:
        """In the child, which leads a session of its own."""
        fcntl.ioctl(self.theirs, termios.TIOCSCTTY, 0)

    def close(self) -> None:
        os.close(self.ours)


@dataclass
class Stopping:
    """How a running command is stopped, and what must come of it."""

    signals: tuple[int, ...] = ()
    codes: tuple[int, ...] = FINE
    ignored: tuple[int, ...] = ()
    terminal: str = ""  # "log": stderr is one; "live": both streams are; it is closed to stop the command
    shell: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


STOPPINGS = {
    "INT": Stopping((signal.SIGINT,), (130,)),
    "TERM": Stopping((signal.SIGTERM,), (143,)),
    "HUP": Stopping((signal.SIGHUP,), (129,)),
    "INT twice": Stopping((signal.SIGINT, signal.SIGINT), (130,)),
    "TERM twice": Stopping((signal.SIGTERM, signal.SIGTERM), (143,)),
    "HUP, then TERM": Stopping((signal.SIGHUP, signal.SIGTERM), (129, 143)),
    "a closed terminal under plain lines": Stopping((), (129,), terminal="log"),
    "a closed terminal under the live view": Stopping((), (129,), terminal="live"),
    "a closed terminal under nohup": Stopping((), (0,), (signal.SIGHUP,), terminal="log"),
    "a closed terminal under nohup and the live view": Stopping((), (0,), (signal.SIGHUP,), terminal="live"),
    "HUP under nohup": Stopping((signal.SIGHUP,), (0,), (signal.SIGHUP,)),
    "INT in a background job": Stopping((signal.SIGINT,), (0,), (signal.SIGINT,)),
    "INT with a full log": Stopping((signal.SIGINT,), (130,), shell="2>/dev/full"),
    "TERM with closed streams": Stopping((signal.SIGTERM,), (143,), shell="<&- >&- 2>&-"),
    "INT with worker processes": Stopping((signal.SIGINT,), (130,), settings={"num_envs": 2, "workers": 2}),
}


def stopped(place: Path, title: str, expected: Callable[[dict[str, Any]], str]) -> list[str]:
    """Stops a training in the middle, and goes on with it."""
    how, run = STOPPINGS[title], place / "signalled"
    shutil.rmtree(run, ignore_errors=True)
    settings = {**LONG, **how.settings}
    terminal = Terminal() if how.terminal else None

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in how.ignored else signal.SIG_DFL)
        if terminal:
            terminal.become_controlling()

    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec {shlex.join(TD3)} "$@" {how.shell}', "sh", *survival.words(run, **settings)],
            stdin=terminal.theirs if terminal else subprocess.DEVNULL,
            stdout=terminal.theirs if terminal and how.terminal == "live" else subprocess.DEVNULL,
            stderr=terminal.theirs if terminal else log,
            cwd=place,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            start_new_session=True,
            preexec_fn=prepare,
        )
        if terminal:
            os.close(terminal.theirs)
        wait_until_under_way(process, run, terminal)
        for number in how.signals:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        if terminal:
            terminal.close()
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return ["it did not end"]
        log.seek(0)
        ended = Ended(code, "", log.read().decode(errors="replace"))
    wrong = problems_of("train", ended, how.codes)
    if len(how.signals) < 2 and (found := verify(run)) and list(found.values())[-1]:
        wrong.append("the newest checkpoint is not whole")
    if len(how.signals) < 2 and not verify(run):
        wrong.append("nothing was saved")
    resumed = subprocess.run([*TD3, "resume", str(run), "--quiet"], capture_output=True, text=True, timeout=PATIENCE)
    if resumed.returncode:
        return [*wrong, f"it cannot be resumed: {resumed.stderr[-600:]}"]
    return wrong + unlike(run, expected(how.settings))


def wait_until_under_way(process: "subprocess.Popen[bytes]", run: Path, terminal: Terminal | None) -> None:
    """Until the first rows of metrics are there; what is shown meanwhile is read, so that nothing waits for us."""
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + PATIENCE
    if terminal:
        os.set_blocking(terminal.ours, False)
    while process.poll() is None and time.monotonic() < deadline:
        if terminal:
            with contextlib.suppress(OSError):
                os.read(terminal.ours, 65_536)
        if metrics.exists() and metrics.stat().st_size > 0:
            return
        time.sleep(0.005)


def prepared(place: Path) -> str:
    """A finished run and a stopped one, to be tried on; the fingerprint of the finished one."""
    list(td3.train(survival.config(), place / "whole"))
    events = td3.train(survival.config(), place / "stopped")
    for event in events:
        if event.step >= survival.STEPS // 2:
            break
    events.close()  # type: ignore[attr-defined]
    return survival.fingerprint(place / "whole")


def references(place: Path) -> Callable[[dict[str, Any]], str]:
    """The fingerprints of long runs that nobody touched, each made once."""
    known: dict[str, str] = {}

    def of(settings: dict[str, Any]) -> str:
        name = f"reference {sorted(settings.items())}"
        if name not in known:
            list(td3.train(survival.config(**LONG, **settings), place / name))
            known[name] = survival.fingerprint(place / name)
        return known[name]

    return of


def cases(place: Path, chosen: str) -> Iterator[tuple[str, list[str]]]:
    expected = prepared(place)
    expected_of = references(place)
    for title in STOPPINGS:
        if chosen in title:
            yield title, stopped(place, title, expected_of)
    yield from in_surroundings(place, chosen, expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORDS", help="cases with these words in their name")
    chosen = parser.parse_args()
    began, count, failures = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as place:
        for title, wrong in cases(Path(place), chosen.only):
            count, failures = count + 1, failures + bool(wrong)
            print(f"{'FAIL' if wrong else 'ok  '} {title}", *wrong, sep="\n     ", flush=True)
    print(f"{count} cases, {failures} failed ({time.monotonic() - began:.0f} s)")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
