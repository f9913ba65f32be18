"""What the gather-decode kernels read of an `IBPCodec`; kernels/cuda/ibp_decode.cuh draws it."""

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ops.device_kernel import (
    LANE_BYTES,
    LONG_WARPS,
    SHORT_ROW_BYTES,
    SHORT_WARPS,
    DeviceKernel,
    lanes_for,
    padded,
    table_of,
)


def ibp_kernel(mask: NDArray[np.unsignedinteger], bitval: NDArray[np.unsignedinteger]) -> DeviceKernel | None:
    """The kernel of an `IBPCodec`; None for 8-bit chunks, which no device kernel decodes."""
    unit, row_bytes = mask.itemsize, mask.nbytes
    if unit == 1:
        return None
    is_long, lanes = row_bytes > SHORT_ROW_BYTES, lanes_for(row_bytes)
    per_piece = lanes * LANE_BYTES // unit
    keep = ~mask
    saved = padded(8 * unit - _popcount(keep), per_piece)
    planes = [padded(plane, per_piece) for plane in (keep, bitval, *_moves(keep))]
    even = _even(saved, len(mask), per_piece)
    module = f"gather_decode_w{8 * unit}"
    head_bytes = -(-len(mask) // (8 * unit)) * unit
    table = table_of(*planes, saved, even)
    if is_long:
        return DeviceKernel(module, f"{module}_long", table, head_bytes, LONG_WARPS, 5)
    rows_at_once, blocks = 32 // lanes, 2 if unit == 8 else 3
    name = f"{module}_x{rows_at_once}"
    return DeviceKernel(module, name, table, head_bytes, SHORT_WARPS, blocks, rows_at_once)


def _even(saved: NDArray[np.unsignedinteger], num_chunks: int, per_piece: int) -> NDArray[np.uint32]:
    """For each piece the bits that all of its chunks leave out; all ones where they differ."""
    pieces = range(0, len(saved), per_piece)
    even = np.full(len(pieces), 0xFFFFFFFF, "<u4")
    for number, first in enumerate(pieces):
        some = saved[first : min(first + per_piece, num_chunks)]
        if len(some) and (some == some[0]).all():
            even[number] = some[0]
    return even


def _popcount(words: NDArray[np.unsignedinteger]) -> NDArray[np.uint8]:
    ones = np.unpackbits(words.view(np.uint8)).reshape(len(words), 8 * words.itemsize)
    counts: NDArray[np.uint8] = ones.sum(axis=1, dtype=np.uint8)
    return counts


def _moves(keep: NDArray[np.unsignedinteger]) -> list[NDArray[np.unsignedinteger]]:
    """What `split_moves` of kernels/ibp_row.h makes of each of `keep`: an array per step."""
    width, one = 8 * keep.itemsize, keep.dtype.type(1)
    num_steps = width.bit_length() - 1
    moves = [np.zeros_like(keep) for _ in range(num_steps)]
    rank = np.zeros_like(keep)
    for p in range(width):
        kept = keep >> keep.dtype.type(p) & one
        down = kept * (keep.dtype.type(p) - rank)
        place = np.full_like(keep, p)
        for step in range(num_steps):
            moving = down >> keep.dtype.type(step) & one
            moves[step] |= moving << place
            place -= moving << keep.dtype.type(step)
        rank += kept
    return moves
