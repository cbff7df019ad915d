"""Opens forged run folders with every command, and proves that nothing comes of it but an answer or a refusal.

    python -m bench.hostile                      all cases
    python -m bench.hostile --cases 500          as many, drawn with a fixed seed
    python -m bench.hostile --only NAME          one case, with what the commands said
    python -m bench.hostile --fuzz 600           coverage-guided fuzzing of everything that reads a run's files

A case is a copy of a small real run, forged with hashes that agree, and every command that opens a run is called on it,
in a process of its own. Each must end with 0, 1 or 2 and few printable lines, without a traceback; must import nothing
that the run names, start no crowd of processes, take no gigabytes and not hang; must write nothing outside of the run,
and nothing at all where it only reads.
"""

import argparse
import asyncio
import contextlib
import faulthandler
import hashlib
import importlib
import io
import json
import multiprocessing
import os
import pickle
import random
import re
import resource
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

import td3
from bench.forgeries import BEGUN, IMAGES, MODULE, OWN, PLAIN, Case, Place, cases
from td3.export.description import describe
from td3.export.observations import remembered_rows
from td3.export.policy_file import FORMATS, LARGEST_TEXT
from td3.views.cli import main as command_line
from td3.views.web import live
from td3.views.web.runs import Watched
from td3.views.web.server import Page

SMALL: dict[str, Any] = {
    "steps": 60, "warmup_steps": 30, "hidden": (8, 8), "batch_size": 8, "checkpoint_every": 20, "eval_every": 40,
    "eval_episodes": 1, "log_every": 10, "threads": 1, "buffer_size": 100, "film": False,
}  # fmt: skip
STOPPED_AT = 50  # steps: a resumed run has a little left to do
SEVERAL = 25  # events of a resumed run that a program looks at before it leaves

MOST_MEMORY = 500 * 2**20  # bytes more than before
MOST_DATA = 4 * 2**30  # bytes after which the system refuses more, to spare the machine
MOST_PROCESSES = 16
MOST_LINES, MOST_LETTERS = 40, 10_000  # of one command's words
LONGEST = 3.0  # seconds that a resumed run may go on training before it is asked to stop
STACK = "stack"  # a file with the stack of a process that hung
PATIENCE = 120.0  # seconds without news after which a command counts as hung

# What a terminal may take as an order: control characters, and those that turn the direction of writing.
UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CRASHED = re.compile(r"Traceback \(most recent|Exception ignored in|^\S+:\d+: \w*Warning: ", re.MULTILINE)

STRANGER = """
from pathlib import Path

Path(__file__).with_name("imported").touch()

import gymnasium
import numpy as np
from gymnasium import spaces


class Env(gymnasium.Env):
    observation_space = spaces.Dict(
        {"eye": spaces.Box(0, 255, (9, 9), np.uint8), "arm": spaces.Box(-9, 9, (2,)), "mode": spaces.Discrete(3)}
    )
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._see(), {}

    def step(self, action):
        self.count += 1
        return self._see(), float(action[0]), self.count == 7, False, {}

    def _see(self):
        eye = self.np_random.integers(0, 256, (9, 9), np.uint8)
        return {"eye": eye, "arm": np.full(2, self.count, np.float32), "mode": self.count % 3}
"""


class Failure(NamedTuple):
    case: str
    command: str
    kind: str
    detail: str


# ---- the runs that are forged ----


def make_bases(folder: Path) -> dict[str, Path]:
    """Real runs: stopped on the way, just begun, of an environment in Python code, and the same one trusted."""
    bases = {name: folder / name for name in (PLAIN, BEGUN, OWN, IMAGES)}
    in_child(lambda: train_bases(folder, bases))
    run, modules = folder / "run", folder / "modules.txt"
    shutil.copytree(bases[PLAIN], run)
    in_child(lambda: use_everything(run, modules))
    import_all(modules.read_text().splitlines())
    return bases


