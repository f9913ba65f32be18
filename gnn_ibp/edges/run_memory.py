"""RunMemory: runs of edges that lie in memory."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.edges.edge_runs import LoadedRuns
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.rows import Bytes

Ids = NDArray[np.int64]


class RunMemory:
    """A `RunPlace` of the room that all runs take. It remembers nothing of an interrupted sort."""

    num_edges = 0

    def __init__(self, plan: EdgeSortPlan) -> None:
        self._size = plan.records.record_bytes
        self._records = np.empty(plan.num_records * self._size, np.uint8)
        self._index = np.empty((0, plan.num_buckets + 1), np.int64)
        self._num_records = 0

    def room(self, num_bytes: int) -> Bytes:
        begin = self._num_records * self._size
        return self._records[begin : begin + num_bytes]

    def add(self, starts: Ids, num_edges: int) -> None:
        self._index = np.vstack([self._index, starts + self._num_records])
        self._num_records += int(starts[-1])

    def index(self) -> Ids:
        return self._index

    def load(self, index: Ids, out: Bytes) -> LoadedRuns:
        return LoadedRuns(self._records, index)

    def read(self, first: int, count: int) -> Bytes:
        return self._records[first * self._size : (first + count) * self._size]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...
