"""The ways in which a stranger's run folder may lie: each a name and a function that forges a copy of a real run."""

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from bench.forging import (
    Node,
    described,
    file_of,
    forge,
    newest,
    nodes,
    packed,
    parent_of,
    publish,
    read_tensors,
    seal,
    twice,
    with_more,
    with_text,
    without,
)

MODULE = "stranger"  # of the environment that must not be imported unless it is trusted
PLAIN, BEGUN, OWN, IMAGES = "plain", "begun", "own", "images"  # the runs that are forged
SPARSE = 5 * 2**30  # bytes that a file says it has, and that no disk holds
TENSORS = ("networks.safetensors", "optimizers.safetensors", "playing.safetensors", "segment")


class Place(NamedTuple):
    """Where one case happens: the run, and a folder beside it that nobody may touch."""

    run: Path
    outside: Path


@dataclass(frozen=True)
class Case:
    name: str
    base: str
    forge: Callable[[Place], Any]
    flood: bool = False  # whether an answer of many lines is right
    works: bool = False  # whether every command must succeed: it is a real run


VALUES = {
    "null": "null",
    "true": "true",
    "minus-one": "-1",
    "zero": "0",
    "half": "0.5",
    "hundred-million": "100000000",
    "minus-hundred-million": "-100000000",
    "2**63": str(2**63),
    "10**400": "1" + 400 * "0",
    "10**5000": "1" + 5_000 * "0",  # longer than Python turns into a number
    "1e308": "1e308",
    "nan": "NaN",
    "nothing": '""',
    "long": json.dumps("x" * 100_000),
    "escape": '"\\u001b[2J\\u009b31m\\u202e\\u007f\\rtd3: all is well"',
    "surrogate": '"\\ud800"',
    "hex": json.dumps("0x" + 400 * "f"),
    "up": '"../../etc/passwd"',
    "absolute": '"/etc/passwd"',
    "module": f'"{MODULE}:Env"',
    "list": "[]",
    "object": "{}",
    "nested-lists": 10_000 * "[" + 10_000 * "]",
    "nested-objects": 10_000 * '{"type": ' + "0" + 10_000 * "}",
}
FEW = ("null", "minus-one", "2**63", "nan", "long", "escape", "list", "nested-lists")
LOOKED_AT: dict[tuple[str, str], tuple[str, ...]] = {  # where not every value is worth a case
    (PLAIN, "config.json"): ("env", "seed", "steps", "hidden"),
    (OWN, "state.json"): ("config", "spaces"),
    (IMAGES, "state.json"): ("spaces", "playing", "replay", "updates", "remembered", "due", "best", "judged", "means"),
    (PLAIN, "updates.jsonl"): ("update", "step", "delayed", "batch", "memory", "rows"),
}
EXTRA = {"\u001b[2J": "\u001b[2J", "__class__": "os.system", "": None, "x" * 1_000: 1}


def cases(bases: dict[str, Path]) -> Iterator[Case]:
    """All of them, in an order that is always the same; `bases` are the real runs."""
    for name in bases:
        yield Case(f"{name}/untouched", name, lambda _: None, works=name in (PLAIN, IMAGES))
    yield from in_json(bases)
    yield from in_lines(bases[PLAIN])
    yield from in_tensors(bases)
    yield from in_numbers()
    yield from in_links(bases[PLAIN])
    yield from in_sizes()
    yield from in_names()


# ---- values ----


def in_json(bases: dict[str, Path]) -> Iterator[Case]:
    """Every value of every JSON file."""
    for base, name, values in (
        (BEGUN, "config.json", VALUES),
        (PLAIN, "config.json", FEW),
        (PLAIN, "versions.json", FEW),
        (PLAIN, "manifest.json", VALUES),
        (PLAIN, "state.json", VALUES),
        (PLAIN, "lock", VALUES),
        (OWN, "state.json", ("escape", "module")),
        (IMAGES, "state.json", VALUES),
        (IMAGES, "manifest.json", FEW),
    ):
        data = json.loads(file_of(bases[base], name).read_text())
        for node, what, text in changes(data, values):
            if node[0] not in LOOKED_AT.get((base, name), node):
                continue  # the same code reads it in another case
            yield Case(f"{base}/{name}/{'.'.join(map(str, node))}/{what}", base, writing(name, text))
    for what, text in VALUES.items():
        for base, name in ((BEGUN, "config.json"), (PLAIN, "state.json"), (PLAIN, "manifest.json"), (PLAIN, "lock")):
            yield Case(f"{base}/{name}/all/{what}", base, writing(name, text.encode()))


