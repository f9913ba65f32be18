"""Rows and how they are stored, as a flat file that check_rows.cpp reads; everything is little-endian.

Case after case: int64 version of the format, chunk_bits, row_bytes, num_rows, num_damaged, params_bytes;
uint8 params (mask and bitval of version 1, the block of version 2), rows (num_rows, row_bytes); int64 sizes
of the stored rows, then of damaged ones; both, back to back.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import ibp2_cases
import numpy as np
from numpy.typing import NDArray

from gnn_ibp import IBPCodec, reference
from gnn_ibp.ibp2 import reference as ibp2_reference
from gnn_ibp.ibp2.params import Params
from gnn_ibp.reference import Masks

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "ibp_golden.json"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class RowCase:
    """rows: uint8 (N, row_bytes). stored: each row as it is stored. damaged: what is refused as a row."""

    params: Masks | Params
    rows: Bytes
    stored: list[bytes]
    damaged: list[bytes] = field(default_factory=list)

    def tobytes(self) -> bytes:
        if isinstance(self.params, Params):
            version, chunk_bits, params = 2, self.params.chunk_bits, self.params.to_bytes()
        else:
            version, chunk_bits = 1, 8 * self.params.mask.itemsize
            planes = [
                plane.astype(f"<u{chunk_bits // 8}") for plane in (self.params.mask, self.params.bitval)
            ]
            params = b"".join(plane.tobytes() for plane in planes)
        head = version, chunk_bits, self.rows.shape[1], len(self.rows), len(self.damaged), len(params)
        sizes = [len(row) for row in self.stored + self.damaged]
        parts = np.array(head, "<i8").tobytes(), params, self.rows.tobytes(), np.array(sizes, "<i8").tobytes()
        return b"".join([*parts, *self.stored, *self.damaged])


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


def ibp2_golden_cases() -> Iterator[RowCase]:
    """The golden vectors of version 2, damaged ones too."""
    for golden in ibp2_cases.GOLDEN:
        rows = [np.frombuffer(bytes.fromhex(row["row"]), np.uint8) for row in golden["rows"]]
        stored = [bytes.fromhex(row["stored"]) for row in golden["rows"]]
        damaged = [bytes.fromhex(row["stored"]) for row in golden["damaged"]]
        yield RowCase(ibp2_cases.golden_params(golden), np.array(rows), stored, damaged)


def ibp2_reference_cases(tables_per_length: int) -> Iterator[RowCase]:
    """Rows of version 2 under strange tables, of both kinds, as the reference stores them."""
    rng = np.random.default_rng(2)
    for num_chunks in ibp2_cases.NUM_CHUNKS:
        for kind in "DS" * tables_per_length:
            params = ibp2_cases.random_params(rng, kind, num_chunks)
            rows = ibp2_cases.rows_for(rng, params, 5)
            yield RowCase(params, rows, ibp2_reference.encode_rows(rows, params))


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
