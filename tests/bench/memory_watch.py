"""A command whose memory is watched, and bounded where the system lets us: the pages of its files, too."""

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_group import MemoryGroup

from gnn_ibp.budget import format_bytes, used_memory

INTERVAL_S = 0.05

BESIDE_BYTES = 256 << 20
"""The least that a process is given for pages of files, and for what the system holds for it."""


@dataclass(frozen=True)
class Watched:
    """peak_bytes: the most memory without a file behind it, shared memory included. bounded: by a cgroup.

    status: 0, or that of a command that failed.
    """

    seconds: float
    peak_bytes: int
    bounded: bool
    status: int

    def __str__(self) -> str:
        where = ", files' pages within the budget" if self.bounded else ", files' pages not bounded"
        if self.status:
            return f"failed with status {self.status}"
        return f"{self.seconds:.0f} s, at most {format_bytes(self.peak_bytes)} of memory{where}"


def watch(command: Sequence[str], budget: int) -> Watched:
    """Runs `command`, which is killed where it takes more than `budget`."""
    began = time.monotonic()
    with _bounded(budget + BESIDE_BYTES) as group:
        process = subprocess.Popen(command, preexec_fn=group.enter if group else None)
        peak = 0
        while process.poll() is None:
            peak = max(peak, used_memory(process=process.pid))
            time.sleep(INTERVAL_S)
    return Watched(time.monotonic() - began, peak, group is not None, process.returncode)


@contextlib.contextmanager
def _bounded(limit: int) -> Iterator[MemoryGroup | None]:
    group = MemoryGroup.make(f"gnn-ibp-{time.monotonic_ns()}")
    if group is None:
        yield None
        return
    try:
        group.limit(limit)
        yield group
    finally:
        group.remove()