def in_lines(base: Path) -> Iterator[Case]:
    """Every value of one line of each kind, in files that grow."""
    for name, values in (("metrics.jsonl", VALUES), ("updates.jsonl", FEW)):
        lines = (base / name).read_bytes().splitlines()
        kinds: dict[Any, int] = {}
        for place, line in enumerate(lines):
            kinds.setdefault(tuple(nodes(json.loads(line))), place)
        for number, place in enumerate(kinds.values()):
            for node, what, text in changes(json.loads(lines[place]), values):
                if node[0] not in LOOKED_AT.get((PLAIN, name), node) or (node[0] == "rows" and len(node) > 2):
                    continue
                changed = b"\n".join([*lines[:place], text, *lines[place + 1 :], b""])
                yield Case(f"{PLAIN}/{name}/{number}/{'.'.join(map(str, node))}/{what}", PLAIN, writing(name, changed))
        for what, text in VALUES.items():
            yield Case(f"{PLAIN}/{name}/all/{what}", PLAIN, writing(name, text.encode() + b"\n"))
        yield Case(f"{PLAIN}/{name}/all/one-line-without-end", PLAIN, writing(name, b"x" * (3 * 2**20)))
        yield Case(f"{PLAIN}/{name}/all/bytes", PLAIN, writing(name, bytes(range(256)) * 100))
        yield Case(f"{PLAIN}/{name}/all/newlines", PLAIN, writing(name, b"\n" * 1_000_000))
        wide = json.dumps({"step": 1, **{f"metric {number}": number for number in range(50_000)}}).encode()
        yield Case(f"{PLAIN}/{name}/all/50,000-names", PLAIN, writing(name, wide[: 2**20] + b"\n"))
    row = json.dumps({"step": 1, **{f"metric {number}": number for number in range(2_000)}}).encode() + b"\n"
    yield Case(f"{PLAIN}/metrics.jsonl/all/2,000-names-2,000-times", PLAIN, writing("metrics.jsonl", 2_000 * row))


def changes(data: Any, values: Any) -> Iterator[tuple[Node, str, bytes]]:
    """Every change to every value: another one, none, one more, or the same key twice."""
    for node in nodes(data):
        for what in values:
            yield node, what, with_text(data, node, VALUES[what])
        yield node, "removed", without(data, node)
        parent = parent_of(data, node)
        if isinstance(parent, dict):
            yield node, "twice", twice(data, node, VALUES["escape"])
            if node[-1] == next(iter(parent)):
                yield node, "more", with_more(data, node, EXTRA)


def writing(name: str, data: bytes) -> Callable[[Place], Any]:
    """Puts these bytes into a file of the run, and makes them believed."""

    def write(place: Place) -> None:
        if name == "manifest.json":
            publish(newest(place.run), data)
            return
        file_of(place.run, name).write_bytes(data)
        sealed(place)

    return write


def sealed(place: Place) -> None:
    if any((place.run / "checkpoints").iterdir()):
        seal(place.run)


# ---- tensors ----


def in_tensors(bases: dict[str, Path]) -> Iterator[Case]:
    """Files of tensors with headers that lie, and with tensors that do not fit."""
    for base in (PLAIN, IMAGES):
        for name in TENSORS:
            header, body = read_tensors(file_of(bases[base], name))
            for what, data in lies(header, body):
                yield Case(f"{base}/{name}/{what}", base, writing(name, data))
            arrays = safetensors.numpy.load_file(file_of(bases[base], name))
            for what, changed in misfits(arrays, every=name in ("segment", "playing.safetensors")):
                yield Case(f"{base}/{name}/{what}", base, writing(name, safetensors.numpy.save(changed)))


