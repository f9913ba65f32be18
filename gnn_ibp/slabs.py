"""Slabs that are filled while a file is read in sequence, once for all of them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import ops
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.rows import PAD_BYTES, EncodedRows, Ids


class Slab(Protocol):
    """Takes rows as they come."""

    @property
    def ids(self) -> Ids | None:
        """Those that it wants, ascending; None: all."""

    def put(self, first_row: int, block: EncodedRows) -> None:
        """Takes what it wants of rows `first_row` and on. Blocks come in order, perhaps with rows between."""


class HostSlab:
    """Condensed rows in host memory; row ids[i] goes to slot slots[i], or to slot i where that is None."""

    def __init__(self, rows: EncodedRows, ids: Ids | None, slots: NDArray[np.int32] | None) -> None:
        assert rows.index, "rows in place go to an InPlaceSlab"
        rows.data[:PAD_BYTES] = 0
        rows.data[PAD_BYTES + rows.index.rows_bytes :] = 0
        self.ids = ids
        self._rows = rows
        self._slots = slots

    def put(self, first_row: int, block: EncodedRows) -> None:
        lo, hi = held_range(self.ids, first_row, block)
        ids = np.arange(lo, hi) if self.ids is None else self.ids[lo:hi]
        slots = np.arange(lo, hi) if self._slots is None else self._slots[lo:hi].astype(np.int64)
        ops.copy_rows(block, ids - first_row, self._rows, slots)


class InPlaceSlab:
    """All rows of a file in place, in place."""

    ids = None

    def __init__(self, rows: EncodedRows) -> None:
        rows.data[:PAD_BYTES] = 0
        rows.data[PAD_BYTES + rows.num_rows * rows.row_bytes :] = 0
        self._rows = rows

    def put(self, first_row: int, block: EncodedRows) -> None:
        begin = PAD_BYTES + first_row * block.row_bytes
        num_bytes = block.num_rows * block.row_bytes
        self._rows.data[begin : begin + num_bytes] = block.data[PAD_BYTES : PAD_BYTES + num_bytes]


def fill(file: FeatureFile, slabs: Sequence[Slab], progress: str | None) -> None:
    """Reads the file in sequence, only blocks that hold wanted rows, their checksums compared.

    Raises FormatError for a damaged file.
    """
    if not slabs:
        return
    wanted = _union([slab.ids for slab in slabs], file.num_rows)
    for first_row, block in file.encoded_blocks(wanted, progress=progress):
        for slab in slabs:
            slab.put(first_row, block)


def held_range(ids: Ids | None, first_row: int, block: EncodedRows) -> tuple[int, int]:
    """The part [lo, hi) of ascending `ids` (None: of all) that is in the block."""
    rows = [first_row, first_row + block.num_rows]
    lo, hi = rows if ids is None else np.searchsorted(ids, rows).tolist()
    return lo, hi


def _union(wanted: Sequence[Ids | None], num_rows: int) -> Ids | None:
    """Ascending; None for all."""
    if len(wanted) == 1:
        return wanted[0]
    held = np.zeros(num_rows, np.bool_)
    for ids in wanted:
        if ids is None:
            return None
        held[ids] = True
    return np.flatnonzero(held)