def train_bases(folder: Path, bases: dict[str, Path]) -> None:
    modules = write_module(folder / "modules")
    sys.path.insert(0, str(modules))
    plain = td3.Config(env="Pendulum-v1", **SMALL)
    train_a_while(plain, bases[PLAIN])
    with contextlib.closing(td3.train(plain, bases[BEGUN])) as events:
        next(events)
    for checkpoint in (bases[BEGUN] / "checkpoints").iterdir():
        shutil.rmtree(checkpoint)
    several = {"frame_stack": 2, "n_step": 2, "normalize_observations": True, "num_envs": 2, "encoder_channels": (4,)}
    images = td3.Config(env=f"{MODULE}:Env", **{**SMALL, **several})
    train_a_while(images, bases[IMAGES])
    shutil.copytree(bases[IMAGES], bases[OWN])


def train_a_while(config: td3.Config, folder: Path) -> None:
    with contextlib.closing(td3.train(config, folder)) as events:
        for event in events:
            if event.step >= STOPPED_AT:
                break


def write_module(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / f"{MODULE}.py").write_text(STRANGER)
    return folder


def in_child(work: Callable[[], None]) -> None:
    """Nothing of it is left in this process, which later ones are forked from: no threads, no open files."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    if child.exitcode:
        raise RuntimeError(f"The runs to forge could not be made: exit code {child.exitcode}.")


def use_everything(run: Path, reported: Path) -> None:
    """Calls every command on a real run, and tells which modules that took."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    for command in COMMANDS.values():
        command.do(run, False)
    reported.write_text("\n".join(name for name in sys.modules if name.partition(".")[0] != MODULE))


