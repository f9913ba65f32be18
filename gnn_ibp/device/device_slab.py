"""DeviceSlab: condensed rows in device memory, which come through a small page-locked buffer."""

import numpy as np
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.cuda import Cuda
from gnn_ibp.device.staging import StagingRing
from gnn_ibp.rows import PAD_BYTES, EncodedRows, Ids, RowIndex
from gnn_ibp.slabs import held_range


class DeviceSlab:
    """data: uint8, `PAD_BYTES` + rows + `PAD_BYTES`, on the device; row ids[i] becomes row i of `index`."""

    def __init__(self, cuda: Cuda, data: Tensor, index: RowIndex, ids: Ids, ring: StagingRing) -> None:
        self.ids = ids
        self._cuda = cuda
        self._data = data
        self._sizes = index
        self._ring = ring
        self._at = PAD_BYTES
        data[:PAD_BYTES].zero_()
        data[PAD_BYTES + index.rows_bytes :].zero_()

    def put(self, first_row: int, block: EncodedRows) -> None:
        lo, hi = held_range(self.ids, first_row, block)
        row_room = -(-block.row_bytes // self._sizes.align) * self._sizes.align
        step = max(1, (self._ring.buffer_bytes - 2 * PAD_BYTES) // max(1, row_room))
        for first in range(lo, hi, step):
            self._put(slice(first, min(first + step, hi)), first_row, block)

    def _put(self, rows: slice, first_row: int, block: EncodedRows) -> None:
        """These of `ids`, all in the block, re-packed behind those that came before."""
        sizes = self._sizes.size_bytes(rows)
        index = RowIndex.from_sizes(sizes, self._sizes.unit, self._sizes.align, block.row_bytes)
        with self._ring.buffer() as buffer:
            memory = buffer.host.numpy()
            bitmask = np.empty(-(-len(sizes) // 8), np.uint8)  # that of the slab is on the device already
            part = EncodedRows(memory, bitmask, index, len(sizes), block.row_bytes)
            ops.copy_rows(block, self.ids[rows] - first_row, part, np.arange(len(sizes)))
            target = self._data[self._at : self._at + index.rows_bytes]
            self._cuda.copy(target, buffer.host[PAD_BYTES : PAD_BYTES + index.rows_bytes])
            self._at += index.rows_bytes
