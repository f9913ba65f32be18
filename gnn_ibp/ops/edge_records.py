"""Edges as records on their way to their destinations: packed, partitioned and sorted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp.ops.csc import bad_edge
from gnn_ibp.rows import Bytes

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True)
class EdgeRecords:
    """One kind of record. wide: of 64-bit words, not 32. ranked: with the position in the edge list.

    Records are uint8 arrays (n * record_bytes,). An edge and its reverse share a position.
    """

    wide: bool
    ranked: bool

    @cached_property
    def record_bytes(self) -> int:
        return int(_kernels.record_bytes(self.wide, self.ranked)[0])

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """src, dst and, where ranked, rank, whose highest bit is set for a reverse edge."""
        word = "<u8" if self.wide else "<u4"
        return np.dtype([("src", word), ("dst", word), ("rank", word)][: 2 + self.ranked])

    @cached_property
    def tail_bytes(self) -> int:
        """What sorting takes for each record beside it and what comes out."""
        return int(_kernels.record_bytes(self.wide, self.ranked)[1])

    def positions(self, records: NDArray[Any]) -> Ids:
        """int64 (n,): where the edges of ranked records of `dtype` stood."""
        ranks = records["rank"]
        return (ranks & (np.iinfo(ranks.dtype).max >> 1)).astype(np.int64)

    def count(self, records: Bytes) -> int:
        """How many records the bytes hold."""
        return len(records) // self.record_bytes

    def pack(
        self, src: NDArray[Any], dst: NDArray[Any], num_nodes: int, first: int, undirected: bool, out: Bytes
    ) -> None:
        """Packs edges, the first of them number `first`; undirected each is followed by its reverse.

        Raises IndexError naming the first edge that leaves [0, num_nodes).
        """
        bad = _kernels.pack_edges(src, dst, num_nodes, first, undirected, self.wide, self.ranked, out)
        if bad >= 0:
            raise bad_edge(first + bad, src[bad], dst[bad], num_nodes)

    def partition(self, records: Bytes, shift: int, out: Bytes, starts: Ids) -> None:
        """Brings those with the same destination >> shift together; starts: (num_buckets + 1,)."""
        count = self.count(records)
        _kernels.partition_records(records, self.wide, self.ranked, count, shift, out, starts)

    def sort(
        self,
        records: Bytes,
        starts: Ids,
        first_node: int,
        shift: int,
        dedup: bool,
        scratch: Bytes,
        indices: Indices,
        perm: Ids | None,
        counts: Ids,
    ) -> int:
        """Sorts the buckets of all runs by destination, source and position; the first is `first_node`.

        starts: (num_runs, num_buckets + 1), where the buckets of each run begin in records. Writes sources to
        indices and positions to perm, adds to counts (num_buckets << shift,) how many edges each destination
        keeps, and returns how many are kept.
        """
        sort: Callable[..., int] = _kernels.sort_records
        return sort(
            records,
            self.wide,
            self.ranked,
            starts,
            first_node,
            shift,
            dedup,
            scratch,
            indices,
            perm,
            counts,
        )
