"""Bitmaps of bitmaps in row format version 2: which chunks of a sparse row are there.

B1 has a bit for each chunk, B2 one for each byte of B1, B3 one for each byte of B2: 1 where that is not 0.
Stored are B`levels` whole, then the bytes that are not 0 of the bitmaps below it, down to B1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError
from gnn_ibp.ibp2.bits import Ints, num_bytes


class Present(NamedTuple):
    """positions: ascending, of the chunks that are there. num_bytes: of the stored bitmap."""

    positions: Ints
    num_bytes: int


def bitmap_sizes(present: NDArray[np.bool_], levels: int) -> Ints:
    """(N,) bytes that the bitmap of each row takes; `present` is (N, V)."""
    *listed, whole = _bitmaps(present, levels)
    sizes = np.full(len(present), whole.shape[1], np.int64)
    for bitmap in listed:
        sizes += np.count_nonzero(bitmap, axis=1)
    return sizes


def write_bitmap(present: NDArray[np.bool_], levels: int) -> bytes:
    """The bitmap of one row, `present` is (V,)."""
    *listed, whole = (bitmap[0] for bitmap in _bitmaps(present[None], levels))
    return b"".join([whole.tobytes(), *(bitmap[bitmap != 0].tobytes() for bitmap in reversed(listed))])


def read_bitmap(stored: bytes, num_chunks: int, levels: int) -> Present:
    """The bitmap that `stored` begins with. Raises FormatError where it breaks a rule."""
    num_bits = [num_chunks]
    for _ in range(levels):
        num_bits.append(num_bytes(num_bits[-1]))

    there, at = np.arange(num_bits[levels]), 0
    for bits_below in reversed(num_bits[:levels]):
        listed = np.frombuffer(stored[at : at + len(there)], np.uint8)
        if len(listed) < len(there):
            raise FormatError("the bitmap does not fit")
        if at and not listed.all():
            raise FormatError("a listed byte is 0")
        at += len(listed)
        bitmap = np.zeros(num_bytes(bits_below), np.uint8)
        bitmap[there] = listed
        there = np.flatnonzero(np.unpackbits(bitmap, bitorder="little"))
        if len(there) and there[-1] >= bits_below:
            raise FormatError(f"the bitmap has bit {there[-1]}, a bit at or above {bits_below}")
    return Present(there, at)


def _bitmaps(present: NDArray[np.bool_], levels: int) -> list[NDArray[np.uint8]]:
    """B1, B2, …: (N, bytes) each."""
    bitmaps = [np.packbits(present, axis=1, bitorder="little")]
    while len(bitmaps) < levels:
        bitmaps.append(np.packbits(bitmaps[-1] != 0, axis=1, bitorder="little"))
    return bitmaps
