"""Sizes in bytes: how people write them, and how much memory is free."""

import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Integral
from pathlib import Path

UNITS = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_BY_LOWER = {unit.lower(): num_bytes for unit, num_bytes in UNITS.items()}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)", re.IGNORECASE)


def free_memory(root: Path = Path("/")) -> int:
    """Bytes this process may still take: what the machine has available or its cgroups allow, the less.

    Memory that only caches files counts as available. `root` is where /proc and /sys/fs/cgroup lie.
    """
    limits = [_available_memory(root), *_cgroup_rooms(root)]
    return max(0, min(limits))


def used_memory(root: Path = Path("/"), process: int | str = "self") -> int:
    """Bytes that this process, or the one of that number, holds without a file behind them.

    Shared memory is included; 0 if unknown.
    """
    try:
        lines = (root / f"proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


def parse_bytes(size: str | int, free: Callable[[], int] = free_memory) -> int:
    """The bytes that `size` means: 0, "0", "512MiB", "1.5 GiB", "4GB", or "auto", half of `free()`.

    Raises TypeError for other types, ValueError for negative numbers and for what cannot be read.
    """
    if isinstance(size, bool) or not isinstance(size, Integral | str):
        raise TypeError(f"a size in bytes is wanted, got {size!r} of type {type(size).__name__}")
    if isinstance(size, Integral):  # NumPy's as well
        if size < 0:
            raise ValueError(f"a size in bytes cannot be negative, got {size}")
        return int(size)
    text = size.strip()
    if text.lower() == "auto":
        return free() // 2
    match = _SIZE.fullmatch(text)
    unit = match[2].lower() or "b" if match else ""
    if not match or unit not in _BY_LOWER:
        raise ValueError(
            f"cannot read {size!r} as a size in bytes: write a number with one of {', '.join(UNITS)}, "
            "such as 512MiB or 4GiB; or 0; or auto"
        )
    num_bytes = Decimal(match[1]) * _BY_LOWER[unit]
    if unit == "b" and num_bytes != int(num_bytes):
        raise ValueError(f"cannot read {size!r} as a size in bytes: {num_bytes} is not a whole number")
    return int(num_bytes)


def format_bytes(num_bytes: float) -> str:
    """`num_bytes` for people, in binary units and three digits: "0 B", "1.50 KiB", "512 MiB"."""
    size = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1023.5:
            return f"{size:.0f} B" if unit == "B" else f"{_three_digits(size)} {unit}"
        size /= 1024
    return f"{_three_digits(size)} TiB"


def _three_digits(size: float) -> str:
    return f"{size:.0f}" if abs(size) >= 99.95 else f"{size:.1f}" if abs(size) >= 9.995 else f"{size:.2f}"


def _available_memory(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{root / 'proc/meminfo'} does not tell MemAvailable: give a size instead of auto")


def _cgroup_rooms(root: Path) -> list[int]:
    """Bytes left under each memory limit above this process, in both versions of cgroups."""
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    rooms = []
    for line in memberships:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            mount, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            mount = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = mount / path.lstrip("/")
        # In a container the path may be the host's, which is not mounted here: the mount's root then counts.
        for folder in [group, *group.parents]:
            room = _room(folder, *names)
            if room is not None:
                rooms.append(room)
            if folder == mount:
                break
    return rooms


def _room(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> int | None:
    try:
        limit = (folder / limit_name).read_text().strip()
        used = int((folder / usage_name).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if limit == "max":
        return None
    return int(limit) - used + int(stat.get(cache_name, 0))
