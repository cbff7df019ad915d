"""Fuzzes everything that reads a run's files, guided by coverage: what is read may be refused, and nothing else.

Called by `python -m bench.hostile --fuzz SECONDS`; each target has a process of its own and an equal share of the time.
What libFuzzer makes up becomes either the bytes of a file or edits to a real one, so that it reaches deep.
"""

import contextlib
import copy
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

TARGETS = ("manifest", "state", "space", "tensors", "memory", "metrics", "series", "updates", "runs")
LONGEST = 4_096  # bytes that are made up
MOST_MEMORY = 3_000  # MB, of the whole process
SLOWEST = 60  # seconds after which one reading counts as hung


def fuzz(seconds: float) -> int:
    """Fuzzes every target, one after the other; the exit code."""
    if importlib.util.find_spec("atheris") is None:
        print("Fuzzing needs atheris, which is not installed: pip install 'td3[fuzz]'.", file=sys.stderr)
        return 2
    from bench.hostile import make_bases

    findings = 0
    with tempfile.TemporaryDirectory(prefix="td3-fuzz-") as folder:
        make_bases(Path(folder) / "bases")
        for target in TARGETS:
            found, runs = fuzz_target(target, seconds / len(TARGETS), Path(folder))
            print(f"{target}: {runs:,} executions, {len(found)} findings", flush=True)
            for one in found:
                print(f"FOUND {target}: {one}", flush=True)
            findings += len(found)
    return 1 if findings else 0


def fuzz_target(target: str, seconds: float, folder: Path) -> tuple[list[str], int]:
    """What was found, and how often it was tried."""
    place = folder / target
    (place / "corpus").mkdir(parents=True)
    command = [sys.executable, "-m", "bench.fuzzing", target, str(folder / "bases"), str(place)]
    flags = [f"-max_total_time={max(1, round(seconds))}", f"-max_len={LONGEST}", f"-rss_limit_mb={MOST_MEMORY}"]
    flags += [f"-timeout={SLOWEST}", "-seed=1", "-print_final_stats=1", f"-artifact_prefix={place}/"]
    done = subprocess.run([*command, *flags, str(place / "corpus")], capture_output=True, text=True)
    findings = (place / "findings").read_text().splitlines() if (place / "findings").exists() else []
    if done.returncode:  # out of memory, out of time or out of life
        artifacts = [f"{one.name} {one.read_bytes().hex()}" for one in place.iterdir() if "-" in one.name]
        findings += artifacts or [f"exit code {done.returncode}: {done.stderr[-2_000:]}"]
    reported = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    return findings, int(reported[1]) if reported else 0


