"""Whole arrays of rows: encoded, and decoded again."""

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp.ops.gather import KernelCodec, Source, gather_decode, stored_rows
from gnn_ibp.rows import PAD_BYTES, Bytes, EncodedRows, RowIndex


def ibp_codec(mask: NDArray[np.unsignedinteger], bitval: NDArray[np.unsignedinteger]) -> _kernels.RowCodec:
    """The kernels' side of an `IBPCodec`; `mask` and `bitval` are arrays of its chunks."""
    words = mask.dtype.newbyteorder("<")
    return _kernels.ibp_codec(
        mask.astype(words).view(np.uint8), bitval.astype(words).view(np.uint8), 8 * words.itemsize
    )


def ibp2_codec(block: bytes, row_bytes: int) -> _kernels.RowCodec:
    """The kernels' side of a codec of row format version 2, for rows of `row_bytes` bytes.

    block: the parameters as a file stores them. Raises ValueError that names the rule they break.
    """
    return _kernels.ibp2_codec(np.frombuffer(block, np.uint8), row_bytes)


def stored_sizes(codec: KernelCodec, rows: Bytes) -> NDArray[np.int64]:
    """Bytes that each of `rows`, uint8 (N, row_bytes), takes when stored: row_bytes where it stays raw."""
    sizes = np.empty(len(rows), np.int64)
    _kernels.stored_sizes(codec.kernel, rows, sizes)
    return sizes


def encode_rows(codec: KernelCodec, rows: Bytes, align: int, in_place: bool = False) -> EncodedRows:
    """Encodes uint8 (N, row_bytes) to the condensed layout at `align` bytes, or in place.

    `align` is a multiple of 4 and of `codec.unit`, and not used in place. Bytes between rows are 0.
    """
    num_rows, row_bytes = rows.shape
    if align % 4 or align % codec.unit or align <= 0:
        raise ValueError(f"align is {align}, want a multiple of 4 and of the codec's unit {codec.unit}")
    sizes = stored_sizes(codec, rows)
    bitmask = np.packbits(sizes < row_bytes, bitorder="little")
    index = None if in_place else RowIndex.from_sizes(sizes, codec.unit, align, row_bytes)
    rows_bytes = index.rows_bytes if index else num_rows * row_bytes
    data = np.zeros(rows_bytes + 2 * PAD_BYTES, np.uint8)
    encoded = EncodedRows(data, bitmask, index, num_rows, row_bytes)
    _kernels.encode_rows(codec.kernel, rows, stored_rows(encoded), data)
    return encoded


def decode_all(codec: KernelCodec, rows: EncodedRows, out: Bytes) -> None:
    """Decodes every row to uint8 `out` (num_rows, row_bytes). Raises FormatError for a damaged one."""
    gather_decode(np.arange(rows.num_rows), [Source(rows, None, codec)], out)
