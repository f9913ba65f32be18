"""EdgeRuns: edges in runs that are each partitioned by ranges of destinations."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edges.edge_stream import EdgeStream, Ends, check_block, check_end
from gnn_ibp.futures import worker
from gnn_ibp.progress import progress
from gnn_ibp.rows import Bytes
from gnn_ibp.stages import Stages

Ids = NDArray[np.int64]


class LoadedRuns(NamedTuple):
    """starts: int64 (num_runs, num_buckets + 1), where the buckets of each run begin in `records`."""

    records: Bytes
    starts: Ids


class RunPlace(Protocol):
    """Where runs lie: run after run, in each run bucket after bucket. Entered while runs are added."""

    @property
    def num_edges(self) -> int:
        """Of the runs that are there."""

    def room(self, num_bytes: int) -> Bytes:
        """Where the next run is to be partitioned."""

    def add(self, starts: Ids, num_edges: int) -> None:
        """The run in the last room is complete, and with it the first `num_edges` edges.

        starts: (num_buckets + 1,), in records of this run.
        """

    def index(self) -> Ids:
        """(num_runs, num_buckets + 1): where each bucket of each run begins, in records of all runs."""

    def load(self, index: Ids, out: Bytes) -> LoadedRuns:
        """The records of neighbouring buckets, columns of `index`. out: a buffer that holds them."""

    def read(self, first: int, count: int) -> Bytes:
        """The records `first` to `first + count - 1`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class EdgeRuns:
    """The runs in `place`. `write` makes them, or goes on behind those that are there."""

    def __init__(self, plan: EdgeSortPlan, place: RunPlace) -> None:
        self._plan, self._place = plan, place

    def write(self, edges: EdgeStream, stages: Stages) -> None:
        """Reads all edges once. IndexError names the first that has an end outside [0, num_nodes).

        RuntimeError where the blocks hold another number of edges than was announced.
        """
        first = self._place.num_edges
        with stages.measure("partition edges") as stage, self._place:
            if first < edges.num_edges or not len(self._place.index()):
                _Filling(self._plan, self._place).write(edges)
                stage.num_edges = edges.num_edges - first
                stage.num_bytes = 2 * edges.dtype.itemsize * stage.num_edges

    def totals(self) -> Ids:
        """int64 (num_buckets,): the records of each bucket."""
        totals: Ids = np.diff(self._place.index().sum(axis=0))
        return totals

    def load(self, first: int, last: int, out: Bytes) -> LoadedRuns:
        """The records of the buckets `first` to `last - 1`. out: a buffer that holds them."""
        return self._place.load(np.ascontiguousarray(self._place.index()[:, first : last + 1]), out)

    def pieces(self, bucket: int, max_records: int) -> Iterator[Bytes]:
        """The records of one bucket in the order of the edges, at most `max_records` at a time."""
        for begin, end in self._place.index()[:, bucket : bucket + 2].tolist():
            for at in range(begin, end, max_records):
                yield self._place.read(at, min(max_records, end - at))


class _Filling:
    """Fills one buffer with records while those in another are partitioned into a run."""

    def __init__(self, plan: EdgeSortPlan, place: RunPlace) -> None:
        self._plan, self._place = plan, place
        self._size = plan.records.record_bytes
        self._filling, self._full = (np.empty(plan.run_records * self._size, np.uint8) for _ in range(2))
        self._filled = 0
        self._num_edges = place.num_edges
        self._adding: Future[None] | None = None

    def write(self, edges: EdgeStream) -> None:
        per_edge = 1 + self._plan.undirected
        with (
            worker("partition-edges", self._plan.num_records > self._plan.run_records) as self._worker,
            progress("partitioning edges", edges.num_edges, "edges") as bar,
        ):
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
            self._flush()
            self._wait()

    def _pack(self, src: Ends, dst: Ends) -> None:
        plan, out = self._plan, self._filling[self._filled * self._size :]
        plan.records.pack(src, dst, plan.num_nodes, self._num_edges, plan.undirected, out)
        self._num_edges += len(src)
        self._filled += len(src) * (1 + plan.undirected)

    def _flush(self) -> None:
        """Sends what the buffer holds on its way, once what was sent before has arrived."""
        self._wait()
        self._filling, self._full = self._full, self._filling
        records = self._full[: self._filled * self._size]
        self._filled = 0
        self._adding = self._worker.submit(self._add, records, self._num_edges)

    def _add(self, records: Bytes, num_edges: int) -> None:
        starts = np.empty(self._plan.num_buckets + 1, np.int64)
        self._plan.records.partition(records, self._plan.shift, self._place.room(len(records)), starts)
        self._place.add(starts, num_edges)

    def _wait(self) -> None:
        if self._adding:
            self._adding.result()
        self._adding = None
