"""How edges are sorted within a given memory: where runs lie, ranges of destinations, sizes of buffers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gnn_ibp import ops

STREAM_BYTES = 64 << 20
"""For the blocks of an edge stream, and what it needs to read them."""

MIN_RECORDS = 1 << 20
MAX_RUN_RECORDS, MAX_LOAD_RECORDS = 1 << 24, 1 << 24
"""Larger buffers gain nothing; smaller ones overlap better, but the pieces that are read get shorter."""

HELD_SHARE = 16
"""Where memory holds all runs, no more than such a share of them is on its way at a time."""

UNBOUNDED = 1 << 62
"""`memory_bytes` that hold everything."""

RUN_BUFFERS = 3
"""One is filled, one partitioned, one written."""

MAX_BUCKETS = 1 << 12
BUCKET_RECORDS = 1 << 16
BUCKET_NODES = 1 << 20

NARROW_NODES, NARROW_RANKS = 1 << 32, 1 << 31
NARROW_INDICES = 1 << 31


@dataclass(frozen=True)
class EdgeSortPlan:
    """Edges become records, reverse edges too; a bucket holds those whose destination >> `shift` is the same.

    A run of `run_records` is partitioned; it stays in memory where all are `held`, or is appended to a file.
    Later some neighbouring buckets from all runs are sorted at a time, of up to `load_records`. Which buckets
    there are does not depend on the memory: an interrupted sort can go on with another budget.
    ranked: whether the permutation is wanted.
    """

    num_nodes: int
    num_edges: int
    undirected: bool
    dedup: bool
    ranked: bool
    memory_bytes: int

    @property
    def num_records(self) -> int:
        return self.num_edges * (1 + self.undirected)

    @cached_property
    def records(self) -> ops.EdgeRecords:
        wide = self.num_nodes > NARROW_NODES or (self.ranked and self.num_edges > NARROW_RANKS)
        return ops.EdgeRecords(wide, self.ranked)

    @property
    def index_dtype(self) -> np.dtype[Any]:
        """Of `indices`."""
        return np.dtype(np.int32 if self.num_nodes <= NARROW_INDICES else np.int64)

    @cached_property
    def shift(self) -> int:
        wanted = min(MAX_BUCKETS, max(1, self.num_records // BUCKET_RECORDS))
        wanted = max(wanted, -(-self.num_nodes // BUCKET_NODES))
        shift = 0
        while (max(0, self.num_nodes - 1) >> shift) + 1 > wanted:
            shift += 1
        return shift

    @property
    def num_buckets(self) -> int:
        return (max(0, self.num_nodes - 1) >> self.shift) + 1

    @cached_property
    def held(self) -> bool:
        """Whether memory holds the runs."""
        return self.smallest_memory_bytes + self._held_bytes <= self.memory_bytes

    @property
    def run_records(self) -> int:
        records = self._free_bytes // (RUN_BUFFERS * self.records.record_bytes)
        return max(2, min(records, MAX_RUN_RECORDS, self._enough_records))

    @property
    def load_records(self) -> int:
        records = (self._free_bytes - self._bucket_bytes) // self._load_record_bytes
        return max(1, min(records, MAX_LOAD_RECORDS, self.num_records))

    @property
    def group_records(self) -> int:
        """So many are sorted at a time; a bucket that has more is sorted alone."""
        return min(self.load_records, self._enough_records)

    @property
    def group_buckets(self) -> int:
        """The most that are sorted at a time, because of the counts of their nodes."""
        return max(1, self.group_records >> self.shift)

    @property
    def file_bytes(self) -> int:
        """Disk that the runs take."""
        return 0 if self.held else self.num_records * self.records.record_bytes

    @property
    def smallest_memory_bytes(self) -> int:
        """The least `memory_bytes` that will do."""
        records = min(MIN_RECORDS, max(2, self.num_records))
        load = records * self._load_record_bytes + self._bucket_bytes
        return STREAM_BYTES + max(load, RUN_BUFFERS * records * self.records.record_bytes)

    @property
    def _free_bytes(self) -> int:
        return self.memory_bytes - STREAM_BYTES - self.held * self._held_bytes

    @property
    def _held_bytes(self) -> int:
        """Of runs in memory, and of their index."""
        num_runs = self.num_records // MIN_RECORDS + 1
        return self.num_records * self.records.record_bytes + 8 * num_runs * (self.num_buckets + 1)

    @property
    def _enough_records(self) -> int:
        return max(MIN_RECORDS, self.num_records // HELD_SHARE) if self.held else self.num_records

    @property
    def _load_record_bytes(self) -> int:
        """Two buffers to read into, what is sorted; twice sources, positions, and a count for each node."""
        records = self.records
        return (
            2 * records.record_bytes
            + records.tail_bytes
            + 2 * (self.index_dtype.itemsize + 8 * self.ranked + 8)
        )

    @property
    def _bucket_bytes(self) -> int:
        """What every thread has for the nodes of a bucket, and tables with an entry for every bucket."""
        return 8 * ((1 << self.shift) * (1 + ops.num_threads()) + 8 * self.num_buckets * ops.num_threads())
