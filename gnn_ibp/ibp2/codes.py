"""Codes of row format version 2: the tops of chunks as fields on three levels, and back.

A symbol goes by its number in its code's list A, B, C; the number behind the last one means RAW.

    number               level 1, k1 bits         level 2, 2 bits   level 3, 3 bits     RAW, sf + E bits
    below |A|            number
    i = number - |A|     |A| + floor(i / 4)       i mod 4           (where i is below |B|)
    number - |A| - |B|   2^k1 - 1                 3                 that, below 7
    RAW                  2^k1 - 1                 3                 7                   the top
"""

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.bits import Bits, FieldStream, Ints, Tops, join_equal, join_fields, split_fields, to_bytes
from gnn_ibp.ibp2.params import Params

BLOCK = 256
"""Chunks whose fields behind level 1 stand together."""


class Codes:
    """The codes of the n chunks at `positions` (n,) of rows, in this order."""

    def __init__(self, params: Params, positions: Ints) -> None:
        if params.kind == "S":
            positions = np.zeros_like(positions)  # one of each for all
        cls = params.cls[positions]
        self.tops = params.tops[positions]
        """(n, 20) what the symbols stand for; unused ones repeat the first."""
        self.k1 = np.array([code.k1 for code in params.codes])[cls]
        self.num_first = np.array([code.num_first for code in params.codes])[cls]
        self.num_second = np.array([code.num_second for code in params.codes])[cls]
        self.raw = np.array([len(code.symbols) for code in params.codes])[cls]
        """(n,) the number that means RAW."""
        self.top_bits = params.top_bits

    def numbers(self, tops: Tops) -> Ints:
        """(n,) of the first symbol that stands for each of `tops` (n,), else of RAW."""
        fits = self.tops == tops[:, None]
        return np.where(fits.any(axis=1), fits.argmax(axis=1), self.raw)

    def unknown(self, numbers: Ints) -> NDArray[np.bool_]:
        """(n,) which are RAW where the code has no RAW."""
        unknown: NDArray[np.bool_] = (numbers == self.raw) & (self.num_second == 0)
        return unknown

    def variable_bits(self, numbers: Ints) -> Ints:
        """(n,) bits behind level 1."""
        second, third = numbers >= self.num_first, numbers >= self.num_first + self.num_second
        bits: Ints = 2 * second + 3 * third + self.top_bits * (numbers == self.raw)
        return bits

    def write(self, tops: Tops, numbers: Ints) -> bytes:
        """The stream of level 1, then that of the others; none of the `numbers` of `tops` is `unknown`."""
        behind_first = numbers - self.num_first
        second, third, raw = behind_first >= 0, behind_first >= self.num_second, numbers == self.raw
        i = np.minimum(behind_first, self.num_second)
        f1, f2, f3 = np.where(second, self.num_first + i // 4, numbers), i % 4, behind_first - self.num_second
        variable = [np.empty(0, np.uint8)]
        for begin in range(0, len(tops), BLOCK):
            block = slice(begin, begin + BLOCK)
            variable.append(join_equal(f2[block][second[block]], 2))
            variable.append(join_equal(f3[block][third[block]], 3))
            variable.append(join_equal(tops[block][raw[block]], self.top_bits))
        return to_bytes(join_fields(f1, self.k1)) + to_bytes(np.concatenate(variable))

    def read(self, level1: Bits, variable: Bits) -> Tops:
        """(n,) tops out of the two streams. Raises FormatError where `variable` is too short."""
        f1 = split_fields(level1, self.k1).astype(np.int64)
        numbers, raw_tops, stream = f1.copy(), np.zeros(len(f1), np.uint64), FieldStream(variable)
        for begin in range(0, len(f1), BLOCK):
            block = slice(begin, begin + BLOCK)
            second = begin + np.flatnonzero(f1[block] >= self.num_first[block])
            i = 4 * (f1[second] - self.num_first[second]) + stream.take(len(second), 2).astype(np.int64)
            numbers[second] = self.num_first[second] + i
            third = second[i == self.num_second[second]]
            numbers[third] += stream.take(len(third), 3).astype(np.int64)
            raw = third[numbers[third] == self.raw[third]]
            raw_tops[raw] = stream.take(len(raw), self.top_bits)
        is_raw = numbers == self.raw
        symbol_tops = self.tops[np.arange(len(f1)), np.where(is_raw, 0, numbers)]
        return np.where(is_raw, raw_tops, symbol_tops)
