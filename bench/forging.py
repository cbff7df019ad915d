"""Forges run folders: files changed as a stranger could change them, with hashes that agree again.

`seal` makes the newest checkpoint's manifest agree with the files as they are now, so that a forged file is believed.
"""

import copy
import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

TEXT = "\ue000"  # stands for text that no JSON writer writes
Node = tuple[str | int, ...]  # the keys and indices that lead to a value


def newest(run: Path) -> Path:
    """Finds the folder of the newest checkpoint by its name alone."""
    return max(path for path in (run / "checkpoints").iterdir() if path.name[:1].isdigit())


def file_of(run: Path, name: str) -> Path:
    """A file of the run, of its newest checkpoint, or the newest of its memory's segments."""
    if name == "segment":
        return max((run / "memory").iterdir())
    of_run = name in ("config.json", "versions.json", "lock", "metrics.jsonl", "updates.jsonl")
    return (run if of_run else newest(run)) / name


def forge(run: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Changes the state of the newest checkpoint; returns the folder, which has a new name."""
    path = newest(run) / "state.json"
    state = json.loads(path.read_text())
    change(state)
    path.write_text(json.dumps(state))
    return seal(run)


def seal(run: Path, change: Callable[[dict[str, Any]], Any] = lambda _: None) -> Path:
    """Makes the newest manifest agree with the files it tells of, changes it, and names its folder after it."""
    path = newest(run)
    manifest = json.loads((path / "manifest.json").read_text())
    for name, known in manifest["files"].items():
        known.update(described(path / name, known))
    for name, known in manifest["run"].items():
        known.update(described(run / name, known))
    for segment in manifest["segments"]:
        segment.update(described(run / "memory" / segment["name"], segment))
    manifest["record"].update(described(run / "metrics.jsonl", manifest["record"]))
    change(manifest)
    return publish(path, json.dumps(manifest).encode())


def publish(path: Path, manifest: bytes) -> Path:
    """Writes the manifest as it is given, and names its folder after it."""
    (path / "manifest.json").write_bytes(manifest)
    try:
        step = json.loads(manifest)["step"]
        first = f"{step:09d}"
    except (ValueError, TypeError, KeyError, RecursionError):
        first = ""
    if not first.isdigit() or len(first) > 200:  # no name of a folder: the old one has to do
        first = path.name.split("-")[0]
    return path.rename(path.with_name(f"{first}-{hashlib.sha256(manifest).hexdigest()[:16]}"))


def described(path: Path, known: Mapping[str, Any]) -> dict[str, Any]:
    """The size and the hash of a file; as they were where there is no file to read."""
    if path.is_symlink() or not path.is_file():
        return {name: known[name] for name in ("size", "sha256")}
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


# ---- JSON ----


def nodes(data: Any, above: Node = ()) -> Iterator[Node]:
    """Finds every value inside; of a list only the first, for the others are of its kind."""
    if above:
        yield above
    if isinstance(data, dict):
        for key, value in data.items():
            yield from nodes(value, (*above, key))
    elif isinstance(data, list) and data:
        yield from nodes(data[0], (*above, 0))


def with_text(data: Any, node: Node, text: str) -> bytes:
    """The same JSON with this text in the place of one value."""
    data = copy.deepcopy(data)
    parent_of(data, node)[node[-1]] = TEXT
    return json.dumps(data).encode().replace(json.dumps(TEXT).encode(), text.encode())


def without(data: Any, node: Node) -> bytes:
    data = copy.deepcopy(data)
    del parent_of(data, node)[node[-1]]
    return json.dumps(data).encode()


def twice(data: Any, node: Node, second: str) -> bytes:
    """The same JSON with one key that stands there twice."""
    value = parent_of(data, node)[node[-1]]
    return with_text(data, node, f"{json.dumps(value)}, {json.dumps(node[-1])}: {second}")


def with_more(data: Any, node: Node, more: Mapping[str, Any]) -> bytes:
    """The same JSON with more keys in the object that holds this value."""
    data = copy.deepcopy(data)
    parent_of(data, node).update(more)
    return json.dumps(data).encode()


def parent_of(data: Any, node: Node) -> Any:
    for key in node[:-1]:
        data = data[key]
    return data


# ---- safetensors ----


def read_tensors(path: Path) -> tuple[dict[str, Any], bytes]:
    """Reads the header and the bytes behind it."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def packed(header: Any, body: bytes, length: int | None = None) -> bytes:
    """A file with this header, given as data or as bytes, which may tell another length than it has."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body
