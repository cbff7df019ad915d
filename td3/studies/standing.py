"""How far a run is, read from its folder: not begun, begun or done, and the settings it has."""

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from td3.errors import RunError
from td3.storage import disk
from td3.storage.record import last_step

LARGEST = 16 * 2**20  # bytes of a file of plain data


class Standing(NamedTuple):
    """What a run's folder says; what it does not say is None."""

    begun: bool = False
    step: int = 0  # of the newest checkpoint
    goal: int | None = None
    last: float | None = None  # mean return of the last evaluation
    best: float | None = None
    over: bool = False  # nothing is owed at that step: the run is at its goal, or stopped by itself
    first: dict[str, Any] | None = None  # the settings it was begun with
    now: dict[str, Any] | None = None  # those of the newest checkpoint

    def done(self, steps: int) -> bool:
        """Whether nothing is left to do for so many steps."""
        return self.over and (self.step >= steps or (self.goal is not None and self.goal >= steps))


class _Manifest(msgspec.Struct):
    step: int
    serial: int = 0


class _State(msgspec.Struct, rename={"last_evaluation": "judged"}):
    config: dict[str, Any]
    last_evaluation: tuple[int, float] | None = None
    best: float | None = None
    stopped: Any = None
    pending: Any = None


def standing_of(run: Path) -> Standing:
    """Reads how far a run is; files that cannot be read count as not there, and training says what is wrong."""
    folder = run / "checkpoints"
    if not folder.is_dir():
        return Standing()
    first = _read(run / "config.json", dict[str, Any])
    found = {path: _read(path / "manifest.json", _Manifest) for path in folder.iterdir() if path.name[:1].isdigit()}
    whole = {path: manifest for path, manifest in found.items() if manifest is not None}
    for path in sorted(whole, key=lambda path: (whole[path].step, whole[path].serial), reverse=True):
        state = _read(path / "state.json", _State)
        if state is not None:
            step, goal = whole[path].step, _whole(state.config.get("steps"))
            over = state.pending is None and (bool(state.stopped) or (goal is not None and step >= goal))
            last = state.last_evaluation[1] if state.last_evaluation else None
            return Standing(True, step, goal, last, state.best, over, first, state.config)
    return Standing(True, goal=_whole((first or {}).get("steps")), first=first)


def newest_step(run: Path) -> int:
    """Returns the newest step in the record of a run that trains now; it may be lost again if the run is killed."""
    return last_step(run / "metrics.jsonl")


def _read(path: Path, kind: Any) -> Any:
    with contextlib.suppress(RunError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return msgspec.json.decode(disk.read(path, LARGEST), type=kind)
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
