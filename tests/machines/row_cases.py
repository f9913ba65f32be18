"""Rows and how they are stored, as a flat file that check_rows.cpp reads; everything is little-endian.

Case after case: int64 chunk_bits, row_bytes, num_rows; uint8 mask (row_bytes), bitval (row_bytes), rows
(num_rows, row_bytes); int64 sizes (num_rows) of the stored rows; these, back to back.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, reference
from gnn_ibp.reference import Masks

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "ibp_golden.json"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class RowCase:
    """rows: uint8 (N, row_bytes). stored: each row as it is stored."""

    masks: Masks
    rows: Bytes
    stored: list[bytes]

    def tobytes(self) -> bytes:
        word_bytes = self.masks.mask.itemsize
        head = np.array([8 * word_bytes, self.rows.shape[1], len(self.rows)], "<i8")
        words = [plane.astype(f"<u{word_bytes}") for plane in (self.masks.mask, self.masks.bitval)]
        sizes = np.array([len(row) for row in self.stored], "<i8")
        parts = head, *words, self.rows, sizes
        return b"".join([*(part.tobytes() for part in parts), *self.stored])


def golden_cases() -> Iterator[RowCase]:
    """The golden vectors."""
    for golden in json.loads(GOLDEN.read_text()):
        word = f"uint{8 * golden['chunk_bytes']}"
        planes = [np.array([int(value, 16) for value in golden[name]], word) for name in ("mask", "bitval")]
        rows = [np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]]
        stored = [bytes.fromhex(row["stored"]) for row in golden["rows"]]
        yield RowCase(Masks(*planes), np.array(rows), stored)


def reference_cases(rows_per_case: int) -> Iterator[RowCase]:
    """Random masks and rows of every chunk width and many lengths, stored as the reference stores them."""
    rng = np.random.default_rng(0)
    for chunk_bits in (8, 16, 32, 64):
        for num_chunks in (1, 2, 7, 8, 9, 31, 33, 64, 100):
            masks = random_masks(rng, chunk_bits, num_chunks)
            rows = random_rows(rng, masks, rows_per_case)
            yield RowCase(masks, rows, [reference.encode_row(row.tobytes(), masks) for row in rows])


def kernel_cases(rows_per_case: int) -> Iterator[RowCase]:
    """Many rows of the usual lengths, stored as the kernels of this machine store them."""
    rng = np.random.default_rng(1)
    for chunk_bits, num_chunks in ((64, 64), (32, 128), (32, 602), (16, 128), (8, 300)):
        masks = random_masks(rng, chunk_bits, num_chunks)
        rows = random_rows(rng, masks, rows_per_case)
        packed = IBPCodec(masks.mask, masks.bitval, chunk_bits).encode(rows)
        yield RowCase(masks, rows, [packed.row(i) for i in range(len(rows))])


def random_masks(rng: np.random.Generator, chunk_bits: int, num_chunks: int) -> Masks:
    """Half of the bits are invariant; in some chunks all, in some none."""
    word = f"uint{chunk_bits}"
    mask, values = (rng.integers(0, 256, num_chunks * chunk_bits // 8, np.uint8).view(word) for _ in "mv")
    mask[rng.random(num_chunks) < 0.1] = 0
    mask[rng.random(num_chunks) < 0.1] = np.iinfo(word).max
    return Masks(mask, values & mask)


def random_rows(rng: np.random.Generator, masks: Masks, num_rows: int) -> Bytes:
    """Of the first row no chunk has the invariant bits, of the last all have them."""
    shape = num_rows, masks.mask.nbytes
    rows = rng.integers(0, 256, shape, np.uint8).view(masks.mask.dtype)
    match = rng.random(rows.shape) < np.linspace(0, 1, num_rows)[:, None]
    rows[match] = ((rows & ~masks.mask) | masks.bitval)[match]
    return rows.view(np.uint8)
