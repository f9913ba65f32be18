"""Sparse rows of format version 2 by the kernels: long ones, those of two values, odd addresses."""

from dataclasses import replace

import numpy as np
import pytest
from ibp2_cases import SPLITS, random_params, rows_for

from gnn_ibp import IBP2Codec, ops
from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2 import reference
from gnn_ibp.ibp2.params import Code, Params
from gnn_ibp.ibp2.positions import Position
from gnn_ibp.rows import PAD_BYTES, Bytes

LEVELS = [1, 2, 3]


def two_values(
    num_chunks: int, levels: int, split: tuple[int, int, int] = (32, 1, 8), zero: int = 0
) -> Params:
    """`zero` and one other value, whose sign is flipped where there is one and whose exponent is 3."""
    chunk_bits, sign_bits, head_bits = split
    code = Code(0, 0, bytes([sign_bits << 6 | 1]))
    leaves = (0, 5, *[0] * 30)
    base = (1 << head_bits) - 2  # and 5 make 3
    tail_bits = chunk_bits - sign_bits - head_bits
    position = Position(0, 0, base)
    return Params("S", num_chunks, *split, tail_bits, levels, (code,), leaves, zero, (position,))


def rows_of_two(params: Params, share: float, num_rows: int = 4) -> Bytes:
    """(num_rows, row_bytes): the other value in so much of them; none in the last row."""
    other = 3 << (params.chunk_bits - params.sign_bits - params.head_bits)
    other |= params.sign_bits << (params.chunk_bits - 1)
    is_other = np.random.default_rng(params.num_chunks).random((num_rows, params.num_chunks)) < share
    is_other[-1] = False
    chunks = np.where(is_other, np.uint64(other), np.uint64(params.zero))
    return chunks.astype(f"<u{params.chunk_bytes}").view(np.uint8)


def check_rows(params: Params, rows: Bytes) -> None:
    """Raises unless they are encoded as by the reference and come back."""
    codec = IBP2Codec(params)
    packed = codec.encode(rows)
    assert [packed.row(i) for i in range(len(rows))] == reference.encode_rows(rows, params)
    assert packed.bitmask[-1], "there is nothing to decode"
    assert np.array_equal(codec.decode(packed), rows)


@pytest.mark.parametrize("levels", LEVELS)
def test_long_rows_are_those_of_the_reference(levels: int) -> None:
    """Blocks of 256 coded chunks begin anywhere in groups of 512 positions, and level 3 has many bytes."""
    rng = np.random.default_rng(levels)
    for _ in range(8):
        params = replace(random_params(rng, "S", 9001), levels=levels)
        check_rows(params, rows_for(rng, params, 4))


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("split", [*SPLITS, (32, 0, 32), (64, 0, 64), (8, 0, 8)])
def test_rows_of_two_values_are_those_of_the_reference(levels: int, split: tuple[int, int, int]) -> None:
    for num_chunks in (8, 63, 64, 65, 511, 512, 513, 4097):
        for zero in (0, 0x5A):
            params = two_values(num_chunks, levels, split, zero)
            for share in (0.01, 0.5):
                check_rows(params, rows_of_two(params, share))


@pytest.mark.parametrize("levels", LEVELS)
def test_damage_of_rows_of_two_values_is_refused_as_by_the_reference(levels: int) -> None:
    params = two_values(1433, levels)
    codec = IBP2Codec(params)
    packed = codec.encode(rows_of_two(params, 0.013, 2)[:1])
    row, num_refused = packed.row(0), 0
    for bit in range(8 * len(row)):
        damaged = bytearray(row)
        damaged[bit // 8] ^= 1 << bit % 8
        packed.rows.data[PAD_BYTES : PAD_BYTES + len(row)] = np.frombuffer(damaged, np.uint8)
        try:
            wanted = reference.decode_row(bytes(damaged), params)
        except FormatError:
            num_refused += 1
            with pytest.raises(FormatError, match="row 0 is damaged"):
                codec.decode(packed)
        else:
            assert codec.decode(packed).tobytes() == wanted
    assert num_refused > 2


@pytest.mark.parametrize("chunk_bits", [8, 16, 32, 64])
def test_rows_are_written_wherever_the_output_lies_and_nowhere_else(chunk_bits: int) -> None:
    for num_chunks in (1, 3, 40, 600):
        params = two_values(num_chunks, 1, (chunk_bits, 0, chunk_bits), zero=0x21)
        rows = rows_of_two(params, 0.1, 1)
        codec = IBP2Codec(params)
        encoded = codec.encode(rows).rows
        for offset in range(65):
            memory = np.full(rows.nbytes + 130, 0xEE, np.uint8)
            ops.decode_all(codec, encoded, memory[offset:][: rows.nbytes].reshape(rows.shape))
            assert np.array_equal(memory[offset:][: rows.nbytes], rows[0])
            assert (np.delete(memory, np.arange(offset, offset + rows.nbytes)) == 0xEE).all()
