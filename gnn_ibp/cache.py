"""RowCache: encoded rows in memory of any kind, and the slot table that says which."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from gnn_ibp import ops
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.format import check_align
from gnn_ibp.ops.device import DeviceSource
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import PAD_BYTES, Bytes, EncodedRows, RowIndex
from gnn_ibp.slabs import HostSlab, fill
from gnn_ibp.slots import Slots, index_bytes

Allocate = Callable[[int], Bytes]

CACHE_ALIGN = 16
"""Rows of a cache begin at multiples of this many bytes."""


FILL_ROW_BYTES = 20
"""What `RowCache.fill` takes for each row while it works, beside the cache: id, slot, size, index; and a byte
for each row of the file."""

_STEP = 1 << 20


def host_memory(num_bytes: int) -> Bytes:
    """Fresh memory, not cleared; NumPy puts large pieces on huge pages."""
    return np.empty(num_bytes, np.uint8)


@dataclass(frozen=True)
class RowCache:
    """Some rows of a data set, encoded back to back in a slab.

    codec:         that of the file they came from.
    source:        slab, index, bitmask and slot table in ordinary memory, for `ops.gather_decode`; or
    device_source: the slab in device or page-locked memory, everything else in device memory, for
                   `ops.device.launch_gather_decode`. Both are None where the cache is empty.
    over_pcie:     a device reads the slab in page-locked memory.
    """

    codec: RowCodec
    source: ops.Source | None = None
    device_source: DeviceSource | None = None
    over_pcie: bool = False

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
        """The rows that `hot_ids` names first, as many as fit into `budget_bytes`, hottest first.

        hot_ids: integers, hottest first; repeats are passed over. The slot table (4 bytes per row of the
        file), bitmask, index and padding count in the budget, which is never exceeded; where no row fits
        into it there is a warning, and the cache is empty. The file is read in sequence, only blocks that
        hold hot rows, their checksums compared. `allocate` gives the memory, uint8 (num_bytes,), 8-aligned.
        Raises IndexError, TypeError, ValueError for ids, budget, alignment; FormatError for a damaged file.
        """
        if budget_bytes < 0:
            raise ValueError(f"budget_bytes is {budget_bytes}, it must not be negative")
        check_align(align, file.codec.unit)
        ids = ops.check_narrow_ids(hot_ids, file.num_rows)
        if budget_bytes == 0 or not len(ids):
            return cls.empty(file.codec)
        table_bytes = 4 * file.num_rows
        if table_bytes + 2 * PAD_BYTES <= budget_bytes:
            slot_of = allocate(table_bytes).view(np.int32)
            room_bytes = budget_bytes - table_bytes
            slots = Slots(file, slot_of, room_bytes, align, lambda num_rows: index_bytes(num_rows, file))
            slots.give(ids)
            if slots.num_rows:
                rows = _load(file, slots, align, allocate, progress)
                return cls(file.codec, ops.Source(rows, slot_of, file.codec))
        warnings.warn(
            f"a cache of {budget_bytes:,} bytes holds no row of {file.path}: its slot table alone takes "
            f"{table_bytes:,} bytes, 4 for each of {file.num_rows:,} rows. The cache stays empty",
            stacklevel=2,
        )
        return cls.empty(file.codec)

    @classmethod
    def empty(cls, codec: RowCodec) -> "RowCache":
        """A cache without rows, which takes no memory."""
        return cls(codec)

    @property
    def num_rows(self) -> int:
        if self.source:
            return self.source.rows.num_rows
        return self.device_source.num_rows if self.device_source else 0

    @property
    def nbytes(self) -> int:
        """All memory it takes: slab, bitmask, index and slot table."""
        return self.slab_bytes + self.tables_bytes

    @property
    def slab_bytes(self) -> int:
        """Of the rows, with padding."""
        if self.source:
            return self.source.rows.data.nbytes
        return self.device_source.data.nbytes if self.device_source else 0

    @property
    def tables_bytes(self) -> int:
        """Of bitmask, index and slot table."""
        if self.source:
            slot_of = self.source.slot_of
            table_bytes = 0 if slot_of is None else slot_of.nbytes
            return self.source.rows.nbytes - self.slab_bytes + table_bytes
        device = self.device_source
        if device is None:
            return 0
        tables = (device.bitmask, device.bases, device.sizes, device.slot_of)
        return sum(table.nbytes for table in tables if table is not None)

    @property
    def num_rows_if_raw(self) -> int:
        """How many rows the same memory would hold if they were not encoded (it needs no index then)."""
        held = self.source or self.device_source
        if held is None:
            return 0
        num_ids, table_bytes = self.num_rows, 0
        if held.slot_of is not None:
            num_ids, table_bytes = len(held.slot_of), held.slot_of.nbytes
        return min(num_ids, (self.nbytes - table_bytes) // max(1, self.codec.row_bytes))


def _load(
    file: FeatureFile, slots: Slots, align: int, allocate: Allocate, progress: str | None
) -> EncodedRows:
    """The rows that have slots, re-packed in the order of the slots."""
    plan = RowIndex.from_sizes(slots.sizes, file.codec.unit, align, file.row_bytes)
    bases = allocate(plan.bases.nbytes).view(plan.bases.dtype)
    bases[:] = plan.bases
    sizes = allocate(plan.sizes.nbytes).view(plan.sizes.dtype)
    sizes[:] = plan.sizes
    ids = np.flatnonzero(slots.slot_of >= 0)
    slot = slots.slot_of[ids]
    encoded = np.empty(len(ids), np.bool_)
    for first in range(0, len(ids), _STEP):
        some = slice(first, first + _STEP)
        encoded[slot[some]] = file.encoded(ids[some])
    bitmask = allocate(-(-len(ids) // 8))
    bitmask[:] = np.packbits(encoded, bitorder="little")
    data = allocate(PAD_BYTES + plan.rows_bytes + PAD_BYTES)
    rows = EncodedRows(data, bitmask, RowIndex(bases, sizes, plan.unit, align), len(ids), file.row_bytes)
    fill(file, [HostSlab(rows, ids, slot)], progress)
    return rows