def import_all(names: Sequence[str]) -> None:
    """Imports what every case would import anew."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


# ---- the commands ----


@dataclass(frozen=True)
class Command:
    """Something that opens a run. `do` returns an exit code, or raises a TD3Error."""

    do: Callable[[Path, bool], int | None]  # the run; whether what it names is trusted
    writes: bool = False
    as_json: bool = False
    endless: bool = False  # it may train for as long as the run says, until it is asked to stop
    speaks: bool = False  # it says why it refuses


def spoken(*words: str, as_json: bool = False, writes: bool = False, trusting: bool = True) -> Command:
    """A command of the command line."""

    def do(run: Path, trust: bool) -> int:
        flags = [*(["--json"] if as_json else []), *(["--trust"] if trust and trusting else [])]
        return command_line([words[0], *words[1:], *flags, "--", str(run)])

    return Command(do, writes, as_json, endless=writes, speaks=True)


def load(run: Path, trust: bool) -> None:
    agent = td3.load(run, trust=trust)
    agent.act(agent.observation.space.sample())


def load_and_learn(run: Path, trust: bool) -> None:
    agent = td3.TD3.load(run, trust=trust)
    agent.predict(agent.agent.observation.space.sample())
    agent.learn(2)


def resume(run: Path, trust: bool) -> None:
    with contextlib.closing(td3.resume(run, steps=SMALL["steps"] + 5, trust=trust)) as events:
        for _, _ in zip(range(SEVERAL), events, strict=False):
            pass


def watch(run: Path, _trust: bool) -> None:
    asyncio.run(look_at_page(run))


def export(run: Path, trust: bool) -> None:
    """Writes every format in memory: what compiles and runs files is no part of opening a run."""
    agent = td3.load(run, trust=trust)
    assert agent._learner is not None
    given = agent._learner, agent.observation, agent.action, agent.config, agent.step
    graph = describe(*given, "policy")
    for form in FORMATS.values():
        if graph.numbers <= LARGEST_TEXT:
            form.write(graph)
    remembered_rows(agent._memory(10), 10, np.random.default_rng(0))


COMMANDS: dict[str, Command] = {
    "verify": spoken("verify", trusting=False),
    "verify --json": spoken("verify", as_json=True, trusting=False),
    "td3.load": Command(load),
    "export": Command(export),
    "evaluate": spoken("evaluate", "--episodes", "1"),
    "evaluate --json": spoken("evaluate", "--episodes", "1", "--checkpoint", "best", as_json=True),
    "compare --json": spoken("compare", as_json=True, trusting=False),
    "watch": Command(watch),
    "TD3.load": Command(load_and_learn),
    "resume": spoken("resume", writes=True),
    "td3.resume": Command(resume, writes=True),
    "resume --json": spoken("resume", as_json=True, writes=True),
}


class BadAnswer(Exception):
    """The page answered, but not as it should."""


async def look_at_page(run: Path) -> None:
    """Asks the page for everything there is about a run, among others and alone; none of it may fail."""
    problems: list[BaseException] = []
    live.PERIOD = 0.001
    look = live.Hub._look

    def looked(self: live.Hub, ids: set[str]) -> Any:
        try:
            return look(self, ids)
        except Exception as problem:  # the page suppresses it: we do not
            problems.append(problem)
            raise

    live.Hub._look = looked  # type: ignore[method-assign]
    for root in (run.parent, run):
        page, id = Page(root), Watched(root, run).id
        base = "http://127.0.0.1:8533"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(page), base_url=base) as client:

            async def ask(path: str, client: httpx.AsyncClient = client, **query: Any) -> Any:
                answer = await client.get(path, params=query)
                if answer.status_code not in (200, 400, 404):
                    raise BadAnswer(f"{path} {query} was answered with status {answer.status_code}")
                if path == "/api/film":
                    return answer.content
                found = json.loads(answer.content, parse_constant=no_constant)
                return found if answer.status_code == 200 else {}

            await ask("/api/runs")
            detail = await ask("/api/run", id=id)
            names = [*detail.get("metrics", []), "eval/mean_return", "x", "step", ""]
            for first in range(0, min(len(names), 100), 50):
                await ask("/api/series", id=id, metric=names[first : first + 50], points=100)
            await ask("/api/series", id=id, metric=names[:3], points=2, **{"from": 5, "to": 30})
            updates = (await ask("/api/updates", id=id)).get("updates", [])
            for number in ["newest", 0, *(one["update"] for one in updates[:2])]:
                await ask("/api/update", id=id, update=number)
            await ask("/api/film", id=id)
            await listen(page, id)
    if problems:
        raise problems[0]


async def listen(page: Page, id: str) -> None:
    """Reads the stream of news for a moment."""
    scope = {
        "type": "http", "method": "GET", "path": "/events", "query_string": f"id={id}".encode(), "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "http_version": "1.1", "scheme": "http",
    }  # fmt: skip
    messages: list[Any] = []
    left = asyncio.Event()

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)

    listening = asyncio.create_task(page(scope, receive, send))
    await asyncio.sleep(0.01)
    left.set()
    await listening
    if messages[0]["status"] != 200:
        raise BadAnswer(f"/events was answered with status {messages[0]['status']}")


def no_constant(word: str) -> None:
    raise BadAnswer(f"{word} is no JSON")


# ---- one case, in a process of its own ----


@dataclass
class Guard:
    """Looks on at all that the interpreter does: what is written, imported and started."""

    allowed: list[Path]
    trust: bool
    watching: bool = False
    processes: int = 0
    found: dict[str, str] = field(default_factory=dict)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        self.watching = False  # not ourselves
        try:
            self._look(event, arguments)
        finally:
            self.watching = True

    def _look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
            self._written(event, arguments[0], -1, relative=False)  # where a relative one is, nobody tells
        elif event in CHANGES:
            for path, folder in CHANGES[event]:
                self._written(event, arguments[path], arguments[folder] if folder < len(arguments) else -1)
        elif event in STARTS:
            self.processes += 1
            if self.processes > MOST_PROCESSES:
                self.found["processes"] = f"{event}: more than {MOST_PROCESSES}"
                raise OSError(11, "no more processes here")
        elif event == "import" and str(arguments[0]).partition(".")[0] == MODULE and not self.trust:
            self.found["imported"] = str(arguments[0])
        elif event in ("socket.connect", "pickle.find_class", "os.system", "webbrowser.open"):
            self.found[event] = repr(arguments)[:200]

    def _written(self, event: str, name: Any, folder: Any, relative: bool = True) -> None:
        """`folder` is an open folder that the name is relative to, or none."""
        if isinstance(name, int):
            path = opened(name)
        else:
            path = Path(os.fsdecode(name))
            if not path.is_absolute():
                if not relative:
                    return
                path = (opened(folder) if isinstance(folder, int) and folder >= 0 else Path.cwd()) / path
        path = path.parent.resolve() / path.name  # a link in its last place is changed itself
        if not any(path.is_relative_to(one) for one in self.allowed):
            self.found["written outside"] = f"{event} {str(path)!a}"


def opened(file: int) -> Path:
    """The path of an open file."""
    return Path(f"/proc/self/fd/{file}").readlink()


WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {  # the indices of the paths among an event's arguments, each with that of the folder it is relative to
    "os.mkdir": [(0, 2)],
    "os.remove": [(0, 1)],
    "os.rmdir": [(0, 1)],
    "os.rename": [(0, 2), (1, 3)],
    "os.link": [(1, 3)],
    "os.symlink": [(1, 2)],
    "os.truncate": [(0, 9)],
    "os.chmod": [(0, 2)],
    "os.chown": [(0, 3)],
    "os.utime": [(0, 3)],
}
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec")


def examine(
    case: Case, bases: dict[str, Path], home: Path, commands: dict[str, Command], news: Callable[[str], None]
) -> tuple[list[Failure], dict[str, str]]:
    """Forges the run and calls every command on it; what went wrong, and what each said. Only for a forked process."""
    place = Place(home / "runs" / "run", home / "outside")
    shutil.copytree(bases[case.base], place.run)
    (place.outside / "photos" / "2019").mkdir(parents=True)
    (place.outside / "diary.txt").write_text("mine\n")
    (place.outside / "photos" / "one.jpg").write_bytes(b"one")
    (place.outside / "photos" / "2019" / "two.jpg").write_bytes(b"two")
    modules = write_module(home / "modules")
    captured = home / "captured"
    captured.mkdir()
    case.forge(place)
    run = place.run if os.path.lexists(place.run) else next(iter(place.run.parent.iterdir()))

    trust = case.base == IMAGES
    prepare(modules)
    guard = Guard([run.resolve(), captured, Path(os.devnull), *([modules] if trust else [])], trust)
    sys.addaudithook(guard)
    before = peak()
    outside, inside = snapshot(place.outside), snapshot(run)
    failures: list[Failure] = []
    said: dict[str, str] = {}
    for name, command in commands.items():
        news(name)

        def fail(kind: str, detail: str, name: str = name) -> None:
            failures.append(Failure(case.name, name, kind, detail))

        with captured_words(captured) as words:
            code = call(command, run, trust, guard)
        stdout, stderr = words
        said[name] = f"exit code {code}\n{stdout}{stderr}"
        check_answer(command, code, stdout, stderr, case.flood, fail)
        if case.works and code != 0:
            fail("refused", f"exit code {code}, though it is a real run")
        for kind, detail in guard.found.items():
            fail(kind, detail)
        guard.found.clear()
        if (now := snapshot(place.outside)) != outside:
            fail("changed outside", difference(outside, now))
            outside = now
        if (now := snapshot(run)) != inside and not command.writes:
            fail("changed by reading", difference(inside, now))
        inside = now
        if not trust and (modules / "imported").exists():
            fail("imported", MODULE)
            (modules / "imported").unlink()
        if (grown := peak() - before) > MOST_MEMORY:
            fail("memory", f"{grown / 2**20:,.0f} MB more than before")
            before = peak()
    return failures, said


def prepare(modules: Path) -> None:
    """This process as a user's shell would start it, but for limits that spare the machine, and quick."""
    sys.path.insert(0, str(modules))
    sys.dont_write_bytecode = True
    os.chdir(modules)
    os.fsync = lambda _: None  # type: ignore[assignment]  # nobody pulls the plug here
    warnings.resetwarnings()
    warnings.simplefilter("default")  # and, as Python does by itself, none that are for programmers
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)
    data = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]
    resource.setrlimit(resource.RLIMIT_DATA, (data + MOST_DATA, data + MOST_DATA))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def call(command: Command, run: Path, trust: bool, guard: Guard) -> int | str:
    """The exit code, or the traceback of what should never have been raised."""
    guard.watching, guard.processes = True, 0
    if command.endless:  # asked to stop as a user would
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        return command.do(run, trust) or 0
    except td3.ConfigError:
        return 2
    except td3.TD3Error:
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        guard.watching = False


