"""Row format version 2 in plain NumPy: its definition, and the oracle of the tests.

The sign and exponent of a chunk, its `top`, become a code of a few bits; its tail stays as it is. Rows of
kind S say by a bitmap which chunks differ from `zero`, and hold no others. A row is

    bitmap (kind S) | level 1 | other levels, RAW | zeros | high plane | low plane

each part from a byte on. The low plane has the ⌊w/8⌋ lowest bytes of each tail, the high plane the w mod 8
bits above them. The zeros make the size a multiple of max(4, S). A row that takes V * S bytes or more, or
holds what cannot be coded, is stored raw. `params`, `bitmap` and `codes` draw the parts. Slow,
and meant to be read.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.bitmap import Present, bitmap_sizes, read_bitmap, write_bitmap
from gnn_ibp.ibp2.bits import (
    IntOrInts,
    Ints,
    Tops,
    from_bytes,
    join_equal,
    num_bytes,
    split_equal,
    to_bytes,
)
from gnn_ibp.ibp2.codes import Codes
from gnn_ibp.ibp2.params import Params
from gnn_ibp.reference import Bytes, Words, as_chunks

BATCH_CHUNKS = 1 << 17
"""Chunks that are measured at a time: each takes some hundred bytes."""


def encode_rows(rows: Bytes, params: Params) -> list[bytes]:
    """Each row of uint8 (N, row_bytes) as stored."""
    return [encode_row(row.tobytes(), params) for row in rows]


def decode_rows(stored: Sequence[bytes], encoded: NDArray[np.bool_], params: Params) -> Bytes:
    """(N, row_bytes) the rows that `stored` holds, raw where not `encoded`. Raises FormatError on damage."""
    rows = np.empty((len(stored), params.row_bytes), np.uint8)
    for i, row in enumerate(stored):
        if not encoded[i] and len(row) != params.row_bytes:
            raise FormatError(f"row {i}: size {len(row)}, want {params.row_bytes} of a raw row")
        try:
            rows[i] = np.frombuffer(decode_row(row, params) if encoded[i] else row, np.uint8)
        except FormatError as error:
            raise FormatError(f"row {i}: {error}") from error
    return rows


def encode_row(row: bytes, params: Params) -> bytes:
    """The row as stored: it is encoded if that is shorter than `row`, else it is `row`."""
    chunks = as_chunks(np.frombuffer(row, np.uint8).reshape(1, -1), params.chunk_bits)[0]
    present = is_present(chunks, params)
    coded = chunks[present].astype(np.uint64)
    codes, tops = Codes(params, np.flatnonzero(present)), tops_of(coded, params)
    numbers = codes.numbers(tops)
    if (codes.unknown(numbers) | _has_low_bits(coded, params)).any():
        return row
    bitmap = write_bitmap(present, params.levels) if params.kind == "S" else b""
    front = bitmap + codes.write(tops, numbers)
    planes = _write_planes(coded, params)
    size = -(-(len(front) + len(planes)) // params.unit) * params.unit
    return front + planes.rjust(size - len(front), b"\0") if size < len(row) else row


def decode_row(stored: bytes, params: Params) -> bytes:
    """The row that `encode_row` encoded; not for rows stored raw.

    Raises FormatError, naming the first of the format's checks that fails.
    """
    if len(stored) >= params.row_bytes or len(stored) % params.unit:
        raise FormatError(
            f"the size is {len(stored)}, want a multiple of {params.unit} below {params.row_bytes}"
        )
    present = _read_present(stored, params)
    num_coded = len(present.positions)
    codes = Codes(params, present.positions)
    variable_at = present.num_bytes + num_bytes(int(codes.k1.sum()))
    planes_at = len(stored) - _planes_bytes(num_coded, params)
    if variable_at > planes_at:
        raise FormatError("the fixed parts do not fit")
    level1, variable = stored[present.num_bytes : variable_at], stored[variable_at:planes_at]
    tops = codes.read(from_bytes(level1), from_bytes(variable))
    tails = _read_planes(stored[planes_at:], num_coded, params)
    row = np.full(params.num_chunks, params.zero, np.uint64)
    row[present.positions] = tops << _top_shift(params) | tails << np.uint64(params.zero_bits)
    return row.astype(f"<u{params.chunk_bytes}").tobytes()


def stored_sizes(rows: Bytes, params: Params) -> Ints:
    """(N,) bytes that each row takes when stored."""
    sizes = [_batch_sizes(batch, params) for batch in batches(rows, params)]
    return np.concatenate([np.empty(0, np.int64), *sizes])


def batches(rows: Bytes, params: Params) -> Iterator[Bytes]:
    """`rows` (N, row_bytes), some at a time, one at least."""
    step = max(1, BATCH_CHUNKS // max(1, params.num_chunks))
    for first in range(0, len(rows), step):
        yield rows[first : first + step]


def _batch_sizes(rows: Bytes, params: Params) -> Ints:
    chunks = as_chunks(rows, params.chunk_bits)
    present = is_present(chunks, params)
    coded = chunks[present].astype(np.uint64)
    row_of, positions = np.nonzero(present)
    codes = Codes(params, positions)
    numbers = codes.numbers(tops_of(coded, params))

    def row_sums(of_chunks: NDArray[Any]) -> Ints:
        return np.bincount(row_of, of_chunks, len(rows)).astype(np.int64)

    sizes = num_bytes(row_sums(codes.k1)) + num_bytes(row_sums(codes.variable_bits(numbers)))
    sizes += _planes_bytes(np.count_nonzero(present, axis=1), params)
    if params.kind == "S":
        sizes += bitmap_sizes(present, params.levels)
    sizes = -(-sizes // params.unit) * params.unit
    must_be_raw = row_sums(codes.unknown(numbers) | _has_low_bits(coded, params)) > 0
    return np.where(must_be_raw, params.row_bytes, np.minimum(sizes, params.row_bytes))


def is_present(chunks: Words, params: Params) -> NDArray[np.bool_]:
    """Which of `chunks` are coded."""
    if params.kind == "D":
        return np.ones(chunks.shape, np.bool_)
    differs: NDArray[np.bool_] = chunks != chunks.dtype.type(params.zero)
    return differs


def _read_present(stored: bytes, params: Params) -> Present:
    if params.kind == "D":
        return Present(np.arange(params.num_chunks), 0)
    return read_bitmap(stored, params.num_chunks, params.levels)


def _has_low_bits(chunks: Tops, params: Params) -> NDArray[np.bool_]:
    """Which of `chunks` have a one among their z low bits."""
    has_low_bits: NDArray[np.bool_] = chunks & np.uint64((1 << params.zero_bits) - 1) != 0
    return has_low_bits


def tops_of(chunks: Tops, params: Params) -> Tops:
    """Sign and exponent of each chunk."""
    return chunks >> _top_shift(params)


def _top_shift(params: Params) -> np.uint64:
    """Bits below the top."""
    return np.uint64(params.chunk_bits - params.top_bits)


def _planes_bytes(num_chunks: IntOrInts, params: Params) -> IntOrInts:
    """Of both planes."""
    return num_bytes(num_chunks * (params.tail_bits % 8)) + num_chunks * (params.tail_bits // 8)


def _write_planes(chunks: Tops, params: Params) -> bytes:
    """High plane, low plane of the tails of `chunks`."""
    high_bits, low_bytes = params.tail_bits % 8, params.tail_bits // 8
    tails = chunks >> np.uint64(params.zero_bits)
    low = tails.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :low_bytes]
    return to_bytes(join_equal(tails >> np.uint64(8 * low_bytes), high_bits)) + low.tobytes()


def _read_planes(planes: bytes, num_chunks: int, params: Params) -> Tops:
    """(num_chunks,) the tails in the two planes."""
    high_bits, low_bytes = params.tail_bits % 8, params.tail_bits // 8
    low_at = len(planes) - num_chunks * low_bytes
    high = split_equal(from_bytes(planes[:low_at]), num_chunks, high_bits)
    low = np.zeros((num_chunks, 8), np.uint8)
    low[:, :low_bytes] = np.frombuffer(planes[low_at:], np.uint8).reshape(num_chunks, low_bytes)
    return high << np.uint64(8 * low_bytes) | low.view("<u8").reshape(-1).astype(np.uint64)
