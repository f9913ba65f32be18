"""PackedRows: an array, encoded."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.row_bytes import DType
from gnn_ibp.rows import PAD_BYTES, EncodedRows, RowIndex


@dataclass(frozen=True)
class PackedRows:
    """Rows encoded in memory, and the array they came from: torch or NumPy dtype, and shape."""

    rows: EncodedRows
    dtype: DType
    shape: tuple[int, ...]

    @property
    def bitmask(self) -> NDArray[np.bool_]:
        """(N,) True where the row is encoded, False where it is stored raw."""
        return self.rows.encoded()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as stored; index, bitmask and alignment come on top (`rows.nbytes`)."""
        return int(self._index.size_bytes().sum())

    @property
    def raw_nbytes(self) -> int:
        """Bytes of the array."""
        return self.rows.num_rows * self.rows.row_bytes

    @property
    def saved(self) -> float:
        """1 - encoded bytes / raw bytes; 0.0 where there are none."""
        return 1 - self.nbytes / self.raw_nbytes if self.raw_nbytes else 0.0

    def row(self, i: int) -> bytes:
        """Row i as stored."""
        if not 0 <= i < self.rows.num_rows:
            raise IndexError(f"row {i} of {self.rows.num_rows} rows")
        begin = PAD_BYTES + self._index.begin(i)
        (size,) = self._index.size_bytes(slice(i, i + 1))
        return self.rows.data[begin : begin + size].tobytes()

    @property
    def _index(self) -> RowIndex:
        assert self.rows.index, "packed rows are condensed"
        return self.rows.index
