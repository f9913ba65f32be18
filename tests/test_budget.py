"""Byte sizes as people write them, and the memory that is free."""

from pathlib import Path

import numpy as np
import pytest

from gnn_ibp.budget import format_bytes, free_memory, parse_bytes


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("0", 0),
        (0, 0),
        (12345, 12345),
        ("12345", 12345),
        ("7 B", 7),
        ("512MiB", 512 << 20),
        ("4GiB", 4 << 30),
        (" 1.5 gib ", 3 << 29),
        ("2TiB", 2 << 40),
        ("1KiB", 1024),
        ("1kB", 1000),
        ("3GB", 3 * 10**9),
        ("auto", 500),
        ("AUTO", 500),
    ],
)
def test_sizes_are_read_as_written(text: str | int, num_bytes: int) -> None:
    assert parse_bytes(text, free=lambda: 1001) == num_bytes


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "-4GiB", "4G", "4 gigs", "1e9", "1,5GiB", "nan", "0.5", "1.5B", "٣"]
)
def test_unreadable_sizes_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"512MiB|whole number"):
        parse_bytes(text)


def test_numpys_integers_are_integers() -> None:
    assert type(parse_bytes(np.int64(5))) is int
    assert parse_bytes(np.uint32(5)) == 5


def test_negative_numbers_and_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="-5"):
        parse_bytes(-5)
    for size in (True, 1.5, None, b"4GiB"):
        with pytest.raises(TypeError, match="size in bytes"):
            parse_bytes(size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1536, "1.50 KiB"),
        (512 << 20, "512 MiB"),
        (1023.9 * 2**20, "1.00 GiB"),
        (int(10.25 * 2**30), "10.2 GiB"),
        (3 << 50, "3072 TiB"),
    ],
)
def test_sizes_are_written_in_three_digits(num_bytes: float, text: str) -> None:
    assert format_bytes(num_bytes) == text


@pytest.mark.parametrize("num_bytes", [0, 1, 1 << 10, 512 << 20, 4 << 30])
def test_round_sizes_can_be_read_again(num_bytes: int) -> None:
    assert parse_bytes(format_bytes(num_bytes)) == num_bytes


def machine(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    """A machine with 1000 KiB available, and the given cgroup files."""
    files = {
        "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 1000 kB\n",
        "proc/self/cgroup": cgroup,
        **files,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_free_memory_of_this_machine_is_some() -> None:
    assert 1 << 20 < free_memory() < 1 << 50
    assert abs(parse_bytes("auto") - free_memory() // 2) < 1 << 30


def test_without_limits_what_the_machine_has_is_free(tmp_path: Path) -> None:
    unlimited = {
        "sys/fs/cgroup/a/memory.max": "max\n",
        "sys/fs/cgroup/a/memory.current": "5000\n",
        "sys/fs/cgroup/a/memory.stat": "anon 5\n",
    }
    assert free_memory(machine(tmp_path, "0::/a\n", unlimited)) == 1000 * 1024


def test_limit_of_any_group_above_counts(tmp_path: Path) -> None:
    limits = {
        "sys/fs/cgroup/a/memory.max": "900000\n",
        "sys/fs/cgroup/a/memory.current": "500000\n",
        "sys/fs/cgroup/a/memory.stat": "anon 5\ninactive_file 20000\n",
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/memory.current": "400000\n",
        "sys/fs/cgroup/a/b/memory.stat": "inactive_file 0\n",
    }
    assert free_memory(machine(tmp_path, "0::/a/b\n", limits)) == 900_000 - 500_000 + 20_000


def test_limit_at_the_mount_counts_in_a_container(tmp_path: Path) -> None:
    limits = {
        "sys/fs/cgroup/memory.max": "300000\n",
        "sys/fs/cgroup/memory.current": "100000\n",
        "sys/fs/cgroup/memory.stat": "inactive_file 7\n",
    }
    assert free_memory(machine(tmp_path, "0::/docker/0123\n", limits)) == 200_007


def test_first_version_of_cgroups_counts(tmp_path: Path) -> None:
    limits = {
        "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "800000\n",
        "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "900000\n",
        "sys/fs/cgroup/memory/a/memory.stat": "cache 1\ntotal_inactive_file 150000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
        "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
    }
    root = machine(tmp_path, "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n", limits)
    assert free_memory(root) == 50_000
    (root / "sys/fs/cgroup/memory/a/memory.usage_in_bytes").write_text("2000000\n")
    assert free_memory(root) == 0