def lies(header: dict[str, Any], body: bytes) -> Iterator[tuple[str, bytes]]:
    one = sorted(header)[0]
    begin, end = header[one]["data_offsets"]

    def with_one(**lie: Any) -> bytes:
        return packed({**header, one: {**header[one], **lie}}, body)

    yield "empty", b""
    yield "seven-bytes", bytes(7)
    yield "zeros", bytes(1_000)
    yield "text", b"x" * 1_000
    for length in (0, 1, 2**31, 2**62, 2**64 - 1):
        yield f"header-of-{length}", packed(header, body, length)
    yield "header-cut", packed(header, body)[:40]
    yield "body-cut", packed(header, body)[:-1]
    yield "body-longer", packed(header, body + bytes(8))
    yield "header-of-2-MB-of-blanks", packed(json.dumps(header).encode() + b" " * 2**21, body)
    yield "header-no-object", packed([], body)
    yield "header-nested", packed(VALUES["nested-objects"].encode(), b"")
    yield "header-no-unicode", packed(b'{"\xff": 1}', b"")
    yield "header-nan", packed(b'{"a": NaN}', b"")
    yield "metadata-numbers", packed({"__metadata__": {"a": 1}, **header}, body)
    yield "metadata-escape", packed({"__metadata__": {"\u001b[2J": "\u001b[2J"}, **header}, body)
    yield "metadata-long", packed({"__metadata__": {"a": "x" * 2**20}, **header}, body)
    yield "10,000-tensors", packed({**header, **{f"t{n}": {**header[one]} for n in range(10_000)}}, body)
    yield "10,000-empty", packed({**header, **{f"t{n}": empty(len(body)) for n in range(10_000)}}, body)
    yield "name-escape", packed({**header, "\u001b[2J\u202e": empty(len(body))}, body)
    yield "name-long", packed({**header, "x" * 100_000: empty(len(body))}, body)
    yield "name-twice", packed(twice(header, (one,), json.dumps(header[one])), body)
    for offsets in ([begin, end + 4], [begin + 4, end], [end, begin], [-8, end], [0, 2**63], [0, 2**64], [begin], []):
        yield f"offsets-{offsets}", with_one(data_offsets=offsets)
    for dtype in ("F64", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "C64", "F13", "", "\u001b[2J", None):
        yield f"dtype-{dtype!a}", with_one(dtype=dtype)
    shape = header[one]["shape"]
    for lie in ([], [0], [-1], [1, *shape], [*shape, 2], [2**32, 2**32], [2**63], [0.5], "x", None, 20 * [1, 1]):
        yield f"shape-{lie}", with_one(shape=lie)
    yield "removed-keys", packed({**header, one: {}}, body)


def empty(place: int) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [0], "data_offsets": [place, place]}