class Edits:
    """Turns made-up bytes into a file: those bytes, or a real JSON document with a few values changed."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    def applied(self, document: Any) -> bytes:
        if self.provider.ConsumeIntInRange(0, 9) == 0:
            return bytes(self.provider.ConsumeBytes(LONGEST))
        return self.to_data(document)

    def to_data(self, document: Any) -> bytes:
        from bench.forging import nodes, parent_of, with_text, without

        data, text = json.loads(json.dumps(document)), b""
        for _ in range(self.provider.ConsumeIntInRange(1, 4)):
            known = list(nodes(data))
            node = known[self.provider.ConsumeIntInRange(0, len(known) - 1)]
            kind = self.provider.ConsumeIntInRange(0, 15)
            if kind == 0:
                text = without(data, node)
            elif kind == 1:
                text = with_text(data, node, self.provider.ConsumeUnicodeNoSurrogates(20))
            else:
                parent_of(data, node)[node[-1]] = self.value(kind, data, known)
                text = json.dumps(data).encode()
            with contextlib.suppress(ValueError, RecursionError):
                data = json.loads(text)
            if not list(nodes(data)):
                break
        return text

    def value(self, kind: int, data: Any, known: list[Any]) -> Any:
        from bench.forging import parent_of

        provider = self.provider
        if kind == 2:
            return provider.ConsumeInt(8)
        if kind == 3:
            return provider.ConsumeIntInRange(-2, 70_000)
        if kind == 4:
            return provider.ConsumeFloat()
        if kind == 5:
            return provider.ConsumeUnicode(30)
        if kind == 6:
            return 2 ** provider.ConsumeIntInRange(0, 200) * provider.PickValueInList([1, -1])
        if kind == 7:
            return provider.PickValueInList([None, True, False, [], {}, "", [[]], "nan", "inf", "1", 0.5])
        other = known[provider.ConsumeIntInRange(0, len(known) - 1)]  # the value of another place
        found = copy.deepcopy(parent_of(data, other)[other[-1]])
        return [found] if kind == 8 else 3 * [found] if kind == 9 else found


def target_of(name: str, bases: Path, place: Path) -> Callable[[Edits], Any]:
    """The function that reads what was made up. Only TD3Error may come out of it."""
    from bench.forging import file_of, newest, publish, read_tensors, seal
    from td3.agent import load
    from td3.environments import ActionMap, ObservationMap
    from td3.environments.space_data import space_from_data
    from td3.session import Session
    from td3.storage import read_metrics, verify
    from td3.views.web.live import columns
    from td3.views.web.run_index import RunIndex
    from td3.views.web.runs import Watched
    from td3.views.web.series import Record, names_in
    from td3.views.web.updates import Updates

    run = place / "run"
    shutil.copytree(bases / "plain", run)
    originals = {
        path: path.read_bytes() for path in (*run.iterdir(), *newest(run).iterdir(), *(run / "memory").iterdir())
        if path.is_file()
    }  # fmt: skip
    state = json.loads((newest(run) / "state.json").read_text())
    manifest = json.loads((newest(run) / "manifest.json").read_text())
    config = json.loads((run / "config.json").read_text())

    def lines_of(file: str) -> list[Any]:
        return [json.loads(line) for line in originals[run / file].splitlines()]

    def read_manifest(edits: Edits) -> None:
        publish(newest(run), edits.applied(manifest))
        verify(run)
        load(run)

    def read_state(edits: Edits) -> None:
        (newest(run) / "state.json").write_bytes(edits.applied(state))
        reseal()
        load(run)
        session = Session.of(run, None)
        session.close()

    def read_space(edits: Edits) -> None:
        try:
            spaces = json.loads(edits.to_data(SPACES))
        except (ValueError, RecursionError):
            return
        for one in spaces if isinstance(spaces, list) else [spaces]:
            space = space_from_data(one)
            ObservationMap(space)
            ActionMap(space)

    def read_file_of_tensors(name: str, edits: Edits) -> None:
        path = file_of(run, name)
        header, body = read_tensors_of[name]
        data = edits.applied(header)
        length = edits.provider.ConsumeInt(8) % 2**64 if edits.provider.ConsumeIntInRange(0, 9) == 0 else len(data)
        path.write_bytes(length.to_bytes(8, "little") + data + body)
        reseal()

    def read_networks(edits: Edits) -> None:
        read_file_of_tensors("networks.safetensors", edits)
        load(run)

    def read_memory(edits: Edits) -> None:
        name = edits.provider.PickValueInList(["segment", "optimizers.safetensors", "playing.safetensors"])
        try:
            read_file_of_tensors(name, edits)
            Session.of(run, None).close()
        finally:
            for path, data in originals.items():
                if path.name.endswith(".safetensors"):
                    (path if path.parent.name == "memory" else newest(run) / path.name).write_bytes(data)

    def write_lines(file: str, edits: Edits) -> Path:
        rows = lines_of(file)
        some = [edits.applied(rows[edits.provider.ConsumeIntInRange(0, len(rows) - 1)]) for _ in range(3)]
        (run / file).write_bytes(originals[run / file][:20_000] + b"\n".join(some) + b"\n")
        return run / file

    def read_record(edits: Edits) -> None:
        list(read_metrics(write_lines("metrics.jsonl", edits)))

    def read_series(edits: Edits) -> None:
        path = write_lines("metrics.jsonl", edits)
        names = names_in(path)
        Record(path).within(names[:20], edits.provider.ConsumeFloat(), edits.provider.ConsumeFloat(), 10)
        columns(list(read_metrics(path)))
        index = RunIndex(run)
        index.series(Watched(run, run).id, names[:20], 0, 1e9, 10)

    def read_updates(edits: Edits) -> None:
        updates = Updates(write_lines("updates.jsonl", edits))
        updates.one(edits.provider.ConsumeInt(4))
        json.loads(encode(updates.overview()))

    def read_row(edits: Edits) -> None:
        (run / "config.json").write_bytes(edits.applied(config))
        (run / "lock").write_bytes(edits.applied({"pid": 1, "host": "x"}))
        (newest(run) / "manifest.json").write_bytes(edits.applied(manifest))
        (newest(run) / "state.json").write_bytes(edits.applied(state))
        write_lines("metrics.jsonl", edits)
        index = RunIndex(run.parent)
        json.loads(encode(index.rows()))
        json.loads(encode(index.detail(Watched(run.parent, run).id)))

    def encode(data: Any) -> bytes:
        import msgspec

        return msgspec.json.encode(data)

    def reseal() -> None:
        (newest(run) / "manifest.json").write_text(json.dumps(manifest))
        seal(run)

    read_tensors_of = {
        name: read_tensors(file_of(run, name))
        for name in ("networks.safetensors", "optimizers.safetensors", "playing.safetensors", "segment")
    }
    return {
        "manifest": read_manifest,
        "state": read_state,
        "space": read_space,
        "tensors": read_networks,
        "memory": read_memory,
        "metrics": read_record,
        "series": read_series,
        "updates": read_updates,
        "runs": read_row,
    }[name]


BOX = {"type": "Box", "shape": [2, 2], "dtype": "float32", "low": -1.0, "high": [[1.0, 1.0], [1.0, 2.0]]}
SPACES = [
    BOX,
    {"type": "Box", "shape": [9, 9], "dtype": "uint8", "low": 0, "high": 255},
    {"type": "Discrete", "n": 3, "start": -1},
    {"type": "MultiDiscrete", "nvec": [2, 3], "start": [0, 0]},
    {"type": "MultiBinary", "shape": [3]},
    {"type": "Dict", "spaces": [["a", BOX], [0, {"type": "Tuple", "spaces": [BOX, BOX]}]]},
]


def main(name: str, bases: Path, place: Path, flags: list[str]) -> None:
    """One target, until its time is up; libFuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["td3", "gymnasium.spaces", "safetensors"]):
        read = target_of(name, bases, place)
    from td3.errors import TD3Error

    seen: set[str] = set()

    def one(data: bytes) -> None:
        try:
            read(Edits(atheris.FuzzedDataProvider(data)))
        except TD3Error:
            pass
        except Exception as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            ours = [frame for frame in frames if f"{os.sep}td3{os.sep}" in frame.filename] or frames
            where = f"{type(problem).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
            if where not in seen:
                seen.add(where)
                with (place / "findings").open("a") as file:
                    file.write(f"{where}: {str(problem)[:200]!a} from {data.hex()}\n")

    corpus = Path(flags[-1])
    for number in range(32):  # something to begin with: libFuzzer starts from nothing otherwise
        (corpus / f"{number}").write_bytes(bytes((7 * number + 13 * place) % 256 for place in range(16 + 4 * number)))
    atheris.Setup([sys.argv[0], *flags], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
