"""Who counts the chunks that the fit of row format version 2 looks at: NumPy here, whose counts are the ones.

The kernels count faster, and the same.
"""

from typing import NamedTuple, Protocol

import numpy as np

from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.split import Split
from gnn_ibp.reference import Words


class Commonest(NamedTuple):
    """A value, and how many chunks have it."""

    value: int
    num_chunks: int


class Counting(Protocol):
    """Counts chunks."""

    def tops(self, chunks: Words, split: Split) -> TopCounts:
        """Signs and exponents of `chunks` (N, V) at each of V positions."""

    def commonest(self, chunks: Words, percent: int) -> Commonest | None:
        """The most frequent of `chunks`, the smallest of equals; None if no more than `percent` % have it."""


class NumpyCounting:
    """The definition of `Counting`."""

    def tops(self, chunks: Words, split: Split) -> TopCounts:
        return TopCounts.of(split.tops(chunks), split.head_bits)

    def commonest(self, chunks: Words, percent: int) -> Commonest | None:
        values, count = np.unique(chunks, return_counts=True)
        if 100 * count.max(initial=0) <= percent * chunks.size:
            return None
        return Commonest(int(values[np.argmax(count)]), int(count.max()))
