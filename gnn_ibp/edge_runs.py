"""EdgeRuns: edges in a file, in runs that are each partitioned by ranges of destinations."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.disk_file import DiskFile
from gnn_ibp.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edge_stream import EdgeStream, check_block, check_end
from gnn_ibp.errors import FormatError
from gnn_ibp.growing_file import GrowingFile
from gnn_ibp.journal import Journal
from gnn_ibp.progress import progress
from gnn_ibp.rows import Bytes
from gnn_ibp.stages import Stages

Ids = NDArray[np.int64]

CHECKPOINT_EDGES = 1 << 26
"""So many may have to be read again after a kill."""

STAGE = "edge runs"

_RECORDS, _INDEX = "edges.runs", "edges.index"
_VECTORS = 1024  # pieces that one preadv takes


class EdgeRuns:
    """The runs in `folder`. `write` makes them, or goes on where the journal says it stopped.

    edges.runs:  records, run after run, in each run bucket after bucket.
    edges.index: int64 (num_runs, num_buckets + 1): where each bucket of each run begins, in records.
    """

    def __init__(self, folder: Path, plan: EdgeSortPlan, journal: Journal) -> None:
        self._plan = plan
        self._records_path, self._index_path = folder / _RECORDS, folder / _INDEX
        self._journal = journal

    def write(self, edges: EdgeStream, stages: Stages) -> None:
        """Reads all edges once. IndexError names the first that has an end outside [0, num_nodes)."""
        state = self._journal.get(STAGE) or {"num_edges": 0, "num_runs": 0}
        with (
            stages.measure("partition edges") as stage,
            _RunWriter(self, state["num_edges"], state["num_runs"]) as writer,
        ):
            if state["num_edges"] < edges.num_edges or not state["num_runs"]:
                writer.write(edges)
                stage.num_edges = edges.num_edges - state["num_edges"]
                stage.num_bytes = 2 * edges.dtype.itemsize * stage.num_edges

    def totals(self) -> Ids:
        """int64 (num_buckets,): the records of each bucket."""
        totals = np.zeros(self._plan.num_buckets, np.int64)
        for starts in self._index():
            totals += np.diff(starts)
        return totals

    def load(self, first: int, last: int, out: Bytes) -> Ids:
        """The records of the buckets `first` to `last - 1`, bucket by bucket; returns where each begins."""
        size = self._plan.records.record_bytes
        index = self._index()[:, first : last + 1]
        counts = np.diff(index, axis=1)
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
        ends = size * (starts[:-1] + np.cumsum(counts, axis=0))
        view = out.data
        file = DiskFile(self._records_path)
        try:
            for run_ends, run_counts, begin in zip(ends, counts, index[:, 0].tolist(), strict=True):
                pairs = zip(run_ends.tolist(), (size * run_counts).tolist(), strict=True)
                _read_scattered(file, [view[end - n : end] for end, n in pairs if n], size * begin)
        finally:
            file.close()
        return starts

    def pieces(self, bucket: int, max_records: int) -> Iterator[Bytes]:
        """The records of one bucket in the order of the edges, at most `max_records` at a time."""
        size = self._plan.records.record_bytes
        file = DiskFile(self._records_path)
        try:
            for begin, end in self._index()[:, bucket : bucket + 2].tolist():
                for at in range(begin, end, max_records):
                    yield file.read(size * at, size * min(max_records, end - at))
        finally:
            file.close()

    def _index(self) -> Ids:
        columns = self._plan.num_buckets + 1
        num_runs = self._index_path.stat().st_size // (8 * columns)
        return np.memmap(self._index_path, np.int64, "r", 0, (num_runs, columns))


def remove_runs(folder: Path) -> None:
    """Deletes the runs in `folder`, which are of no use when everything is sorted."""
    for name in (_RECORDS, _INDEX):
        (folder / name).unlink(missing_ok=True)


class _RunWriter:
    """Fills one buffer with records while those in another are partitioned and written to the file."""

    def __init__(self, runs: EdgeRuns, num_edges: int, num_runs: int) -> None:
        self._plan = plan = runs._plan
        self._journal = runs._journal
        self._size = plan.records.record_bytes
        self._num_edges = self._checkpoint = num_edges
        self._filled = 0
        num_records = num_edges * (1 + plan.undirected)
        self._records = GrowingFile(runs._records_path, num_records * self._size)
        self._index = GrowingFile(runs._index_path, num_runs * 8 * (plan.num_buckets + 1))
        self._thread = ThreadPoolExecutor(1, "write-edges")
        self._writing: Future[None] | None = None

    def write(self, edges: EdgeStream) -> None:
        num_bytes = self._plan.run_records * self._size
        self._filling, self._full, self._partitioned = (np.empty(num_bytes, np.uint8) for _ in range(3))
        per_edge = 1 + self._plan.undirected
        with progress("partitioning edges", edges.num_edges, "edges") as bar:
            bar.update(self._num_edges)
            for src, dst in edges.blocks(self._num_edges):
                check_block(edges, self._num_edges, src, dst)
                at = 0
                while at < len(src):
                    room = (self._plan.run_records - self._filled) // per_edge
                    count = min(room, len(src) - at)
                    self._pack(src[at : at + count], dst[at : at + count])
                    at += count
                    if count == room and self._num_edges < edges.num_edges:  # the last: see the end first
                        self._flush()
                bar.update(len(src))
        check_end(edges, self._num_edges)
        self._checkpoint = -CHECKPOINT_EDGES
        self._flush()
        self._wait()

    def _pack(self, src: NDArray[np.signedinteger], dst: NDArray[np.signedinteger]) -> None:
        plan, out = self._plan, self._filling[self._filled * self._size :]
        plan.records.pack(src, dst, plan.num_nodes, self._num_edges, plan.undirected, out)
        self._num_edges += len(src)
        self._filled += len(src) * (1 + plan.undirected)

    def _flush(self) -> None:
        """Sends what the buffer holds on its way, once what was sent before has arrived."""
        self._wait()
        self._filling, self._full = self._full, self._filling
        due = self._num_edges - self._checkpoint >= CHECKPOINT_EDGES
        if due:
            self._checkpoint = self._num_edges
        records = self._full[: self._filled * self._size]
        self._filled = 0
        self._writing = self._thread.submit(self._append, records, self._num_edges if due else None)

    def _append(self, records: Bytes, num_edges: int | None) -> None:
        """Writes a run; where `num_edges` is given it is on the disk then, and noted in the journal."""
        starts = np.empty(self._plan.num_buckets + 1, np.int64)
        partitioned = self._partitioned[: len(records)]
        self._plan.records.partition(records, self._plan.shift, partitioned, starts)
        starts += self._records.num_bytes // self._size
        self._records.write(partitioned)
        self._index.write(starts)
        if num_edges is not None:
            self._records.sync()
            self._index.sync()
            num_runs = self._index.num_bytes // (8 * len(starts))
            self._journal.put(STAGE, num_edges=num_edges, num_runs=num_runs)

    def _wait(self) -> None:
        if self._writing:
            self._writing.result()
        self._writing = None

    def __enter__(self) -> "_RunWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        self._records.close()
        self._index.close()


def _read_scattered(file: DiskFile, views: list[memoryview], at: int) -> None:
    """Fills the views one after the other with the bytes of the file at `at`."""
    done = 0
    while done < len(views):
        got = os.preadv(file.fileno(), views[done : done + _VECTORS], at)
        if not got:
            raise FormatError(f"{file.path} is cut short: it has {file.size} bytes, there must be more")
        at += got
        while done < len(views) and got >= len(views[done]):
            got -= len(views[done])
            done += 1
        if got:
            views[done] = views[done][got:]
