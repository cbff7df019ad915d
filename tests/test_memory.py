"""The ring, its bytes, and whether there is room for it."""

import numpy as np
import pytest

from td3.errors import ConfigError
from td3.machine import RESERVE, available, check_room, human
from td3.replay import Memory, bytes_per_transition
from td3.types import Layout, Transitions


def some(first, count):
    n = np.arange(first, first + count, dtype=np.float32)
    return Transitions.in_a_row(np.stack([n, n], 1), n[:, None], n, np.stack([n, n], 1) + 1, n % 3 == 0)


@pytest.mark.parametrize("chunk", [1, 3, 4, 7, 10, 23])
def test_the_last_rows_written_are_held_whatever_the_size_of_the_chunks(chunk):
    memory = Memory(10, Layout(2), 1)
    for first in range(0, 70, chunk):
        memory.add(some(first, chunk))
    total = -(-70 // chunk) * chunk
    assert sorted(memory.columns["reward"].tolist()) == list(range(total - 10, total))
    assert memory.written == total and memory.oldest == total - 10 and len(memory) == 10
    assert memory.rows(total - 10, total)["reward"].tolist() == list(range(total - 10, total))
    assert (memory.columns["next_observation"] == memory.columns["observation"] + 1).all()


def test_a_half_cheetah_transition_takes_165_bytes():
    assert bytes_per_transition(Layout(17), 6) == 165
    assert bytes_per_transition(Layout(348), 17) == 2 * 4 * 348 + 4 * 17 + 4 + 1  # Humanoid


def test_a_row_of_the_wrong_shape_is_never_written():
    memory = Memory(4, Layout(2), 1)
    with pytest.raises(AssertionError):
        memory.add(some(0, 1)._replace(reward=np.zeros((1, 1), np.float32)))
    assert len(memory) == 0


def test_gathered_rows_are_copies():
    memory = Memory(4, Layout(2), 1)
    memory.add(some(1, 2))
    rows = memory.batch(np.array([0, 1, 1]))
    memory.columns["reward"][:] = -1
    assert rows.reward.tolist() == [1, 2, 2] and rows.terminated.tolist() == [0, 0, 0]


def machine(tmp_path, available_kb, limit=None, used="0", group="/job"):
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable: {available_kb} kB\n")
    (proc / "self" / "cgroup").write_text(f"0::{group}\n")
    (cgroup / group.lstrip("/")).mkdir(parents=True)
    if limit is not None:
        (cgroup / group.lstrip("/") / "memory.max").write_text(f"{limit}\n")
        (cgroup / group.lstrip("/") / "memory.current").write_text(f"{used}\n")
    return proc, cgroup


def test_the_smaller_of_machine_and_container_is_what_there_is(tmp_path):
    proc, cgroup = machine(tmp_path, 8_000_000, limit=2_000_000_000, used=500_000_000)
    assert available(proc, cgroup) == (1_500_000_000, "this container")


def test_a_container_without_a_limit_leaves_the_machine(tmp_path):
    assert available(*machine(tmp_path, 8_000_000, limit="max")) == (8_192_000_000, "this machine")


def test_an_old_style_container_limit_counts_too(tmp_path):
    proc, cgroup = machine(tmp_path, 8_000_000)
    (proc / "self" / "cgroup").write_text("4:memory:/box\n")
    (cgroup / "memory" / "box").mkdir(parents=True)
    (cgroup / "memory" / "box" / "memory.limit_in_bytes").write_text("3000000000")
    (cgroup / "memory" / "box" / "memory.usage_in_bytes").write_text("1000000000")
    assert available(proc, cgroup) == (2_000_000_000, "this container")


def test_a_memory_that_cannot_fit_is_refused_with_the_size_that_would(tmp_path):
    where = machine(tmp_path, 1_000_000, limit=1_000_000_000)
    fits = (1_000_000_000 - RESERVE) // 165
    assert check_room(165, fits, *where) == 165 * fits
    with pytest.raises(ConfigError, match=rf"buffer_size must be at most {fits:,} here: .*1 GB"):
        check_room(165, fits + 1, *where)


def test_sizes_are_told_in_human_units():
    assert [human(n) for n in (12, 33_000, 165e6, 2.857e9)] == ["12 bytes", "33 kB", "165 MB", "2.86 GB"]
