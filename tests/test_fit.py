"""Masks fitted by the kernels are the reference's, bit for bit, for any rows and any number of threads."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, ops, reference
from gnn_ibp.reference import Masks

CHUNK_BITS = (64, 32, 16, 8)
TILE_ROWS, COUNTED_ROWS, LINE_BYTES = 512, 2048, 64
"""Where the kernels begin anew: squares of bits turned at once, words counted at once, bytes read at once."""

Bytes = NDArray[np.uint8]


def same(ours: Masks, wanted: Masks) -> bool:
    return (
        ours.mask.dtype == wanted.mask.dtype
        and np.array_equal(ours.mask, wanted.mask)
        and np.array_equal(ours.bitval, wanted.bitval)
    )


def check(rows: Bytes, widths: Sequence[int]) -> None:
    """Counts, positions, sweep and thresholds of `rows` against the reference."""
    fitted = ops.fit_positions(rows, widths)
    ones = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    assert np.array_equal(fitted.ones, ones)
    assert len(fitted.masks) == len(widths)
    for width, masks in zip(widths, fitted.masks, strict=True):
        assert same(masks, reference.fit_positions(rows, width)), width
        assert same(ops.fit_sweep(rows, ones, width), reference.fit_sweep(rows, width)), width
        for percent in (50, 75, 99):
            wanted = reference.fit_threshold(rows, width, percent)
            assert same(ops.fit_threshold(ones, len(rows), width, percent), wanted), (width, percent)


@st.composite
def tied_rows(draw: st.DrawFn) -> Bytes:
    """Rows with constant columns, few different values, and bits that as many rows agree on as on others."""
    num_rows = draw(st.sampled_from([0, 1, 2, 3, 10, 63, 64, 65, 128, 130]))
    row_bytes = draw(st.sampled_from([1, 2, 4, 6, 8, 12, LINE_BYTES - 8, LINE_BYTES, LINE_BYTES + 2]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(0, 256, (draw(st.sampled_from([1, 2, 3, 8])), row_bytes), np.uint8)
    rows = values[rng.integers(0, len(values), num_rows)]
    if draw(st.booleans()):  # as often 0 as 1
        rows[::2, : row_bytes // 2] = ~rows[::2, : row_bytes // 2]
    noisy = rng.random(row_bytes) < draw(st.sampled_from([0, 0.2, 1]))
    rows[:, noisy] = rng.integers(0, 256, (num_rows, noisy.sum()), np.uint8)
    return rows


@settings(max_examples=60, deadline=None)
@given(tied_rows())
def test_any_rows_are_fitted_as_the_reference_does(rows: Bytes) -> None:
    check(rows, [bits for bits in CHUNK_BITS if rows.shape[1] % (bits // 8) == 0])


@pytest.mark.parametrize(
    "num_rows", [TILE_ROWS - 1, TILE_ROWS, TILE_ROWS + 1, COUNTED_ROWS - 1, COUNTED_ROWS, COUNTED_ROWS + 65]
)
def test_rows_beyond_a_tile_and_beyond_a_count_are_all_counted(num_rows: int) -> None:
    rng = np.random.default_rng(num_rows)
    rows = rng.standard_normal((num_rows, 2)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.3] = 0
    check(rows.view(np.uint8).reshape(num_rows, 8), CHUNK_BITS)


def test_nan_payloads_and_signed_zeros_are_only_bits() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 18)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.4] = -0.0
    bits = rows.view(np.uint32)
    bits[rng.random(rows.shape) < 0.4] |= 0x7F800001
    check(bits.view(np.uint8).reshape(300, 72), CHUNK_BITS)


@pytest.mark.parametrize("chunk_bits", [8, 16])
def test_rows_of_very_many_chunks_are_swept_as_the_reference_does(chunk_bits: int) -> None:
    """So many that sums as narrow as a chunk would overflow, and 80 % win that would not otherwise."""
    rows = np.zeros((10, 70_000), np.uint8)
    rows[:2, ::3] = 1
    ours = ops.fit_sweep(rows, ops.fit_positions(rows, []).ones, chunk_bits)
    assert same(ours, reference.fit_sweep(rows, chunk_bits))
    assert same(ours, reference.fit_threshold(rows, chunk_bits, 80))


@pytest.mark.parametrize("num_threads", [1, 2, 5, 16])
def test_lines_shared_among_threads_are_all_fitted(num_threads: int) -> None:
    rows = np.random.default_rng(2).integers(0, 4, (70, 5 * LINE_BYTES + 8), np.uint8)
    threads = ops.num_threads()
    try:
        ops.set_num_threads(num_threads)
        check(rows, [16, 8])
    finally:
        ops.set_num_threads(threads)


def test_every_width_is_fitted_as_if_it_were_the_only_one() -> None:
    rows = np.random.default_rng(3).standard_normal((3000, 32)).astype(np.float32)
    sizes = {bits: IBPCodec.fit(rows, bits).encode(rows).nbytes for bits in (64, 32, 16)}
    best = min(sizes, key=lambda bits: sizes[bits])
    assert IBPCodec.fit(rows) == IBPCodec.fit(rows, best)
