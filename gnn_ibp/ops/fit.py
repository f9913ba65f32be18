"""Masks for Invariant Bit Packing, from a sample of rows; `gnn_ibp.reference` defines them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp.reference import Masks
from gnn_ibp.rows import Bytes

Ones = NDArray[np.int64]


@dataclass(frozen=True)
class FittedPositions:
    """masks: for each width. ones: (8 * row_bytes,) in how many rows each bit is set."""

    masks: list[Masks]
    ones: Ones


def fit_positions(rows: Bytes, widths: Sequence[int]) -> FittedPositions:
    """Each position's bits by conditional majority, for each chunk width, which may be none.

    rows: uint8 (N, row_bytes).
    """
    row_bytes = rows.shape[1]
    masks, bitvals = np.empty((2, len(widths), row_bytes), np.uint8)
    ones = np.empty(8 * row_bytes, np.int64)
    _kernels.fit_positions(rows, list(widths), masks, bitvals, ones)
    return FittedPositions([_masks(*fitted) for fitted in zip(masks, bitvals, widths, strict=True)], ones)


def fit_threshold(ones: Ones, num_rows: int, chunk_bits: int, percent: int) -> Masks:
    """Bits that more than `percent` of 100 rows agree on. ones: those of `fit_positions`."""
    mask, bitval = np.empty((2, len(ones) // 8), np.uint8)
    _kernels.fit_threshold(ones, num_rows, percent, mask, bitval)
    return _masks(mask, bitval, chunk_bits)


def fit_sweep(rows: Bytes, ones: Ones, chunk_bits: int) -> Masks:
    """The best of the paper's thresholds. rows: uint8 (N, row_bytes). ones: those of `fit_positions`."""
    mask, bitval = np.empty((2, rows.shape[1]), np.uint8)
    _kernels.fit_sweep(rows, ones, chunk_bits, mask, bitval)
    return _masks(mask, bitval, chunk_bits)


def _masks(mask: Bytes, bitval: Bytes, chunk_bits: int) -> Masks:
    stored, native = f"<u{chunk_bits // 8}", f"uint{chunk_bits}"
    return Masks(mask.view(stored).astype(native), bitval.view(stored).astype(native))