def misfits(arrays: dict[str, Any], every: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "no-tensors", {}
    yield "other-tensors", {"x": np.zeros(3, np.float32)}
    for name in arrays:
        yield f"{name}/missing", {key: value for key, value in arrays.items() if key != name}
    kinds = {name if every else (array.dtype, array.ndim): name for name, array in arrays.items()}  # one of each
    for name, array in ((name, arrays[name]) for name in kinds.values()):
        others = {key: value for key, value in arrays.items() if key != name}
        for what, other in {
            "scalar": array.reshape(-1)[:1].reshape(()) if array.size else np.zeros((), array.dtype),
            "empty": array[:0] if array.ndim else np.zeros(0, array.dtype),
            "one-dimension-more": array[None],
            "one-more": np.concatenate([array, array[-1:]]) if array.ndim and len(array) else np.zeros(1, array.dtype),
            "flat": array.reshape(-1) if array.ndim != 1 else array.reshape(1, -1),
            "float64": array.astype(np.float64) if array.dtype != np.float64 else array.astype(np.float32),
            "int64": np.zeros(array.shape, np.int64) if array.dtype != np.int64 else array.astype(np.int32),
            "bool": np.ones(array.shape, np.bool_) if array.dtype != np.bool_ else array.astype(np.uint8),
            **{what: np.full_like(array, value) for what, value in extremes(array).items()},
        }.items():
            yield f"{name}/{what}", {**others, name: np.ascontiguousarray(other)}


def extremes(array: Any) -> dict[str, Any]:
    if array.dtype.kind == "f":
        return {"nan": np.nan, "infinite": np.inf, "largest": np.finfo(array.dtype).max, "minus-one": -1}
    if array.dtype.kind in "iu":
        known = np.iinfo(array.dtype)
        return {"lowest": known.min, "highest": known.max, "hundred-million": min(10**8, known.max)}
    return {"false": False, "true": True}


# ---- counters that agree with each other, and still lie ----


def in_numbers() -> Iterator[Case]:
    for what, change in {
        "many-envs": {"num_envs": 100_000},
        "many-workers": {"num_envs": 100_000, "workers": 10_000},
        "wide": {"hidden": [65_536, 65_536]},
        "deep": {"hidden": 1_000 * [8]},
        "large-batch": {"batch_size": 1_000_000, "hidden": [65_536]},
        "large-buffer": {"buffer_size": 2**62, "steps": 2**62},
        "far-goal": {"steps": 10**18},
        "many-threads": {"threads": 1_024},
        "gpu": {"device": "cuda"},
        "pixels": {"pixels": 256, "frame_stack": 16},
        "other-env": {"env": "HalfCheetah-v5"},
        "unknown-env": {"env": "\u001b[2J-v0"},
        "module-in-id": {"env": f"{MODULE}:Pendulum-v1"},
        "relative-module": {"env": "..:Env"},
        "env-arguments": {"env_args": {"render_mode": "human", "\u001b[2J": "\u001b[2J"}},
        "env-of-files": {"env": "HalfCheetah-v5", "env_args": {"xml_file": "/etc/passwd"}},
        "env-of-devices": {"env": "HalfCheetah-v5", "env_args": {"xml_file": "/dev/zero"}},
        "long-episodes": {"env_args": {"max_episode_steps": 10**18}},
        "no-episodes": {"env_args": {"max_episode_steps": -1}},
        "foreign-name": {"policy_freq": 2},
    }.items():
        yield Case(f"{PLAIN}/config/{what}", PLAIN, configured(change))
        if what != "many-envs":  # a run that has just begun is nothing but its config: it may be so large
            yield Case(f"{BEGUN}/config/{what}", BEGUN, configured(change))
    yield Case(f"{OWN}/config/wrapped-module", OWN, configured({"env": f" {MODULE}:Env"}))
    yield Case(f"{OWN}/config/dotted-module", OWN, configured({"env": f"{MODULE}.Env:Env"}))
    for what, shape in {"wide": [10**8], "flat": 4 * [100], "deep": 30 * [2], "too-deep": 100 * [1]}.items():
        for base, where in ((PLAIN, "observation"), (PLAIN, "action"), (IMAGES, "observation")):
            space = {"type": "Box", "shape": shape, "dtype": "float32", "low": -1.0, "high": 1.0}
            yield Case(f"{base}/spaces/{where}/{what}", base, spaced(where, space))
    box = {"type": "Box", "shape": [10**6], "dtype": "float64"}
    for what, space in {
        "many-boxes": {"type": "Tuple", "spaces": 1_000 * [box]},
        "many-parts": {"type": "MultiDiscrete", "nvec": 300_000 * [2], "start": 300_000 * [0]},
        "large-binary": {"type": "MultiBinary", "shape": [10**9]},
        "large-discrete": {"type": "Discrete", "n": 10**8, "start": 0},
        "larger-discrete": {"type": "Discrete", "n": 2**62, "start": 2**62},
        "object-dtype": {"type": "Box", "shape": [3], "dtype": "O"},
        "record-dtype": {"type": "Box", "shape": [3], "dtype": [["a", "f4"]]},
        "text-dtype": {"type": "Box", "shape": [3], "dtype": "U100000000"},
        "wide-dtype": {"type": "Box", "shape": [3], "dtype": "(100000000,)f4"},
        "text-bounds": {"type": "Box", "shape": [3], "dtype": "float32", "low": "nan", "high": "inf"},
        "bounds-turned": {"type": "Box", "shape": [3], "dtype": "float32", "low": 1.0, "high": -1.0},
        "no-keys": {"type": "Dict", "spaces": []},
        "odd-keys": {"type": "Dict", "spaces": [[None, box], [{}, box]]},
        "same-keys": {"type": "Dict", "spaces": [["a", box], ["a", box]]},
    }.items():
        yield Case(f"{PLAIN}/spaces/observation/{what}", PLAIN, spaced("observation", space))
    for what, change in {
        "steps-ahead": lambda state: state["playing"].update(steps=10**8),
        "updates-behind": lambda state: state.update(updates=-(10**8)),
        "updates-due": lambda state: (state.update(due=1e300), state["config"].update(update_schedule="episode")),
        "updates-nan": lambda state: state.update(due=None),
        "many-episodes": lambda state: state["playing"].update(episodes=10_000 * state["playing"]["episodes"]),
        "rows-ahead": lambda state: state.update(remembered=2**62),
    }.items():
        for base in (PLAIN, IMAGES):
            yield Case(f"{base}/state/{what}", base, lambda place, change=change: forge(place.run, change))
    far = 2**40
    yield Case(f"{PLAIN}/segments/far-ahead", PLAIN, lambda place: shifted(place, far))
    yield Case(f"{PLAIN}/segments/not-in-order", PLAIN, lambda place: resegmented(place, lambda them: them.reverse()))
    yield Case(f"{PLAIN}/segments/twice", PLAIN, lambda place: resegmented(place, lambda them: them.extend(them)))
    yield Case(f"{PLAIN}/segments/10,000-times", PLAIN, lambda place: resegmented(place, repeat_first))
    yield Case(f"{PLAIN}/segments/none", PLAIN, lambda place: resegmented(place, lambda them: them.clear()))
    yield Case(
        f"{PLAIN}/manifest/100,000-versions",
        PLAIN,
        lambda place: seal(
            place.run, lambda manifest: manifest["versions"].update({f"library {n}": n for n in range(100_000)})
        ),
    )
    yield Case(f"{PLAIN}/playing/long-tape", PLAIN, long_tape)


def configured(change: dict[str, Any]) -> Callable[[Place], Any]:
    def configure(place: Place) -> None:
        config = place.run / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
        if any((place.run / "checkpoints").iterdir()):
            forge(place.run, lambda state: state["config"].update(change))

    return configure


def spaced(where: str, space: dict[str, Any]) -> Callable[[Place], Any]:
    return lambda place: forge(place.run, lambda state: state["spaces"].update({where: space}))


def resegmented(place: Place, change: Callable[[list[Any]], Any]) -> None:
    seal(place.run, lambda manifest: change(manifest["segments"]))


def repeat_first(segments: list[Any]) -> None:
    segments.extend(10_000 * [dict(segments[0])])


def shifted(place: Place, far: int) -> None:
    """All rows of the memory numbered as if many had gone before."""

    def shift(segments: list[Any]) -> None:
        for segment in segments:
            segment.update(first=segment["first"] + far, end=segment["end"] + far)

    forge(place.run, lambda state: state.update(remembered=state["remembered"] + far))
    resegmented(place, shift)


def long_tape(place: Place) -> None:
    """An episode so long that playing it again would take a day."""
    path = newest(place.run) / "playing.safetensors"
    arrays = safetensors.numpy.load_file(path)
    arrays["actions.0"] = np.zeros((3_000_000, arrays["actions.0"].shape[1]), np.float32)
    path.write_bytes(safetensors.numpy.save(arrays))
    seal(place.run)


# ---- links and other things in the place of files ----


def in_links(base: Path) -> Iterator[Case]:
    checkpoint, segment = newest(base).name, file_of(base, "segment").name
    inside = sorted(path.name for path in newest(base).iterdir())
    for where in (
        "config.json",
        "versions.json",
        "metrics.jsonl",
        "updates.jsonl",
        "lock",
        "film.webp",
        ".film.webp",
        "checkpoints",
        "memory",
        f"checkpoints/{checkpoint}",
        *(f"checkpoints/{checkpoint}/{name}" for name in inside),
        f"memory/{segment}",
        "checkpoints/.tmp-0",
        "checkpoints/999999999-0123456789abcdef",
        "memory/.tmp-0",
        "memory/000000000-000000001-00000000.safetensors",
    ):
        short = where.replace(checkpoint, "NEWEST").replace(segment, "SEGMENT")
        for what, put in REPLACEMENTS.items():
            yield Case(
                f"{PLAIN}/{short}/{what}", PLAIN, lambda place, where=where, put=put: replaced(place, where, put)
            )
    for base_name, folder in ((PLAIN, "checkpoints"), (PLAIN, "memory"), (BEGUN, "checkpoints"), (BEGUN, "memory")):
        yield Case(
            f"{base_name}/{folder}/removed",
            base_name,
            lambda place, folder=folder: shutil.rmtree(place.run / folder),
        )
    yield Case(f"{BEGUN}/memory/link", BEGUN, lambda place: replaced(place, "memory", link_to_folder))
    yield Case(f"{BEGUN}/checkpoints/link", BEGUN, lambda place: replaced(place, "checkpoints", link_to_folder))
    yield Case(f"{PLAIN}/run/link", PLAIN, run_is_link)


def replaced(place: Place, where: str, put: Callable[[Path, Place], Any]) -> None:
    path, aside = place.run / where, aside_of(place)
    if path.exists():
        path.rename(aside)
    put(path, place)


def aside_of(place: Place) -> Path:
    """Where the thing goes that is replaced."""
    return place.outside.with_name("aside")


def link_to_file(path: Path, place: Place) -> None:
    path.symlink_to(place.outside / "diary.txt")


def link_to_folder(path: Path, place: Place) -> None:
    path.symlink_to(place.outside / "photos", target_is_directory=True)


def link_to_itself_elsewhere(path: Path, place: Place) -> None:
    """What belongs there, but outside: everything agrees, and is the run's only by a link."""
    aside = aside_of(place)
    if aside.exists():
        aside.rename(place.outside / "aside")
    path.symlink_to(place.outside / "aside")


def hard_link(path: Path, place: Place) -> None:
    aside, outside = aside_of(place), place.outside / "diary.txt"
    if aside.is_file():
        outside.unlink()
        aside.rename(outside)
    os.link(outside, path)


def pipe(path: Path, _: Place) -> None:
    os.mkfifo(path)


def listening_socket(path: Path, _: Place) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may not be long
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path.name)
    finally:
        os.chdir(here)


