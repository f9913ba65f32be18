"""What the gather-decode kernels read of row format version 2; kernels/cuda/ibp2_table.cuh draws it."""

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.codes import BLOCK
from gnn_ibp.ibp2.params import MAX_CLASSES, Code, Params
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

_LINK = 0x80  # of a code: the next level tells
_FIELDS = 8  # codes of level 1 and 3 that a class has
_LEVEL2_FIELDS = 4


def ibp2_kernel(params: Params) -> DeviceKernel | None:
    """The kernel of an `IBP2Codec`; None for 8-bit chunks, which no device kernel decodes."""
    if params.chunk_bits == 8:
        return None
    name = f"gather_ibp2_w{params.chunk_bits}"
    common = _numbers(params), _codes(params), _leaves(params)
    if params.kind == "S":
        return DeviceKernel(f"{name}_sparse", f"{name}_sparse", table_of(*common), 0, LONG_WARPS, 4)
    if params.row_bytes > SHORT_ROW_BYTES:
        table = table_of(*common, *_chunks(params, BLOCK))
        return DeviceKernel(f"{name}_long", f"{name}_long", table, 0, LONG_WARPS, 4)
    lanes, blocks = lanes_for(params.row_bytes), 2 if params.chunk_bits == 64 else 3
    table = table_of(*common, *_chunks(params, lanes * _lane_chunks(params)))
    rows_at_once = 32 // lanes
    return DeviceKernel(name, f"{name}_x{rows_at_once}", table, 0, SHORT_WARPS, blocks, rows_at_once)


def _lane_chunks(params: Params) -> int:
    """Chunks of a row that a lane makes."""
    return LANE_BYTES // params.chunk_bytes


def _numbers(params: Params) -> NDArray[np.uint8]:
    """64 bytes: what all rows have in common, and in kind S all chunks."""
    numbers = np.zeros(64, np.uint8)
    numbers[:28].view("<u4")[:] = (
        *(params.sign_bits, params.zero_bits),
        *(params.tail_bits // 8 * 8, params.tail_bits % 8, params.top_bits),
        sum(params.codes[cls].k1 for cls in params.cls),
        params.levels,
    )
    if params.kind == "S":
        chunks = _lane_chunks(params)
        (position,) = params.positions
        numbers[28:36][:chunks] = params.codes[0].k1 * np.arange(chunks) | position.sgn << 7
        numbers[36:44].view(f"<u{params.chunk_bytes}")[:] = params.zero
        numbers[48:].view(f"<u{params.chunk_bytes}")[:] = _bases(params)
    return numbers


def _codes(params: Params) -> NDArray[np.uint8]:
    """(3, MAX_CLASSES * 8) what the fields of each level say."""
    levels = np.zeros((3, MAX_CLASSES, _FIELDS), np.uint8)
    for c, code in enumerate(params.codes):
        first, second, third = _levels_of(code, c * _FIELDS)
        levels[0, c] = np.resize(first, _FIELDS)
        levels[1, c, : len(second)] = second
        levels[2, c, : len(third)] = third
    return levels


def _levels_of(code: Code, table_at: int) -> tuple[list[int], list[int], list[int]]:
    """The codes of a class whose tables begin at `table_at` on each level."""
    symbols = list(code.symbols)
    first, behind = symbols[: code.num_first], symbols[code.num_first :]
    if not code.g:
        return first, [], []
    links = [_LINK | table_at + _LEVEL2_FIELDS * i for i in range(code.g)]
    second, third = behind[: code.num_second], behind[code.num_second :]
    return first + links, [*second, _LINK | table_at], [*third, _LINK]


def _leaves(params: Params) -> NDArray[np.unsignedinteger]:
    """Of 32 bits, or 64, E bits at the top."""
    bits = max(32, params.chunk_bits)
    leaves = np.array(params.leaves, np.uint64) << np.uint64(bits - params.head_bits)
    return leaves.astype(f"<u{bits // 8}")


def _bases(params: Params) -> NDArray[np.unsignedinteger]:
    """(positions,) E bits at the top."""
    bases = np.array([position.base for position in params.positions], np.uint64)
    bases <<= np.uint64(params.chunk_bits - params.head_bits)
    return bases.astype(f"u{params.chunk_bytes}")


def _chunks(params: Params, num_chunks: int) -> list[NDArray[np.unsignedinteger]]:
    """Base and place of each chunk; of each lane, where its fields of level 1 begin.

    Filled up to a multiple of `num_chunks` chunks.
    """
    per_lane = _lane_chunks(params)
    k1 = np.array([code.k1 for code in params.codes], np.uint8)[params.cls]
    k1 = padded(k1, num_chunks).astype(np.int64)
    begins = np.cumsum(k1) - k1
    first_at = begins[::per_lane]
    cls_sgn = np.array([position.cls << 5 | position.sgn << 7 for position in params.positions], np.uint8)
    places = (begins - np.repeat(first_at, per_lane)).astype(np.uint8) | padded(cls_sgn, num_chunks)
    return [padded(_bases(params), num_chunks), places, first_at.astype("<u4")]
