"""MemoryPlan: what of the memory budget goes to whom. Arithmetic only; all sizes are bytes.

The rules. What a run cannot do without comes first: the program, labels and splits, the index of the feature
files, the topology's `indptr`, the minibatches, the model. Then the topology's `indices`, if they fit beside
a cache of the size that was asked for; otherwise they stay on the disk. What is left is the cache's, unless
it has a size. While hot rows are chosen and the cache is filled there are no minibatches: the work this takes
has their room, and more only where theirs is too small.
"""

from dataclasses import dataclass
from typing import Any

from gnn_ibp.budget import format_bytes
from gnn_ibp.conversion.need import whole_mib
from gnn_ibp.errors import SettingsError

RUNS_DIFFER_BYTES = 16 << 20
"""By which what two runs of the program take before they begin differs: added to what is asked for."""

CACHE_ROW_EXTRA = 16
"""Of a row in a cache, beside its stored bytes and its slot: alignment, and its place in the index."""


@dataclass(frozen=True)
class Needs:
    """What a run takes.

    program: what is resident already, and room for what threads and libraries take later.
    labels: of all nodes, and the splits. index: of the feature files.
    indptr, indices: of the topology. staging: page-locked buffers of a device.
    minibatches: of all that exist at a time, and of the threads that make them. model: weights, their
    copies, and what the layers keep.
    num_rows: of the features. row_bytes: of a row as it is stored, on average.
    choosing: work while hot rows are chosen; 0 where none are. hot_id_bytes: of an entry of their list.
    filling_row: work for each row that comes into a cache.
    device_cache: of the cache in a device's memory, which is not part of the budget.
    """

    program: int
    labels: int
    index: int
    indptr: int
    indices: int
    staging: int
    minibatches: int
    model: int
    num_rows: int
    row_bytes: int
    choosing: int
    hot_id_bytes: int
    filling_row: int
    device_cache: int = 0

    @property
    def always(self) -> int:
        return self.program + self.labels + self.index + self.indptr + self.staging

    @property
    def training(self) -> int:
        return self.minibatches + self.model

    @property
    def largest_cache(self) -> int:
        """Of a cache with all rows."""
        return self.num_rows * (self.row_bytes + CACHE_ROW_EXTRA + 4) + 4096

    def rows_in(self, cache: int) -> int:
        """How many rows fit into a cache of this size, about, and into that of the device."""
        row_bytes = max(1, self.row_bytes + CACHE_ROW_EXTRA // 2)
        rooms = (max(0, size - 4 * self.num_rows) // row_bytes for size in (cache, self.device_cache))
        return min(self.num_rows, sum(rooms))

    @property
    def hot_list(self) -> int:
        """Of the list of hot rows while a cache is filled, and a mark for each row."""
        return (self.hot_id_bytes + 1) * self.num_rows

    def starting(self, cache: int) -> int:
        """Work before the first minibatch, and the cache."""
        if not cache and not self.device_cache:
            return 0
        return max(self.choosing, cache + self.hot_list + self.filling_row * self.rows_in(cache))

    def total(self, topology: int, cache: int) -> int:
        """All, with so much of the indices in memory, and a cache of this size."""
        return self.always + topology + max(self.training + cache, self.starting(cache))


@dataclass(frozen=True)
class MemoryPlan:
    """budget: of the whole process. parts: what gets how much; they sum to the budget at most.

    cache: of the cache on the CPU, of host rows for a device. mapped: whether the topology's indices stay on
    the disk. hot_rows: how many rows may be asked into the cache, so that the work of filling it fits.
    """

    budget: int
    parts: dict[str, int]
    cache: int
    mapped: bool
    hot_rows: int

    @property
    def left(self) -> int:
        return self.budget - sum(self.parts.values())

    def as_dict(self) -> dict[str, Any]:
        """As it stands in a report."""
        topology = "mapped" if self.mapped else "memory"
        return {"budget": self.budget, **self.parts, "left": self.left, "topology_in": topology}


def plan_memory(
    needs: Needs, budget: int, cache: int | None, cache_name: str = "cache", mapped: bool | None = None
) -> MemoryPlan:
    """Divides the budget as this file's head says.

    cache: the size that was asked for; None: what is left, at most what all rows take.
    mapped: whether the indices stay on the disk; None: where they do not fit.
    Raises SettingsError naming the smallest budget that would do.
    """
    asked = cache or 0
    smallest = needs.total(0 if mapped is not False else needs.indices, asked)
    if smallest > budget:
        raise SettingsError(too_small(needs, budget, smallest, asked, cache_name))
    wanted = needs.total(needs.indices, asked)
    if cache is None and needs.choosing:
        wanted = max(wanted, needs.always + needs.indices + needs.choosing)
    mapped = wanted > budget if mapped is None else mapped
    room = budget - needs.always - (0 if mapped else needs.indices)
    size = _largest(needs, room) if cache is None else cache
    work = max(0, needs.starting(size) - size - needs.training)
    parts = {
        "program": needs.program,
        "topology": needs.indptr + (0 if mapped else needs.indices),
        "labels": needs.labels,
        "index": needs.index,
        "staging": needs.staging,
        "minibatches": needs.minibatches,
        "model": needs.model,
        cache_name: size,
        "start": work,
    }
    filling = room - size - needs.hot_list
    hot_rows = min(needs.num_rows, max(0, filling) // max(1, needs.filling_row))
    hot_rows = hot_rows if size or needs.device_cache else 0
    return MemoryPlan(budget, parts, size, mapped, hot_rows)


def _largest(needs: Needs, room: int) -> int:
    """The largest cache for which there is room, 0 where it would hold no row."""
    if not needs.choosing or needs.choosing > room:
        return 0
    most = min(room - needs.training, needs.largest_cache)
    low, high = 0, max(0, most)  # `low` fits
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if needs.starting(middle) <= room else (low, middle - 1)
    return low if needs.rows_in(low) else 0


def too_small(needs: Needs, budget: int, smallest: int, cache: int, cache_name: str) -> str:
    """What is said where a budget does not suffice, and which would."""
    takes = {"the program takes": needs.program, "minibatches": needs.minibatches, "the model": needs.model}
    words = ", ".join(f"{name} {format_bytes(size)}" for name, size in takes.items())
    asked = f", --{cache_name}-bytes {format_bytes(cache)}" if cache else ""
    return (
        f"--memory-budget is {format_bytes(budget)}, training needs "
        f"{whole_mib(smallest + RUNS_DIFFER_BYTES)}: {words}{asked}; give it that, or lower --batch-size, "
        f"--fanout, --hidden or --prefetch{f', or --{cache_name}-bytes' if cache else ''}"
    )
