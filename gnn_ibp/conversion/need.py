"""What a conversion needs: memory, and how its edges are sorted within it; room on the disk."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from gnn_ibp.budget import format_bytes
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.errors import SettingsError
from gnn_ibp.fit_sample import fit_sample_bytes

ROWS_BYTES = 64 << 20
"""For blocks of rows and labels on their way, and what they are encoded into."""

FIT_FACTOR = 4
"""The fit takes so many times the bytes of its sample."""


@dataclass(frozen=True)
class ConversionNeed:
    """memory_bytes: what the conversion may take beside what the process holds when it starts."""

    parts: DatasetParts
    settings: ConversionSettings
    memory_bytes: int

    def sort_plan(self, num_nodes: int) -> EdgeSortPlan:
        """How the edges are sorted: none of those that come in a graph."""
        settings, parts = self.settings, self.parts
        return EdgeSortPlan(
            num_nodes,
            0 if parts.graph is not None else parts.num_edges,
            settings.undirected,
            settings.dedup or settings.undirected,
            bool(parts.edge_features or parts.edge_arrays),
            self.memory_bytes,
        )

    @property
    def smallest_memory_bytes(self) -> int:
        """The least `memory_bytes` that will do."""
        streams = (*self.parts.features.values(), *self.parts.edge_features.values())
        sample = max((fit_sample_bytes(rows.row_type.row_bytes) for rows in streams), default=0)
        edges = (
            self.sort_plan(self.parts.num_nodes or 0).smallest_memory_bytes if self.parts.graph is None else 0
        )
        return max(ROWS_BYTES + FIT_FACTOR * sample, edges)

    def check_memory(self) -> None:
        """SettingsError naming the least that will do where `memory_bytes` is less."""
        if self.memory_bytes < self.smallest_memory_bytes:
            raise SettingsError(
                f"the conversion needs {whole_mib(self.smallest_memory_bytes)} of memory beside what is "
                f"taken already, {format_bytes(self.memory_bytes)} are left to it; give it more"
            )

    @property
    def disk_bytes(self) -> int | None:
        """The most disk that is taken at a time; None where a number of rows is not known."""
        parts = self.parts
        num_nodes = parts.num_nodes or 0
        num_edges = parts.num_edges * (1 if parts.graph else 1 + self.settings.undirected)
        plan = self.sort_plan(num_nodes)
        topology = 8 * num_nodes + num_edges * plan.index_dtype.itemsize
        if parts.edge_features or parts.edge_arrays:
            topology += 8 * num_edges
        rest = sum(8 * len(ids) for ids in parts.splits.values()) + 8 * num_nodes * (parts.labels is not None)
        rest += sum(array.nbytes for array in (*parts.arrays.values(), *parts.edge_arrays.values()))
        for stream in (*parts.features.values(), *parts.edge_features.values()):
            if stream.num_rows is None:
                return None
            rest += stream.num_rows * (stream.row_type.row_bytes + 8)
        return topology + max(rest, plan.file_bytes)  # runs are gone before features come

    def check_disk(self, folder: Path, already_bytes: int) -> str:
        """The room that is needed and free, in words. SettingsError where it is not free.

        folder: where the data set comes to lie. already_bytes: what an earlier conversion left there for it.
        """
        existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        free = shutil.disk_usage(existing).free
        needed = self.disk_bytes
        if needed is None:
            return f"an unknown amount of disk needed, {format_bytes(free)} free"
        if needed > free + already_bytes:
            raise SettingsError(
                f"converting {self.parts.name} needs at most {format_bytes(needed)} of disk, "
                f"{format_bytes(free)} are free in {folder}; free some space, or choose another folder"
            )
        return f"at most {format_bytes(needed)} of disk needed, {format_bytes(free)} free"


def whole_mib(num_bytes: int) -> str:
    """`num_bytes` in MiB, rounded up: what is asked for then suffices."""
    return f"{-(-num_bytes // (1 << 20))}MiB"
