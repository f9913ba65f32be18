"""Bits by part of rows of version 2, and their order-0 bound: worked out by hand."""

from typing import Any

import numpy as np
import pytest
from ibp2_cases import golden_named, golden_params, random_params, rows_for
from numpy.typing import NDArray

from gnn_ibp import IBP2Codec, IBPCodec
from gnn_ibp.ibp2.params import Params
from gnn_ibp.ibp2.parts import PARTS, order0_bits, part_bits
from gnn_ibp.ibp2.reference import stored_sizes
from gnn_ibp.ibp2.split import FLOATS, Split
from gnn_ibp.row_bytes import as_row_bytes

FLOAT32 = FLOATS["float32"]


def parts_of(rows: NDArray[Any], params: Params) -> list[int]:
    return list(part_bits(as_row_bytes(rows), params).values())


def test_parts_of_the_row_written_by_hand() -> None:
    row = np.array([[0.5, -0.75, 0.625, -0.3, np.inf, 0.9, 1.0, -1.5]], np.float32)
    params = golden_params(golden_named("example"))
    assert parts_of(row, params) == [0, 6 + 3 * 2 + 2 * 3, 9, 8 * 23, 7 + 6, 0]


def test_parts_of_a_sparse_row_and_of_one_that_stays_raw() -> None:
    rows = np.zeros((50, 64), np.float32)
    rows[:, ::8] = np.random.default_rng(0).uniform(1, 2, (50, 8))
    params = IBP2Codec.fit(rows).tables
    noise = np.random.default_rng(1).integers(1, 2**32, (2, 64), np.uint32).view(np.float32)
    assert params.levels == 1
    assert parts_of(rows[:1], params) == [64, 0, 0, 8 * 23, 8, 0]
    assert parts_of(np.concatenate([rows[:3], noise]), params) == [192, 0, 0, 552, 24, 2 * 64 * 32]


@pytest.mark.parametrize("kind", ["D", "S"])
def test_parts_are_all_that_is_stored(kind: str) -> None:
    rng = np.random.default_rng(2)
    for num_chunks in (1, 20, 300):
        params = random_params(rng, kind, num_chunks)
        rows = rows_for(rng, params, 6)
        bits = part_bits(rows, params)
        assert tuple(bits) == PARTS and min(bits.values()) >= 0
        assert sum(bits.values()) == 8 * stored_sizes(rows, params).sum()


def test_parts_of_version_1_are_all_that_is_stored() -> None:
    rows = np.random.default_rng(3).uniform(0.5, 1, (40, 33)).astype(np.float32)
    rows[::4] = np.random.default_rng(4).integers(0, 2**32, (10, 33), np.uint32).view(np.float32)
    codec = IBPCodec(np.full(33, 0xFF800000), np.full(33, 0x3F000000), 32)
    bits = codec.part_bits(as_row_bytes(rows))
    assert bits == {"participation": 990, "payload": 30 * 33 * 23, "padding": 1200, "raw rows": 10 * 33 * 32}
    assert sum(bits.values()) == 8 * codec.encode(rows).nbytes


def test_order_0_bound_is_entropy_of_heads_and_all_of_the_tails() -> None:
    rng = np.random.default_rng(5)
    rows = rng.uniform(1, 2, (512, 2)).astype(np.float32)
    assert order0_bits(as_row_bytes(rows), FLOAT32) == 1024 * 23
    rows[::2, 0] *= 4
    rows[::4, 1] *= -1
    assert order0_bits(as_row_bytes(rows), FLOAT32) == pytest.approx(1024 * 23 + 512 + entropy([128, 384]))
    rows[:256, 1] = 0
    of_columns = 512, entropy([64, 192, 256])
    assert order0_bits(as_row_bytes(rows), FLOAT32) == pytest.approx(768 * 23 + sum(of_columns))
    rows = np.array([[1, 2], [1, 4], [1, 2], [1, 4]], np.float32)
    assert order0_bits(as_row_bytes(rows), FLOAT32) == 4  # low bits that are always 0 take nothing
    numbers = np.array([[7], [7], [7], [9]], np.uint8)
    assert order0_bits(numbers, Split(8, 0, 8)) == pytest.approx(entropy([1, 3]))
    assert order0_bits(numbers[:0], Split(8, 0, 8)) == 0


def entropy(counts: list[int]) -> float:
    """Bits of all together."""
    of = np.array(counts)
    return float((of * np.log2(of.sum() / of)).sum())