def check_answer(
    command: Command, code: int | str, stdout: str, stderr: str, flood: bool, fail: Callable[[str, str], None]
) -> None:
    if isinstance(code, str):
        fail("traceback", code)
    elif code not in (0, 1, 2, *([130] if command.endless else [])):
        fail("exit code", str(code))
    words = stdout + stderr
    if crashed := CRASHED.search(words):
        fail("traceback", words[crashed.start() :])
    if odd := UNPRINTABLE.search(words):
        fail("unprintable", ascii(words[max(0, odd.start() - 60) : odd.end() + 20]))
    if not flood and (words.count("\n") > MOST_LINES or len(words) > MOST_LETTERS):
        fail("flood", f"{words.count(chr(10)):,} lines, {len(words):,} letters: {words[:200]!a}")
    if not command.as_json and stdout:
        fail("stdout", stdout[:200])
    if command.as_json and (stdout or code == 0):
        try:
            json.loads(stdout, parse_constant=no_constant)
        except (ValueError, BadAnswer) as problem:
            fail("stdout", f"{problem}: {stdout[:200]!a}")
    if command.speaks and code in (1, 2) and not words:
        fail("silent", f"exit code {code} without a word")


@contextlib.contextmanager
def captured_words(folder: Path) -> Iterator[list[str]]:
    """All that is written to the two streams, by whomever, as the list's two texts afterwards."""
    words: list[str] = []
    paths = [folder / "stdout", folder / "stderr"]
    kept = [os.dup(number) for number in (1, 2)]
    streams = sys.stdout, sys.stderr
    for number, path in enumerate(paths, 1):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "strict", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
    try:
        yield words
    finally:
        sys.stdout, sys.stderr = streams
        for number, file in enumerate(kept, 1):
            os.dup2(file, number)
            os.close(file)
        words += [path.read_bytes()[: 2**22].decode(errors="surrogateescape") for path in paths]


