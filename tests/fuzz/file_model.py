"""What a feature file says, read in the plainest way: the oracle of the fuzzer.

Nothing is checked but what decides whether a block or a row is damaged; a file that the library opens must
make sense to this model too.
"""

import struct
from functools import lru_cache

import numpy as np
from file_parts import FileParts
from numpy.typing import NDArray

from gnn_ibp.errors import FormatError
from gnn_ibp.format import checksum
from gnn_ibp.ibp2.params import Params
from gnn_ibp.ibp2.reference import decode_row
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import GROUP


class FileModel:
    """The rows of the file with these bytes, whose header can be read.

    row_bytes, num_rows. blocks_sound: whether every block has its checksum.
    """

    def __init__(self, data: bytes) -> None:
        self._parts = parts = FileParts.of(data)
        fields = parts.fields
        self.num_rows: int = fields["num_rows"]
        self.row_bytes = RowType(fields["dtype"], tuple(fields["row_shape"])).row_bytes
        self._version: int = fields["codec"]
        self._params = bytes(parts.sections["params"])
        self._condensed = fields["layout"] == "condensed"
        size = "I" if self.row_bytes // fields["unit"] > 0xFFFF else "H"
        self._sizes = _numbers(size, parts.sections["sizes"])
        self._bases = _numbers("Q", parts.sections["bases"])
        step: int = fields["block_bytes"]
        sums = [checksum(bytes(parts.rows[at : at + step])) for at in range(0, len(parts.rows), step)]
        self.blocks_sound = list(_numbers("Q", parts.sections["blocks"])) == sums

    def rows(self) -> list[bytes | None]:
        """Every row decoded; None for one that is damaged."""
        return [self.row(i) for i in range(self.num_rows)]

    def row(self, i: int) -> bytes | None:
        """Row i decoded; None where it is damaged."""
        stored = self.stored(i)
        if not self._parts.sections["bitmask"][i // 8] >> i % 8 & 1:
            return stored if len(stored) == self.row_bytes else None
        if self._version == 2:
            return decoded_by_tables(stored, self.row_bytes, self._params)
        return decoded(stored, self.row_bytes, self._params, in_place=not self._condensed)

    def stored(self, i: int) -> bytes:
        """Row i as it is stored; in place: all bytes that it owns."""
        if not self._condensed:
            return bytes(self._parts.rows[i * self.row_bytes : (i + 1) * self.row_bytes])
        unit, align = self._parts.fields["unit"], self._parts.fields["align"]
        group = i // GROUP
        before = self._sizes[group * GROUP : i]
        begin = self._bases[group] + sum(-(-size * unit // align) * align for size in before)
        return bytes(self._parts.rows[begin : begin + self._sizes[i] * unit])


@lru_cache(50_000)
def decoded(stored: bytes, row_bytes: int, params: bytes, in_place: bool) -> bytes | None:
    """The row that is encoded as `stored` (in place: as the beginning of it), or None where there is none.

    All bits at once, instead of one by one as gnn_ibp.reference does.
    """
    word_bytes = struct.unpack_from("<I", params)[0] // 8
    mask, bitval = _bits(params[4:], word_bytes).reshape(2, -1, 8 * word_bytes)
    head_bytes = -(-len(mask) // (8 * word_bytes)) * word_bytes
    head = np.unpackbits(np.frombuffer(stored[:head_bytes], np.uint8), bitorder="little")
    if len(head) < 8 * head_bytes:
        return None
    kept = ~(mask & head[: len(mask), None].astype(np.bool_))
    num_kept = int(kept.sum())
    size = head_bytes + -(-num_kept // (8 * word_bytes)) * word_bytes
    if size >= row_bytes or (len(stored) < size if in_place else len(stored) != size):
        return None
    payload = _bits(stored[head_bytes:size], word_bytes)
    if head[len(mask) :].any() or payload[num_kept:].any():
        return None
    row = bitval.copy()
    row[kept] = payload[:num_kept]
    return np.packbits(row).view(f">u{word_bytes}").astype(f"<u{word_bytes}").tobytes()


@lru_cache(50_000)
def decoded_by_tables(stored: bytes, row_bytes: int, params: bytes) -> bytes | None:
    """The same in version 2 of the row format, by its reference."""
    try:
        return decode_row(stored, _tables(row_bytes, params))
    except FormatError:
        return None


@lru_cache(100)
def _tables(row_bytes: int, params: bytes) -> Params:
    return Params.from_bytes(params, row_bytes // (params[1] // 8))


def _bits(words: bytes, word_bytes: int) -> NDArray[np.bool_]:
    """Those of little-endian words, each from the highest on."""
    high_first = np.frombuffer(words, f"<u{word_bytes}").astype(f">u{word_bytes}")
    return np.unpackbits(high_first.view(np.uint8)).astype(np.bool_)


def _numbers(kind: str, data: bytearray) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // struct.calcsize('<' + kind)}{kind}", data)
