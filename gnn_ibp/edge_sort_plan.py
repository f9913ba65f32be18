"""How edges are sorted through files within a given memory: ranges of destinations, sizes of buffers."""

from dataclasses import dataclass
from functools import cached_property

from gnn_ibp import ops

STREAM_BYTES = 64 << 20
"""For the blocks of an edge stream, and what it needs to read them."""

MIN_RECORDS = 1 << 20
MAX_RUN_RECORDS, MAX_LOAD_RECORDS = 1 << 24, 1 << 24
"""Larger buffers gain nothing; smaller ones overlap better, but the pieces that are read get shorter."""

RUN_BUFFERS = 3
"""One is filled, one partitioned, one written."""

MAX_BUCKETS = 1 << 12
BUCKET_RECORDS = 1 << 16
BUCKET_NODES = 1 << 20

NARROW_NODES = 1 << 32
NARROW_INDICES = 1 << 31


@dataclass(frozen=True)
class EdgeSortPlan:
    """Edges become records, reverse edges too; a bucket holds those whose destination >> `shift` is the same.

    A run of `run_records` is partitioned in memory and appended to a file; later up to `load_records`, of
    some neighbouring buckets from all runs, are loaded and sorted at a time. Which buckets there are does not
    depend on the memory, so that an interrupted sort can go on with another budget.
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
        return ops.EdgeRecords(wide=self.num_nodes > NARROW_NODES, ranked=self.ranked)

    @property
    def index_bytes(self) -> int:
        """Of one source in `indices`."""
        return 4 if self.num_nodes <= NARROW_INDICES else 8

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

    @property
    def run_records(self) -> int:
        records = self._free_bytes // (RUN_BUFFERS * self.records.record_bytes)
        return max(2, min(records, MAX_RUN_RECORDS, self.num_records))

    @property
    def load_records(self) -> int:
        records = (self._free_bytes - self._bucket_bytes) // self._load_record_bytes
        return max(1, min(records, MAX_LOAD_RECORDS, self.num_records))

    @property
    def load_buckets(self) -> int:
        """The most that are loaded at a time, because of the counts of their nodes."""
        return max(1, self.load_records >> self.shift)

    @property
    def file_bytes(self) -> int:
        """Disk that the runs take."""
        return self.num_records * self.records.record_bytes

    @property
    def smallest_memory_bytes(self) -> int:
        """The least `memory_bytes` that will do."""
        records = min(MIN_RECORDS, max(2, self.num_records))
        load = records * self._load_record_bytes + self._bucket_bytes
        return STREAM_BYTES + max(load, RUN_BUFFERS * records * self.records.record_bytes)

    @property
    def _free_bytes(self) -> int:
        return self.memory_bytes - STREAM_BYTES

    @property
    def _load_record_bytes(self) -> int:
        """Two buffers to read into, what is sorted; twice sources, positions, and a count for each node."""
        records = self.records
        return 2 * records.record_bytes + records.tail_bytes + 2 * (self.index_bytes + 8 * self.ranked + 8)

    @property
    def _bucket_bytes(self) -> int:
        """What every thread has for the nodes of a bucket, and tables with an entry for every bucket."""
        return 8 * ((1 << self.shift) * (1 + ops.num_threads()) + 8 * self.num_buckets * ops.num_threads())