def folder_of_things(path: Path, place: Path) -> None:
    (path / "deep" / "er").mkdir(parents=True)
    (path / "deep" / "link").symlink_to(place.outside, target_is_directory=True)
    (path / "deep" / "file").write_text("mine")


def unreadable(path: Path, place: Place) -> None:
    aside = aside_of(place)
    if aside.exists():
        aside.rename(path)
        path.chmod(0)
    else:
        path.touch(0)


REPLACEMENTS: dict[str, Callable[[Path, Any], Any]] = {
    "link-to-file": link_to_file,
    "link-to-folder": link_to_folder,
    "link-to-itself-elsewhere": link_to_itself_elsewhere,
    "link-to-nothing": lambda path, _: path.symlink_to("nothing"),
    "link-to-new-file-outside": lambda path, place: path.symlink_to(place.outside / "new"),
    "link-to-link-to-itself": lambda path, _: path.symlink_to(path.name),
    "link-to-run": lambda path, place: path.symlink_to(place.run, target_is_directory=True),
    "link-to-zeros": lambda path, _: path.symlink_to("/dev/zero"),
    "link-to-terminal": lambda path, _: path.symlink_to("/dev/tty"),
    "link-to-memory": lambda path, _: path.symlink_to("/proc/self/mem"),
    "hard-link": hard_link,
    "pipe": pipe,
    "socket": listening_socket,
    "folder": folder_of_things,
    "empty-folder": lambda path, _: path.mkdir(),
    "empty-file": lambda path, _: path.touch(),
    "removed": lambda *_: None,
    "unreadable": unreadable,
}


