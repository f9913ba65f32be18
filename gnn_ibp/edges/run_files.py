"""RunFiles: runs of edges that lie in files, and stay there when the program is killed."""

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.disk_file import DiskFile
from gnn_ibp.edges.edge_runs import LoadedRuns
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.growing_file import GrowingFile
from gnn_ibp.journal import Journal
from gnn_ibp.rows import Bytes

Ids = NDArray[np.int64]

CHECKPOINT_EDGES = 1 << 26
"""So many may have to be read again after a kill."""

STAGE = "edge runs"

_RECORDS, _INDEX = "edges.runs", "edges.index"


class RunFiles:
    """A `RunPlace` in `folder`, which goes on where the journal says it stopped.

    edges.runs:  records, run after run, in each run bucket after bucket.
    edges.index: int64 (num_runs, num_buckets + 1): where each bucket of each run begins, in records.
    """

    def __init__(self, folder: Path, plan: EdgeSortPlan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._size = plan.records.record_bytes
        self._records_path, self._index_path = folder / _RECORDS, folder / _INDEX
        state = journal.get(STAGE) or {"num_edges": 0, "num_runs": 0}
        self.num_edges, self._num_runs = state["num_edges"], state["num_runs"]
        self._partitioned = np.empty(0, np.uint8)

    def __enter__(self) -> Self:
        num_records = self.num_edges * (1 + self._plan.undirected)
        self._records = GrowingFile(self._records_path, num_records * self._size)
        self._index = GrowingFile(self._index_path, self._num_runs * self._index_row_bytes)
        return self

    def __exit__(self, *_: object) -> None:
        self._partitioned = np.empty(0, np.uint8)
        self._records.close()
        self._index.close()

    def room(self, num_bytes: int) -> Bytes:
        if len(self._partitioned) < num_bytes:
            self._partitioned = np.empty(self._plan.run_records * self._size, np.uint8)
        self._room = self._partitioned[:num_bytes]
        return self._room

    def add(self, starts: Ids, num_edges: int) -> None:
        """The run is on the disk then, and noted in the journal, where enough came together."""
        starts += self._records.num_bytes // self._size
        self._records.write(self._room)
        self._index.write(starts)
        if num_edges == self._plan.num_edges or num_edges - self.num_edges >= CHECKPOINT_EDGES:
            self._records.sync()
            self._index.sync()
            self.num_edges, self._num_runs = num_edges, self._index.num_bytes // self._index_row_bytes
            self._journal.put(STAGE, num_edges=num_edges, num_runs=self._num_runs)

    def index(self) -> Ids:
        shape = (self._num_runs, self._plan.num_buckets + 1)
        return (
            np.memmap(self._index_path, np.int64, "r", 0, shape)
            if self._num_runs
            else np.empty(shape, np.int64)
        )

    def load(self, index: Ids, out: Bytes) -> LoadedRuns:
        counts = index[:, -1] - index[:, 0]
        begins = np.cumsum(counts) - counts
        file = DiskFile(self._records_path)
        try:
            for first, begin, count in zip(
                index[:, 0].tolist(), begins.tolist(), counts.tolist(), strict=True
            ):
                file.read_into(first * self._size, out[begin * self._size : (begin + count) * self._size])
        finally:
            file.close()
        return LoadedRuns(out, index - (index[:, 0] - begins)[:, None])

    def read(self, first: int, count: int) -> Bytes:
        file = DiskFile(self._records_path)
        try:
            return file.read(first * self._size, count * self._size)
        finally:
            file.close()

    @property
    def _index_row_bytes(self) -> int:
        return 8 * (self._plan.num_buckets + 1)


def remove_runs(folder: Path) -> None:
    """Deletes the runs in `folder`, which are of no use when everything is sorted."""
    for name in (_RECORDS, _INDEX):
        (folder / name).unlink(missing_ok=True)
