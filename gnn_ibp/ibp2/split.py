"""How row format version 2 splits the chunks of a dtype into sign, exponent and the rest."""

import math
from typing import NamedTuple

import numpy as np

from gnn_ibp.reference import Words


class Split(NamedTuple):
    """chunk_bits W; sign_bits sf; head_bits E, of the exponent."""

    chunk_bits: int
    sign_bits: int
    head_bits: int

    @classmethod
    def of(cls, dtype: str, itemsize: int) -> "Split":
        """Of the dtype with this name, torch's or NumPy's; that of integers begins as whole numbers."""
        chunk_bits = 8 * math.gcd(itemsize, 8)
        return FLOATS.get(dtype, cls(chunk_bits, 0, chunk_bits))

    @property
    def top_bits(self) -> int:
        return self.sign_bits + self.head_bits

    @property
    def head_mask(self) -> np.uint64:
        """E ones."""
        return np.uint64((1 << self.head_bits) - 1)

    def tops(self, chunks: Words) -> Words:
        """Sign and exponent of each of `chunks`, as one number."""
        tops: Words = chunks >> chunks.dtype.type(self.chunk_bits - self.top_bits)
        return tops


FLOATS = {
    "float64": Split(64, 1, 11),
    "complex128": Split(64, 1, 11),
    "float32": Split(32, 1, 8),
    "complex64": Split(32, 1, 8),
    "bfloat16": Split(16, 1, 8),
    "float16": Split(16, 1, 5),
    "float8_e4m3fn": Split(8, 1, 4),
    "float8_e4m3fnuz": Split(8, 1, 4),
    "float8_e5m2": Split(8, 1, 5),
    "float8_e5m2fnuz": Split(8, 1, 5),
}
"""By the dtype's name, torch's or NumPy's. The chunks of integers are whole numbers, split where it pays."""
