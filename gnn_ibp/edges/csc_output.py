"""CscOutput: the arrays that come out of a sort of edges, in files or in memory, and how far they are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.growing_file import GrowingArray
from gnn_ibp.journal import Journal

Ids = NDArray[np.int64]

CHECKPOINT_RECORDS = 1 << 26
"""So many may have to be sorted again after a kill."""

STAGE = "sorted edges"

_INT64 = np.dtype(np.int64)


class Values(Protocol):
    """An array that grows at its end."""

    num_values: int

    def append(self, values: NDArray[Any]) -> None:
        """Adds values (n,) of the array's dtype."""


class CscOutput:
    """bucket: the first that is not there. num_edges: those of the buckets before."""

    def __init__(
        self, plan: EdgeSortPlan, indptr: Values, indices: Values, perm: Values | None, bucket: int = 0
    ) -> None:
        self._plan, self._indptr, self._indices, self._perm = plan, indptr, indices, perm
        self.bucket, self.num_edges = bucket, indices.num_values
        if not indptr.num_values:
            indptr.append(np.zeros(1, np.int64))

    def append(self, indices: NDArray[Any], perm: Ids | None) -> None:
        """Adds edges, the next in order."""
        self._indices.append(indices)
        if self._perm:
            assert perm is not None
            self._perm.append(perm)

    def end_group(self, bucket: int, num_records: int, counts: Ids) -> None:
        """All edges of the buckets before `bucket` are there, which were `num_records` more.

        counts: of each of their nodes that had none; used up.
        """
        nodes_left = self._plan.num_nodes - (self._indptr.num_values - 1)
        counts = counts[: min(nodes_left, len(counts))]
        np.cumsum(counts, out=counts)
        counts += self.num_edges
        self._indptr.append(counts)
        self.num_edges = self._indices.num_values
        self.bucket = bucket


@dataclass(frozen=True)
class CscPaths:
    """indptr, indices: .npy files. perm: where each edge stood in the stream; None where nobody asks."""

    indptr: Path
    indices: Path
    perm: Path | None


class CscFiles(CscOutput):
    """Files, which go on where the journal says they stopped. A context manager that closes them."""

    def __init__(self, paths: CscPaths, plan: EdgeSortPlan, journal: Journal) -> None:
        state = journal.get(STAGE) or {"bucket": 0, "num_edges": 0}
        bucket, num_edges = state["bucket"], state["num_edges"]
        num_nodes = min(bucket << plan.shift, plan.num_nodes)
        indptr = GrowingArray(paths.indptr, _INT64, num_nodes + 1 if num_nodes else 0)
        indices = GrowingArray(paths.indices, plan.index_dtype, num_edges)
        perm = GrowingArray(paths.perm, _INT64, num_edges) if paths.perm else None
        self._journal, self._files = journal, [file for file in (indptr, indices, perm) if file]
        self._num_synced = self._num_seen = 0
        super().__init__(plan, indptr, indices, perm, bucket)

    def end_group(self, bucket: int, num_records: int, counts: Ids) -> None:
        super().end_group(bucket, num_records, counts)
        self._num_seen += num_records
        if self._num_seen - self._num_synced >= CHECKPOINT_RECORDS:
            self._num_synced = self._num_seen
            for file in self._files:
                file.sync()
            self._journal.put(STAGE, bucket=self.bucket, num_edges=self.num_edges)

    def finish(self) -> int:
        """Completes the files; returns the number of edges."""
        for file in self._files:
            file.finish()
        return self.num_edges

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()


class CscArrays(CscOutput):
    """Arrays in memory, with the permutation."""

    def __init__(self, plan: EdgeSortPlan) -> None:
        self._indptr_values = _HeldValues(_INT64, plan.num_nodes + 1)
        self._indices_values = _HeldValues(plan.index_dtype, plan.num_records)
        self._perm_values = _HeldValues(_INT64, plan.num_records)
        super().__init__(plan, self._indptr_values, self._indices_values, self._perm_values)

    @property
    def indptr(self) -> Ids:
        return self._indptr_values.all()

    @property
    def indices(self) -> NDArray[Any]:
        return self._indices_values.all()

    @property
    def perm(self) -> Ids:
        return self._perm_values.all()


class _HeldValues:
    """`Values` in memory, at most `room` of them."""

    def __init__(self, dtype: np.dtype[Any], room: int) -> None:
        self._values = np.empty(room, dtype)
        self.num_values = 0

    def append(self, values: NDArray[Any]) -> None:
        self._values[self.num_values : self.num_values + len(values)] = values
        self.num_values += len(values)

    def all(self) -> NDArray[Any]:
        """What was added; the rest of the room is given back."""
        self._values.resize(self.num_values, refcheck=False)  # nobody has a view of it before this call
        return self._values
