"""The rows that a codec is fitted on: a seeded random choice of bounded size."""

import numpy as np

from gnn_ibp.row_bytes import Array, as_row_bytes
from gnn_ibp.rows import Bytes, Ids

SAMPLE_ROWS = 32768
SAMPLE_BYTES = 64 << 20
"""Rows that a codec is fitted on are at most so many."""


def fit_sample(rows: Array, seed: int = 0) -> Bytes:
    """uint8 (n, row_bytes): of `rows` (N, ...) those that a codec is fitted on. Raises as `as_row_bytes`."""
    all_rows = as_row_bytes(rows)
    num_rows, row_bytes = all_rows.shape
    if num_rows <= _sample_rows(row_bytes):
        return all_rows
    return all_rows[fit_sample_ids(num_rows, row_bytes, seed)]


def fit_sample_ids(num_rows: int, row_bytes: int, seed: int = 0) -> Ids:
    """Ascending ids of the rows that a codec is fitted on: a seeded random choice, all where they are few."""
    wanted = _sample_rows(row_bytes)
    if num_rows <= wanted:
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(seed).choice(num_rows, wanted, replace=False))


def fit_sample_bytes(row_bytes: int) -> int:
    """The bytes of the rows that a codec is fitted on, where there are many."""
    return _sample_rows(row_bytes) * row_bytes


def _sample_rows(row_bytes: int) -> int:
    return max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // max(1, row_bytes)))
