"""The checksum of a whole from those of its pieces."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from gnn_ibp.converters.crc32 import joined_crc32


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_checksum_of_two_pieces_is_that_of_the_whole(first: bytes, second: bytes) -> None:
    assert joined_crc32(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


def test_pieces_may_be_longer_than_memory() -> None:
    def of_zeros(num_bytes: int) -> int:  # a power of two, by doubling
        crc, done = zlib.crc32(b"\0"), 1
        while done < num_bytes:
            crc, done = joined_crc32(crc, crc, done), 2 * done
        return crc

    whole = joined_crc32(zlib.crc32(b"edges"), of_zeros(32 << 30), 32 << 30)
    pieces = zlib.crc32(b"edges")
    for _ in range(32):
        pieces = joined_crc32(pieces, of_zeros(1 << 30), 1 << 30)
    assert whole == pieces and of_zeros(1 << 20) == zlib.crc32(bytes(1 << 20))