def run_is_link(place: Place) -> None:
    """The run itself is a link that its owner made: it may be followed."""
    place.run.rename(place.run.with_name("real"))
    place.run.symlink_to("real", target_is_directory=True)


# ---- sizes ----


def in_sizes() -> Iterator[Case]:
    for name in ("config.json", "versions.json", "metrics.jsonl", "updates.jsonl", "lock", "film.webp"):
        yield Case(f"{PLAIN}/{name}/sparse", PLAIN, lambda place, name=name: sparse(place.run / name))
    for name in ("state.json", "manifest.json", *TENSORS):
        yield Case(f"{PLAIN}/{name}/sparse", PLAIN, lambda place, name=name: sparse(file_of(place.run, name)))
    for name in TENSORS:
        yield Case(f"{PLAIN}/{name}/sparse-and-listed", PLAIN, lambda place, name=name: sparse_file(place, name, True))
        yield Case(
            f"{PLAIN}/{name}/sparse-and-guessed", PLAIN, lambda place, name=name: sparse_file(place, name, False)
        )
    yield Case(f"{PLAIN}/metrics.jsonl/sparse-and-listed", PLAIN, sparse_record)
    yield Case(f"{PLAIN}/config.json/sparse-and-listed", PLAIN, lambda place: sparse_beside(place, "config.json"))
    yield Case(f"{PLAIN}/checkpoints/300-damaged", PLAIN, many_damaged, flood=True)
    yield Case(f"{PLAIN}/checkpoints/2,000-copies", PLAIN, many_copies, flood=True)
    yield Case(
        f"{PLAIN}/state.json/17-MB", PLAIN, lambda place: forge(place.run, lambda s: s.update(x="x" * 17 * 2**20))
    )
    yield Case(f"{PLAIN}/state.json/2,000,000-lists", PLAIN, lambda place: forge(place.run, lists))
    yield Case(f"{PLAIN}/segments/100,000", PLAIN, many_segments)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, SPARSE)


