"""StagedRows: encoded rows in a staging buffer, put there by the CPU and decoded by a kernel.

| at | bases | sizes | bitmask | .. 256 | padding | rows, each at a sector | padding |
'------- copied to the device ----------'---- read over the bus, if page-locked -----'
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.device.device_decoder import DeviceDecoder
from gnn_ibp.device.staging import BUFFER_BYTES, StagingBuffer
from gnn_ibp.ops.device import COUNT_WORDS, SECTOR_BYTES, DeviceSource
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import GROUP, PAD_BYTES, EncodedRows, Ids, RowIndex

_TABLE_ALIGN = 16
_SLAB_ALIGN = 256


class _Layout(NamedTuple):
    """Where the parts of a buffer begin, in bytes."""

    bases: int
    sizes: int
    bitmask: int
    tables_end: int
    slab: int
    sizes_type: np.dtype[Any]

    @classmethod
    def of(cls, num_rows: int, codec: RowCodec) -> "_Layout":
        sizes_type = np.dtype(np.uint16 if codec.row_bytes // codec.unit <= 0xFFFF else np.uint32)
        bases = _up(8 * num_rows, _TABLE_ALIGN)
        sizes = _up(bases + 8 * -(-num_rows // GROUP), _TABLE_ALIGN)
        bitmask = sizes + sizes_type.itemsize * num_rows
        tables_end = bitmask + -(-num_rows // 8)
        return cls(bases, sizes, bitmask, tables_end, _up(tables_end, _SLAB_ALIGN), sizes_type)


def buffer_bytes(codec: RowCodec) -> int:
    """Of a staging buffer for the codec's rows: `BUFFER_BYTES`, or what one row needs."""
    return max(BUFFER_BYTES, _bytes_for(1, codec))


def rows_per_buffer(num_bytes: int, codec: RowCodec) -> int:
    """How many rows a buffer has room for, whatever they encode to."""
    few, many = 1, 2
    while _bytes_for(many, codec) <= num_bytes:
        few, many = many, 2 * many
    while few + 1 < many:  # `few` fit, `many` do not
        middle = (few + many) // 2
        few, many = (middle, many) if _bytes_for(middle, codec) <= num_bytes else (few, middle)
    return few


class StagedRows:
    """Room in a buffer for `num_rows` rows, and for where they go.

    rows: condensed, to be filled, index and bitmask too. at: int64 (num_rows,), their rows of the output.
    """

    def __init__(self, buffer: StagingBuffer, num_rows: int, codec: RowCodec) -> None:
        self._layout = layout = _Layout.of(num_rows, codec)
        self._buffer = buffer
        memory = buffer.host.numpy()
        bases = memory[layout.bases :][: 8 * -(-num_rows // GROUP)].view(np.uint64)
        sizes = memory[layout.sizes : layout.bitmask].view(layout.sizes_type)
        index = RowIndex(bases, sizes, codec.unit, SECTOR_BYTES)
        bitmask = memory[layout.bitmask : layout.tables_end]
        self.at: Ids = memory[: 8 * num_rows].view(np.int64)
        self.rows = EncodedRows(memory[layout.slab :], bitmask, index, num_rows, codec.row_bytes)

    @property
    def encoded_bytes(self) -> int:
        """Of the rows as they are stored."""
        assert self.rows.index, "staged rows are condensed"
        return int(self.rows.index.size_bytes().sum())

    def decode(self, decoder: DeviceDecoder, numbers: Tensor, out: Tensor) -> int:
        """Queues the decoding of row i to out[at[i]] on the current stream; returns the bytes of its sectors.

        numbers: int64 (num_rows or more,), 0, 1, …; out: uint8 (num_out, row_bytes); both on the device.
        """
        layout, num_rows, index = self._layout, self.rows.num_rows, self.rows.index
        assert index, "staged rows are condensed"
        used = layout.slab + PAD_BYTES + index.rows_bytes + PAD_BYTES
        copied = layout.slab if self._buffer.locked else used
        scratch = _up(copied, _SLAB_ALIGN)
        device = self._buffer.device(decoder.cuda, scratch + 8 * (2 * num_rows + COUNT_WORDS))
        decoder.cuda.copy(device[:copied], self._buffer.host[:copied])
        slab = self._buffer.host if self._buffer.locked else device
        source = DeviceSource(
            data=slab[layout.slab : used],
            bitmask=device[layout.bitmask : layout.tables_end],
            bases=device[layout.bases :][: index.bases.nbytes].view(torch.int64),
            sizes=signed(device[layout.sizes : layout.bitmask], index.sizes.itemsize),
            num_rows=num_rows,
            align=SECTOR_BYTES,
            slot_of=None,
        )
        at = device[: 8 * num_rows].view(torch.int64)
        # Every row is there and was checked, so that nobody asks for what the kernel counts.
        lists = device[scratch:].view(torch.int64)
        missing = (lists[:num_rows], lists[num_rows : 2 * num_rows])
        counts, over_bus = lists[2 * num_rows :], self._buffer.locked
        decoder.cuda.share(numbers)  # nobody waits for this launch
        decoder.gather(numbers[:num_rows], num_rows, [source], out, at, *missing, counts, over_bus=over_bus)
        return index.rows_bytes


def signed(table: Tensor, item_bytes: int) -> Tensor:
    """uint8 `table` as signed integers of so many bytes: torch has few operations for unsigned ones."""
    return table.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[item_bytes])


def _bytes_for(num_rows: int, codec: RowCodec) -> int:
    slab = PAD_BYTES + num_rows * _up(codec.row_bytes, SECTOR_BYTES) + PAD_BYTES
    return _Layout.of(num_rows, codec).slab + slab


def _up(num_bytes: int, align: int) -> int:
    return -(-num_bytes // align) * align
