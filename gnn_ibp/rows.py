"""Encoded rows in memory: a slab of bytes, the bitmask, and the index of the condensed layout."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

PAD_BYTES = 64
"""Bytes before the first and after the last row of a slab or file: a decoder may load beyond a row."""

GROUP = 32
"""Rows per base of the index."""

_STEP = 1 << 20
"""Rows whose index is computed at once: whole groups."""

Bytes = NDArray[np.uint8]
Ids = NDArray[np.int64]
AnyIds = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True)
class RowIndex:
    """Where the rows of the condensed layout begin: a base per `GROUP` rows and a size per row.

    bases: uint64 (ceil(num_rows / GROUP),), bytes from the first row to the first row of each group.
    sizes: uint16 (uint32 where rows are too long) (num_rows,), stored bytes of a row in multiples of `unit`.
    align: rows begin at multiples of `align` bytes from the first row.
    """

    bases: NDArray[np.uint64]
    sizes: NDArray[np.uint16] | NDArray[np.uint32]
    unit: int
    align: int

    @classmethod
    def from_sizes(
        cls, size_bytes: NDArray[np.int64] | NDArray[np.uint32], unit: int, align: int, row_bytes: int
    ) -> "RowIndex":
        """The index of rows of `size_bytes` stored bytes each, back to back at `align` bytes."""
        index = cls.unwritten(len(size_bytes), unit, align, row_bytes)
        end = 0
        for first in range(0, len(size_bytes), _STEP):
            some = size_bytes[first : first + _STEP].astype(np.int64)
            ends = end + np.cumsum(-(-some // align) * align)
            index.bases[first // GROUP] = end
            index.bases[first // GROUP + 1 : -(-(first + len(some)) // GROUP)] = ends[GROUP - 1 : -1 : GROUP]
            index.sizes[first : first + len(some)] = some // unit
            end = int(ends[-1])
        return index

    @classmethod
    def unwritten(cls, num_rows: int, unit: int, align: int, row_bytes: int) -> "RowIndex":
        """Room for the index of so many rows."""
        wide = row_bytes // unit > 0xFFFF
        sizes = np.empty(num_rows, np.uint32) if wide else np.empty(num_rows, np.uint16)
        return cls(np.empty(-(-num_rows // GROUP), np.uint64), sizes, unit, align)

    @property
    def num_rows(self) -> int:
        return len(self.sizes)

    @property
    def nbytes(self) -> int:
        return self.bases.nbytes + self.sizes.nbytes

    @cached_property
    def rows_bytes(self) -> int:
        """Bytes from the first row to the end of the last one, alignment included."""
        if not self.num_rows:
            return 0
        last = (self.num_rows - 1) // GROUP
        return int(self.bases[last]) + int(self.aligned_sizes(slice(last * GROUP, None)).sum())

    def size_bytes(self, rows: slice | Ids = slice(None)) -> NDArray[np.int64]:
        """Stored bytes of the rows."""
        return self.sizes[rows].astype(np.int64) * self.unit

    def begin(self, row: int) -> int:
        """Bytes from the first row to this one."""
        group = row // GROUP
        return int(self.bases[group]) + int(self.aligned_sizes(slice(group * GROUP, row)).sum())

    def aligned_sizes(self, rows: slice | Ids = slice(None)) -> NDArray[np.int64]:
        """Bytes from each row to the next one."""
        return -(-self.size_bytes(rows) // self.align) * self.align


def bits_of(bitmask: Bytes, rows: Ids) -> NDArray[np.bool_]:
    """(n,) the bits of `rows`, int64 (n,): row i is bit i % 8 of byte i // 8."""
    bits: Bytes = bitmask[rows >> 3] >> (rows & 7).astype(np.uint8) & 1
    return bits.astype(np.bool_)


@dataclass(frozen=True)
class EncodedRows:
    """Rows as they are stored, in one of the two layouts.

    data:    uint8, `PAD_BYTES` + rows + `PAD_BYTES`.
    bitmask: uint8 (ceil(num_rows / 8),), row i is bit i % 8 of byte i // 8: 1 = encoded, 0 = raw.
    index:   None means in place: row i begins at i * row_bytes.
    """

    data: Bytes
    bitmask: Bytes
    index: RowIndex | None
    num_rows: int
    row_bytes: int

    @property
    def nbytes(self) -> int:
        """All memory held: slab, bitmask and index."""
        return self.data.nbytes + self.bitmask.nbytes + (self.index.nbytes if self.index else 0)

    def encoded(self, rows: Ids | None = None) -> NDArray[np.bool_]:
        """(n,) True where the row is stored encoded; of `rows`, int64 (n,), or of all."""
        if rows is None:
            return np.unpackbits(self.bitmask, count=self.num_rows, bitorder="little").astype(np.bool_)
        return bits_of(self.bitmask, rows)
