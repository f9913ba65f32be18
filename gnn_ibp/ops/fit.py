"""Masks for Invariant Bit Packing, from a sample of rows; `gnn_ibp.reference` defines them."""

import numpy as np

from gnn_ibp import _kernels
from gnn_ibp.reference import Masks
from gnn_ibp.rows import Bytes


def fit_threshold(rows: Bytes, chunk_bits: int, percent: int) -> Masks:
    """Bits that more than `percent` of 100 rows agree on. rows: uint8 (N, row_bytes)."""
    mask, bitval = _empty(rows)
    _kernels.fit_threshold(rows, percent, mask, bitval)
    return _masks(mask, bitval, chunk_bits)


def fit_sweep(rows: Bytes, chunk_bits: int) -> Masks:
    """The best of the paper's thresholds. rows: uint8 (N, row_bytes)."""
    mask, bitval = _empty(rows)
    _kernels.fit_sweep(rows, chunk_bits, mask, bitval)
    return _masks(mask, bitval, chunk_bits)


def fit_positions(rows: Bytes, chunk_bits: int) -> Masks:
    """Each position's bits by conditional majority. rows: uint8 (N, row_bytes)."""
    mask, bitval = _empty(rows)
    _kernels.fit_positions(rows, chunk_bits, mask, bitval)
    return _masks(mask, bitval, chunk_bits)


def _empty(rows: Bytes) -> tuple[Bytes, Bytes]:
    return np.empty(rows.shape[1], np.uint8), np.empty(rows.shape[1], np.uint8)


def _masks(mask: Bytes, bitval: Bytes, chunk_bits: int) -> Masks:
    stored, native = f"<u{chunk_bits // 8}", f"uint{chunk_bits}"
    return Masks(mask.view(stored).astype(native), bitval.view(stored).astype(native))