def snapshot(folder: Path) -> dict[str, Any]:
    """Every name below, with what it is and holds, and when it was written; links are listed, not followed."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        known = path.lstat()
        content: Any = None
        if stat.S_ISLNK(known.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(known.st_mode):
            content = path.read_bytes() if known.st_size < 2**22 else known.st_size
            content = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else content
        found[str(path.relative_to(folder))] = (known.st_mode, known.st_mtime_ns, content)
    return found


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    gone, new = before.keys() - now.keys(), now.keys() - before.keys()
    changed = [name for name in before.keys() & now.keys() if before[name] != now[name]]
    reported = [("gone", gone), ("new", new), ("changed", changed)]
    return "; ".join(f"{what} {', '.join(map(ascii, sorted(names)[:6]))}" for what, names in reported if names)


def peak() -> int:
    """The most bytes this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ---- many cases ----


@dataclass
class Child:
    case: Case
    pid: int
    pipe: int
    home: Path
    heard: float
    command: str = "forging"
    answer: bytes = b""


def campaign(
    chosen: Sequence[Case],
    bases: dict[str, Path],
    place: Path,
    jobs: int,
    patience: float = PATIENCE,
    commands: dict[str, Command] | None = None,
    reported: Callable[[Failure], None] = lambda _: None,
) -> tuple[list[Failure], dict[str, dict[str, str]]]:
    """Runs these cases, a few at a time; the failures, and for each case what the commands said."""
    commands = COMMANDS if commands is None else commands
    waiting, running = list(reversed(chosen)), {}
    failures: list[Failure] = []
    said: dict[str, dict[str, str]] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        stack.callback(lambda: [kill(child) for child in running.values()])
        while waiting or running:
            while waiting and len(running) < jobs:
                child = start(waiting.pop(), bases, place, commands)
                running[child.pipe] = child
                selector.register(child.pipe, selectors.EVENT_READ)
            for key, _ in selector.select(1.0):
                child = running[key.fd]
                if data := os.read(child.pipe, 2**20):
                    child.heard = time.monotonic()
                    child.answer += data
                    continue
                selector.unregister(child.pipe)
                del running[child.pipe]
                found, words = finished(child)
                failures += found
                said[child.case.name] = words
                for one in found:
                    reported(one)
            for child in running.values():
                if time.monotonic() - child.heard > patience:
                    os.kill(child.pid, signal.SIGUSR1)  # it writes down where it is
                    time.sleep(0.5)
                    os.kill(child.pid, signal.SIGKILL)
    return failures, said


