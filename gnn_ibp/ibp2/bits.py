"""Bit streams of row format version 2: fields of any widths, each with its lowest bit first."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError

Bits = NDArray[np.uint8]
"""(num_bits,) zeros and ones."""

Ints = NDArray[np.int64]
Tops = NDArray[np.uint64]

IntOrInts = TypeVar("IntOrInts", int, Ints)


def join_fields(values: Ints | Tops, widths: Ints) -> Bits:
    """The lowest widths[i] bits, 0 to 64, of each of `values` (n,), one field after the other."""
    width = widths.max(initial=0)
    return _bit_matrix(values, width)[np.arange(width) < widths[:, None]]


def join_equal(values: Ints | Tops, width: int) -> Bits:
    """`join_fields` where all fields have the same width."""
    return _bit_matrix(values, width).reshape(-1)


def split_fields(bits: Bits, widths: Ints) -> Tops:
    """The (n,) fields that `join_fields` joined; `bits` may go on behind them."""
    width = widths.max(initial=0)
    matrix = np.zeros((len(widths), width), np.uint8)
    matrix[np.arange(width) < widths[:, None]] = bits[: widths.sum()]
    return _matrix_values(matrix)


def split_equal(bits: Bits, num_fields: int, width: int) -> Tops:
    """`split_fields` where all fields have the same width."""
    return _matrix_values(bits[: num_fields * width].reshape(num_fields, width))


class FieldStream:
    """Bits whose fields are read one kind after the other, never beyond the end."""

    def __init__(self, bits: Bits) -> None:
        self._left = bits

    def take(self, num_fields: int, width: int) -> Tops:
        """The next fields. Raises FormatError where so many are not left."""
        taken = num_fields * width
        if taken > len(self._left):
            raise FormatError("the variable stream does not fit")
        bits, self._left = self._left[:taken], self._left[taken:]
        return split_equal(bits, num_fields, width)


def to_bytes(bits: Bits) -> bytes:
    """Eight bits a byte, the first the lowest; zeros at the end."""
    return np.packbits(bits, bitorder="little").tobytes()


def from_bytes(stored: bytes) -> Bits:
    """All bits of `stored`."""
    return np.unpackbits(np.frombuffer(stored, np.uint8), bitorder="little")


def num_bytes(num_bits: IntOrInts) -> IntOrInts:
    """That hold so many bits."""
    return -(-num_bits // 8)


def _bit_matrix(values: Ints | Tops, width: int) -> NDArray[np.uint8]:
    """(n, width) the lowest bits of each of `values`, the lowest first."""
    columns = np.arange(width, dtype=np.uint64)
    return (values.astype(np.uint64)[:, None] >> columns).astype(np.uint8) & np.uint8(1)


def _matrix_values(matrix: NDArray[np.uint8]) -> Tops:
    """What `_bit_matrix` took apart, all other bits 0."""
    columns = np.arange(matrix.shape[1], dtype=np.uint64)
    values: Tops = (matrix.astype(np.uint64) << columns).sum(axis=1, dtype=np.uint64)
    return values