def sparse_file(place: Place, name: str, hashed: bool) -> None:
    """One tensor with so many bytes, which the manifest tells of; with the right hash, or one that was guessed."""
    path = file_of(place.run, name)
    header, _ = read_tensors(path)
    one = sorted(header)[0]
    header = {one: {"dtype": "F32", "shape": [SPARSE // 4], "data_offsets": [0, SPARSE]}}
    path.write_bytes(packed(header, b""))
    os.truncate(path, path.stat().st_size + SPARSE)
    entry = described(path, {}) if hashed else {"size": path.stat().st_size, "sha256": 64 * "0"}

    def tell(manifest: dict[str, Any]) -> None:
        known = manifest["segments"][-1] if name == "segment" else manifest["files"][name]
        known.update(entry)

    if hashed:
        seal(place.run)
    else:
        rewritten(place, tell)


def sparse_record(place: Place) -> None:
    os.truncate(place.run / "metrics.jsonl", SPARSE)
    rewritten(place, lambda manifest: manifest["record"].update(size=SPARSE))


def sparse_beside(place: Place, name: str) -> None:
    os.truncate(place.run / name, SPARSE)
    rewritten(place, lambda manifest: manifest["run"][name].update(size=SPARSE))


def rewritten(place: Place, change: Callable[[dict[str, Any]], Any]) -> None:
    """The manifest changed, and nothing else made to agree with it."""
    path = newest(place.run)
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    publish(path, json.dumps(manifest).encode())


def many_damaged(place: Place) -> None:
    for number in range(300):
        (place.run / "checkpoints" / f"{1_000 + number:09d}-{number:016x}").mkdir()


def many_copies(place: Place) -> None:
    path = newest(place.run)
    manifest = json.loads((path / "manifest.json").read_text())
    for number in range(2_000):
        data = json.dumps({**manifest, "step": 1_000 + number}).encode()
        copy = path.with_name(f"{1_000 + number:09d}-{hashlib.sha256(data).hexdigest()[:16]}")
        copy.mkdir()
        (copy / "manifest.json").write_bytes(data)


def lists(state: dict[str, Any]) -> None:
    state["x"] = 2_000_000 * [[]]


def many_segments(place: Place) -> None:
    def tell(manifest: dict[str, Any]) -> None:
        segment = manifest["segments"][-1]
        end = segment["end"]
        manifest["segments"] += [{**segment, "first": end, "end": end, "name": f"{n}"} for n in range(100_000)]

    seal(place.run, tell)


# ---- names ----


def in_names() -> Iterator[Case]:
    for what, name in {
        "escape": "run\u001b[2J\u009b\u202e\u007f",
        "lines": "run\nline\rback\ttab",
        "no-unicode": os.fsdecode(b"run\xff\xfe"),
        "dashes": "--help",
        "quotes": "run'\"$(id)`id`;",
        "long": 200 * "x",
    }.items():
        for base in (PLAIN, BEGUN, OWN):
            yield Case(f"{base}/name/{what}", base, lambda place, name=name: named(place, name))
    for what, name in {
        "arabic-digits": "٠٠٠٠٠٠٠٩٩-0123456789abcdef",
        "long": 200 * "9" + "-0123456789abcdef",
        "escape": "999999999-0123456789abcde\u001b",
        "no-unicode": os.fsdecode(b"999999999-0123456789abcd\xff\xfe"),
        "newline": "999999999-0123456789abcdef\n",
    }.items():
        yield Case(f"{PLAIN}/checkpoints/name-{what}", PLAIN, lambda place, name=name: copied(place, name))


def named(place: Place, name: str) -> None:
    place.run.rename(place.run.with_name(name))


def copied(place: Place, name: str) -> None:
    shutil.copytree(newest(place.run), place.run / "checkpoints" / name)