def start(case: Case, bases: dict[str, Path], place: Path, commands: dict[str, Command]) -> Child:
    """A process of its own, which tells of each command that it begins, and in the end of all failures."""
    ours, theirs = os.pipe()
    home = Path(tempfile.mkdtemp(prefix="case-", dir=place))
    pid = os.fork()
    if pid:
        os.close(theirs)
        return Child(case, pid, ours, home, time.monotonic())
    code = 1
    try:
        os.close(ours)
        os.setpgid(0, 0)  # its workers go with it
        faulthandler.register(signal.SIGUSR1, (home / STACK).open("w"))

        def tell(kind: str, data: Any) -> None:
            os.write(theirs, json.dumps([kind, data]).encode() + b"\n")

        found, said = examine(case, bases, home, commands, lambda name: tell("begins", name))
        with open(theirs, "wb", closefd=False) as file:
            file.write(json.dumps(["ends", [found, said]]).encode() + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def kill(child: Child) -> int:
    """Ends a process with all that it may have started; how it ended."""
    os.close(child.pipe)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    return os.waitpid(child.pid, 0)[1]


def finished(child: Child) -> tuple[list[Failure], dict[str, str]]:
    """What a process wrote before its end; how it ended, if that was not by itself."""
    status = kill(child)
    stack = (child.home / STACK).read_text() if (child.home / STACK).exists() else ""
    remove(child.home)
    command, result = "forging", None
    for line in child.answer.splitlines():
        kind, data = json.loads(line)
        if kind == "begins":
            command = data
        else:
            result = data
    if result is not None:
        return [Failure(*one) for one in result[0]], result[1]
    why = f"killed by {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else "ended"
    return [Failure(child.case.name, command, "hang" if stack else "crash", f"{stack}its process was {why}")], {}


# ---- is it noticed? ----


def harms() -> dict[str, Callable[[Path], Any]]:
    """What a command could do wrong, each by the kind of failure that it must be reported as."""
    beside = "../../outside/diary.txt"
    return {
        "exit code": lambda _: 3,
        "traceback": lambda _: {}["nothing"],
        "unprintable": lambda _: print("\x1b[2J", file=sys.stderr),
        "flood": lambda _: print(100 * "line\n", file=sys.stderr),
        "stdout": lambda _: print("a word"),
        "silent": lambda _: 2,
        "changed outside": lambda run: os.pwrite(os.open(run / beside, os.O_RDWR), b"yours", 0) and None,
        "written outside": lambda run: (run.parent / "new").touch(),
        "changed by reading": lambda run: (run / "new").touch(),
        "imported": lambda _: importlib.import_module(MODULE) and None,
        "memory": lambda _: len(bytearray(MOST_MEMORY + 2**27)) and None,
        "processes": lambda _: [subprocess.run(["true"]) for _ in range(MOST_PROCESSES + 1)] and None,
        "socket.connect": lambda _: socket.socket().connect_ex(("127.0.0.1", 9)) and None,
        "pickle.find_class": lambda _: pickle.loads(pickle.dumps(Path())) and None,
        "hang": lambda _: time.sleep(3_600),
        "crash": lambda _: os.abort(),
    }


def unnoticed(bases: dict[str, Path], place: Path) -> list[str]:
    """Does each kind of harm once to a real run; those that were not reported."""
    missed = []
    for kind, do in harms().items():
        command = Command(lambda run, _, do=do: do(run), speaks=True)
        case = Case(kind, PLAIN, lambda _: None)
        patience = 3.0 if kind == "hang" else PATIENCE
        found, _ = campaign([case], bases, place, 1, patience, {"planted": command})
        if kind not in {failure.kind for failure in found}:
            missed.append(kind)
    return missed


def remove(folder: Path) -> None:
    """With all that a forger has put there; links are not followed."""
    shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, metavar="N", help="as many, drawn with a fixed seed (default: all)")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="a case, or all whose name begins so; tells what was said"
    )
    parser.add_argument("--exactly", action="store_true", help="only what is named in full, and quietly")
    parser.add_argument("--list", action="store_true", help="tell the names and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at once (default: all cores)")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds until a command counts as hung")
    parser.add_argument("--fuzz", type=float, metavar="SECONDS", help="fuzz the readers of run files instead")
    chosen = parser.parse_args()
    if chosen.fuzz is not None:
        from bench.fuzzing import fuzz

        return fuzz(chosen.fuzz)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left behind
    with tempfile.TemporaryDirectory(prefix="td3-hostile-") as folder:
        place = Path(folder)
        bases = make_bases(place / "bases")
        known = list(cases(bases))
        if chosen.only:
            found = [[one for one in known if named(one, name, chosen.exactly)] for name in chosen.only]
            if [] in found:
                parser.error(f"there is no case {chosen.only[found.index([])]!r}; --list tells them all")
            known = list({case.name: case for some in found for case in some}.values())
        elif chosen.cases is not None:
            known = random.Random(0).sample(known, min(chosen.cases, len(known)))
        if chosen.list:
            print("\n".join(case.name for case in known))
            return 0
        if missed := unnoticed(bases, place):
            print(f"This campaign proves nothing: planted harm was not noticed: {', '.join(missed)}.")
            return 2
        failures, said = campaign(known, bases, place, chosen.jobs, chosen.patience, reported=tell)
        if chosen.only and not chosen.exactly:
            for name, words in said.items():
                for command, text in words.items():
                    print(f"---- {name}: {command}\n{ascii_lines(text)}")
            for failure in failures:
                print(f"---- {failure.case}: {failure.command}: {failure.kind}\n{ascii_lines(failure.detail)}")
    count, wrong = len(known), len({failure.case for failure in failures})
    kinds = Counter(failure.kind for failure in failures)
    print(
        f"{count:,} cases × {len(COMMANDS)} commands, {wrong:,} cases with failures"
        f"{': ' if kinds else ''}{', '.join(f'{kind} {many}' for kind, many in kinds.most_common())} "
        f"({time.monotonic() - began:.0f} s)"
    )
    return 1 if failures else 0


def named(case: Case, name: str, exactly: bool) -> bool:
    return case.name == name if exactly else case.name.startswith(name)


def tell(failure: Failure) -> None:
    print(f"FAILED {failure.case}: {failure.command}: {failure.kind}: {last_line(failure.detail)}", flush=True)


def last_line(text: str) -> str:
    return ascii(text.strip().splitlines()[-1][:300])[1:-1] if text.strip() else ""


def ascii_lines(text: str) -> str:
    return "\n".join(ascii(line[:2_000])[1:-1] for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
