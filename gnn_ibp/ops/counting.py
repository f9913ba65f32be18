"""Chunks counted for the fit of row format version 2; `gnn_ibp.ibp2.counting` defines the counts."""

import numpy as np

from gnn_ibp import _kernels
from gnn_ibp.ibp2.counting import Commonest, NumpyCounting
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.split import Split
from gnn_ibp.reference import Words

MAX_TOP_BITS = 16
MAX_COUNTS = 1 << 22
"""Longer tops, and more of them than chunks, are sorted rather than counted in a table."""


class KernelCounting(NumpyCounting):
    """The counts of NumPy, mostly by kernels."""

    def tops(self, chunks: Words, split: Split) -> TopCounts:
        num_rows, num_positions = chunks.shape
        num_counts = num_positions << split.top_bits
        if split.top_bits > MAX_TOP_BITS or num_counts > min(chunks.size, MAX_COUNTS):
            return super().tops(chunks, split)
        table = np.empty((num_positions, 1 << split.top_bits), np.uint32)
        _kernels.count_tops(np.ascontiguousarray(chunks), split.chunk_bits - split.top_bits, table)
        is_there = table > 0
        starts = np.append(0, np.cumsum(is_there.sum(axis=1)))
        top = np.flatnonzero(is_there) & ((1 << split.top_bits) - 1)
        count = table[is_there].astype(np.min_scalar_type(num_rows))
        return TopCounts(num_rows, split.head_bits, starts, top.astype(np.uint16), count)

    def commonest(self, chunks: Words, percent: int) -> Commonest | None:
        found = _kernels.commonest(np.ascontiguousarray(chunks).reshape(-1), percent * chunks.size // 100)
        return Commonest(*found) if found else None
