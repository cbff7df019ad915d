"""What this machine has: cores, and room for the memory's bytes in its RAM and within the container's limit."""

import os
from pathlib import Path

from td3.errors import ConfigError
from td3.wording import counted

RESERVE = 512 * 2**20  # networks, torch and the environments need some too
CGROUP = Path("/sys/fs/cgroup")


def check_room(bytes_each: int, rows: int, proc: Path = Path("/proc"), cgroup: Path = CGROUP) -> int:
    """The bytes `rows` transitions take; refused with both numbers where they cannot fit."""
    needed = bytes_each * rows
    room, whose = available(proc, cgroup)
    if room is not None and needed > room - RESERVE:
        fits = max(0, (room - RESERVE) // bytes_each)
        raise ConfigError(
            f"buffer_size must be at most {fits:,} here: {counted(rows, 'transition')} of {bytes_each:,} bytes take "
            f"{human(needed)}, and {whose} has room for {human(room)}."
        )
    return needed


def available(proc: Path = Path("/proc"), cgroup: Path = CGROUP) -> tuple[int | None, str]:
    """The smaller of what the machine and the container still have, and which of them it is."""
    found = [(left, "this machine") for left in [_machine(proc)] if left is not None]
    found += [(left, "this container") for left in [_container(proc, cgroup)] if left is not None]
    return min(found) if found else (None, "")


def _machine(proc: Path) -> int | None:
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:  # not Linux: all there is, in want of what is left
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _container(proc: Path, cgroup: Path) -> int | None:
    """What cgroup v2 or v1 still allows, in this group or any above it."""
    left: list[int] = []
    for folder in _groups(proc, cgroup):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            try:
                maximum, current = (folder / limit).read_text().strip(), (folder / used).read_text().strip()
                if maximum != "max" and int(maximum) < 2**60:  # v1 writes "no limit" as a huge number
                    left.append(int(maximum) - int(current))
            except (OSError, ValueError):
                continue
    return min(left) if left else None


def _groups(proc: Path, cgroup: Path) -> list[Path]:
    """This process's own cgroup folders, up to the root."""
    folders = [cgroup, cgroup / "memory"]
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory") or "memory" in controllers.split(","):
            here = (cgroup / "memory" if controllers else cgroup) / path.lstrip("/")
            while here != here.parent and here.is_relative_to(cgroup):
                folders.append(here)
                here = here.parent
    return folders


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def human(size: float) -> str:
    """1_234_567 → '1.2 MB'."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
