"""RowCache: encoded rows in memory, and the slot table that says which."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp import ops
from gnn_ibp.codec import RowCodec
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.format import check_align
from gnn_ibp.rows import GROUP, PAD_BYTES, Bytes, EncodedRows, Ids, RowIndex

Allocate = Callable[[int], Bytes]

CACHE_ALIGN = 16
"""Rows of a cache begin at multiples of this many bytes."""

MAX_SLOTS = 2**31 - 1
_FIRST_STEP = 1 << 20


def host_memory(num_bytes: int) -> Bytes:
    """Fresh memory, not cleared; NumPy puts large pieces on huge pages."""
    return np.empty(num_bytes, np.uint8)


@dataclass(frozen=True)
class RowCache:
    """Some rows of a data set, encoded back to back in a slab, hottest first.

    rows:    slot s of the slab; condensed.
    slot_of: int32 (rows of the data set,), the slot of each row, or -1. Empty where the cache is empty.
    codec:   that of the file they came from.
    """

    rows: EncodedRows
    slot_of: NDArray[np.int32]
    codec: RowCodec

    @classmethod
    def fill(
        cls,
        file: FeatureFile,
        hot_ids: ArrayLike | torch.Tensor,
        budget_bytes: int,
        *,
        allocate: Allocate = host_memory,
        align: int = CACHE_ALIGN,
        progress: str | None = "filling the cache",
    ) -> "RowCache":
        """The rows that `hot_ids` names first, as many as fit into `budget_bytes`.

        hot_ids: integers, hottest first; repeats are passed over. The slot table (4 bytes per row of the
        file), bitmask, index and padding count in the budget, which is never exceeded; where no row fits
        into it there is a warning, and the cache is empty. The file is read in sequence, only blocks that
        hold hot rows, their checksums compared. `allocate` gives the memory, uint8 (num_bytes,), 8-aligned.
        Raises IndexError, TypeError, ValueError for ids, budget, alignment; FormatError for a damaged file.
        """
        if budget_bytes < 0:
            raise ValueError(f"budget_bytes is {budget_bytes}, it must not be negative")
        check_align(align, file.codec.unit)
        ids = ops.check_ids(hot_ids, file.num_rows)
        if budget_bytes == 0 or not len(ids):
            return cls.empty(file.codec, file.row_bytes)
        table_bytes = 4 * file.num_rows
        if table_bytes + 2 * PAD_BYTES <= budget_bytes:
            slot_of = allocate(table_bytes).view(np.int32)
            slot_of[:] = -1
            chosen = _choose(file, ids, budget_bytes - table_bytes, align, slot_of)
            if len(chosen):
                rows = _load(file, chosen, slot_of, align, allocate, progress)
                return cls(rows, slot_of, file.codec)
        warnings.warn(
            f"a cache of {budget_bytes:,} bytes holds no row of {file.path}: its slot table alone takes "
            f"{table_bytes:,} bytes, 4 for each of {file.num_rows:,} rows. The cache stays empty",
            stacklevel=2,
        )
        return cls.empty(file.codec, file.row_bytes)

    @classmethod
    def empty(cls, codec: RowCodec, row_bytes: int) -> "RowCache":
        """A cache without rows, which takes no memory."""
        nothing = np.empty(0, np.uint8)
        index = RowIndex.from_sizes(np.empty(0, np.int64), codec.unit, CACHE_ALIGN, row_bytes)
        return cls(EncodedRows(nothing, nothing, index, 0, row_bytes), np.empty(0, np.int32), codec)

    @property
    def source(self) -> ops.Source | None:
        """For `ops.gather_decode`; None where the cache is empty."""
        return ops.Source(self.rows, self.slot_of, self.codec) if self.num_rows else None

    @property
    def num_rows(self) -> int:
        return self.rows.num_rows

    @property
    def nbytes(self) -> int:
        """All memory it takes: slab, bitmask, index and slot table."""
        return self.rows.nbytes + self.slot_of.nbytes

    @property
    def num_rows_if_raw(self) -> int:
        """How many rows the same memory would hold if they were not encoded (it needs no index then)."""
        row_bytes = max(1, self.rows.row_bytes)
        return min(len(self.slot_of), (self.nbytes - self.slot_of.nbytes) // row_bytes)


def _choose(
    file: FeatureFile, ids: Ids, room_bytes: int, align: int, slot_of: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Gives slots to the first of `ids` that fit into `room_bytes`; returns their stored sizes by slot."""
    chosen = np.empty(0, np.int64)
    rows_bytes, at, step = 0, 0, _FIRST_STEP
    while at < len(ids):
        some = ids[at : at + step]
        some = some[np.sort(np.unique(some, return_index=True)[1])]
        some = some[slot_of[some] < 0]
        at, step = at + step, 2 * step  # sizes may have to be read: no more than a few passes over the file
        sizes = file.stored_sizes(some)
        ends = rows_bytes + np.cumsum(-(-sizes // align) * align)
        num_rows = len(chosen) + np.arange(1, len(some) + 1)
        fit = int(np.searchsorted(_slab_bytes(num_rows, ends, file), room_bytes, side="right"))
        fit = min(fit, MAX_SLOTS - len(chosen))
        slot_of[some[:fit]] = np.arange(len(chosen), len(chosen) + fit)
        chosen = np.concatenate([chosen, sizes[:fit]])
        if fit < len(some):
            break
        rows_bytes = int(ends[-1]) if fit else rows_bytes
    return chosen


def _slab_bytes(num_rows: NDArray[np.int64], rows_bytes: NDArray[np.int64], file: FeatureFile) -> Ids:
    """What a cache of so many rows takes, without its slot table."""
    size_bytes = 2 if file.row_bytes // file.codec.unit <= 0xFFFF else 4
    index = -(-num_rows // GROUP) * 8 + num_rows * size_bytes
    total: Ids = 2 * PAD_BYTES + rows_bytes + -(-num_rows // 8) + index
    return total


def _load(
    file: FeatureFile,
    sizes: NDArray[np.int64],
    slot_of: NDArray[np.int32],
    align: int,
    allocate: Allocate,
    progress: str | None,
) -> EncodedRows:
    """The rows that have slots, of the given stored sizes, re-packed in the order of the slots."""
    plan = RowIndex.from_sizes(sizes, file.codec.unit, align, file.row_bytes)
    bases = allocate(plan.bases.nbytes).view(plan.bases.dtype)
    bases[:] = plan.bases
    index_sizes = allocate(plan.sizes.nbytes).view(plan.sizes.dtype)
    index_sizes[:] = plan.sizes
    index = RowIndex(bases, index_sizes, plan.unit, align)
    ids = np.flatnonzero(slot_of >= 0)
    slots = slot_of[ids].astype(np.int64)
    encoded = np.empty(len(ids), np.bool_)
    encoded[slots] = file.encoded(ids)
    bitmask = allocate(-(-len(ids) // 8))
    bitmask[:] = np.packbits(encoded, bitorder="little")
    data = allocate(PAD_BYTES + plan.rows_bytes + PAD_BYTES)
    data[:PAD_BYTES] = 0
    data[PAD_BYTES + plan.rows_bytes :] = 0
    rows = EncodedRows(data, bitmask, index, len(ids), file.row_bytes)
    for first_row, block in file.encoded_blocks(ids, progress=progress):
        lo, hi = np.searchsorted(ids, [first_row, first_row + block.num_rows])
        ops.copy_rows(block, ids[lo:hi] - first_row, rows, slots[lo:hi])
    return rows
