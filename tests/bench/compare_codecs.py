"""Row formats, compressors of pieces and memcpy behind one interface, for tests/bench/compare.py."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
from compressors import Compressor

from gnn_ibp import ops
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import Bytes, Ids

Buffer = Bytes | bytes | bytearray
T = TypeVar("T")


class Stored(Protocol):
    """Rows as a codec keeps them."""

    @property
    def num_bytes(self) -> int:
        """Of all rows; what finds one of them again comes on top, for every codec."""

    def decode(self) -> Sequence[Buffer]:
        """All rows, in pieces."""

    def row(self, i: int) -> Buffer:
        """Row i, by a call of its own."""


class Codec(Protocol):
    def encode(self, raw: Bytes, piece_rows: int, num_threads: int) -> Stored:
        """raw: uint8 (N, row_bytes). piece_rows: rows in a piece. num_threads: of `Stored.decode`, too."""


class FormatRows:
    """In one of our row formats; decoded into memory that is there already."""

    def __init__(self, codec: RowCodec, raw: Bytes) -> None:
        self._codec = codec
        self._rows = ops.encode_rows(codec, raw, align=max(4, codec.unit))

    @property
    def num_bytes(self) -> int:
        assert self._rows.index, "encoded rows are condensed"
        return int(self._rows.index.size_bytes().sum())

    def decode(self) -> Sequence[Buffer]:
        ops.decode_all(self._codec, self._rows, self._out)
        return [self._out]

    def row(self, i: int) -> Buffer:
        return self.rows(np.array([i]))

    def rows(self, ids: Ids) -> Bytes:
        """(n, row_bytes) by one call."""
        out = np.empty((len(ids), self._codec.row_bytes), np.uint8)
        ops.gather_decode(ids, [self._source], out)
        return out

    @cached_property
    def _out(self) -> Bytes:
        return np.zeros((self._rows.num_rows, self._codec.row_bytes), np.uint8)

    @cached_property
    def _source(self) -> ops.Source:
        return ops.Source(self._rows, None, self._codec)


class RowFormat:
    """Each row by itself, on the threads that `timing.threads` sets."""

    def __init__(self, codec: RowCodec) -> None:
        self._codec = codec

    def encode(self, raw: Bytes, piece_rows: int, num_threads: int) -> FormatRows:
        return FormatRows(self._codec, raw)


class Pieces:
    """Compressed by themselves; decoded into fresh memory."""

    def __init__(self, raw: Bytes, piece_rows: int, coders: Sequence[Compressor]) -> None:
        self._row_bytes, self._piece_rows, self._coders = raw.shape[1], piece_rows, coders
        starts = range(0, len(raw), piece_rows)

        def encode(thread: int, share: slice) -> list[bytes]:
            return [coders[thread].encode(raw[at : at + piece_rows].tobytes()) for at in starts[share]]

        self._stored = _on_threads(encode, len(starts), len(coders))

    @property
    def num_bytes(self) -> int:
        return sum(map(len, self._stored))

    def decode(self) -> Sequence[Buffer]:
        def decode(thread: int, share: slice) -> list[bytes]:
            return [self._coders[thread].decode(stored) for stored in self._stored[share]]

        return _on_threads(decode, len(self._stored), len(self._coders))

    def row(self, i: int) -> Buffer:
        piece, at = divmod(i, self._piece_rows)
        begin = at * self._row_bytes
        return self._coders[0].decode(self._stored[piece])[begin : begin + self._row_bytes]


class PieceCodec:
    """make: a compressor for one thread."""

    def __init__(self, make: Callable[[], Compressor]) -> None:
        self._make = make

    def encode(self, raw: Bytes, piece_rows: int, num_threads: int) -> Pieces:
        return Pieces(raw, piece_rows, [self._make() for _ in range(num_threads)])


class Copied:
    """Rows as they are, copied into memory that is there already."""

    def __init__(self, raw: Bytes, num_threads: int) -> None:
        self._num_threads, self.num_bytes = num_threads, raw.nbytes
        self._rows = np.empty_like(raw)
        self._copy(raw, self._rows)

    def decode(self) -> Sequence[Buffer]:
        self._copy(self._rows, self._out)
        return [self._out]

    def row(self, i: int) -> Buffer:
        return self._rows[i].copy()

    @cached_property
    def _out(self) -> Bytes:
        return np.zeros_like(self._rows)

    def _copy(self, source: Bytes, target: Bytes) -> None:
        def copy(_: int, share: slice) -> list[None]:
            return [np.copyto(target[share], source[share])]

        _on_threads(copy, len(source), self._num_threads)


class Memcpy:
    """The baseline."""

    def encode(self, raw: Bytes, piece_rows: int, num_threads: int) -> Copied:
        return Copied(raw, num_threads)


def _on_threads(run: Callable[[int, slice], list[T]], num_items: int, num_threads: int) -> list[T]:
    """What `run(thread, share)` gives for an equal share of the items on each thread, joined."""
    if num_threads == 1:
        return run(0, slice(num_items))
    ends = [num_items * i // num_threads for i in range(num_threads + 1)]
    shares = [slice(*pair) for pair in pairwise(ends)]
    return [item for done in _pool(num_threads).map(run, range(num_threads), shares) for item in done]


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    """Threads that are kept: to start them takes as long as to copy a megabyte."""
    return ThreadPoolExecutor(num_threads)
