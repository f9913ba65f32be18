"""The most frequent symbols of a class: all its positions together, in bounded memory however many differ."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.bits import Ints, Tops
from gnn_ibp.ibp2.counts import totals
from gnn_ibp.ibp2.split import Split

TABLE_BITS = 16
"""Tops of so many bits are counted in a table."""

BUCKETS = 1 << 16
"""Longer ones fall into so many buckets, by a hash."""

FIRST_COUNTS, MAX_COUNTS = 1 << 16, 1 << 20
"""Counts that are summed exactly at a time; the first, those of the fullest buckets, tell what is enough."""

_HASH = np.uint64(0x9E3779B97F4A7C15)


class Piece(NamedTuple):
    """Class, t and d of symbols, and how many chunks have them; (m,) each. The same may come again."""

    cls: Ints
    t: Tops
    d: Tops
    num_chunks: Ints


class Pooled(NamedTuple):
    """Symbols of one class, ascending, and how many chunks have each; num_others have others, rarer ones."""

    t: Tops
    d: Tops
    num_chunks: Ints
    num_others: int


_NO_INTS, _NO_TOPS = np.empty(0, np.int64), np.empty(0, np.uint64)
_NOTHING = Piece(_NO_INTS, _NO_TOPS, _NO_TOPS, _NO_INTS)

Pieces = Callable[[], Iterator[Piece]]
"""All symbols, the same at every call."""


def most_frequent_of_classes(
    pieces: Pieces, num_counts: int, num_classes: int, split: Split, wanted: int
) -> list[Pooled]:
    """Of each class the `wanted` most frequent symbols, of equals the smallest; or all where they are few.

    num_counts: of all pieces together.
    """
    if split.top_bits <= TABLE_BITS:
        return _in_tables(pieces, num_classes, split)
    if num_counts <= MAX_COUNTS:
        return _at_once(pieces, num_classes)
    buckets = _Buckets(pieces, num_classes)
    return [buckets.most_frequent(cls, wanted) for cls in range(num_classes)]


def _in_tables(pieces: Pieces, num_classes: int, split: Split) -> list[Pooled]:
    size = 2 << split.head_bits
    table = np.zeros(num_classes * size)  # sums of chunks: whole numbers, below 2^53
    for cls, t, d, count in pieces():
        key = cls * size + (t << np.uint64(split.head_bits) | d).astype(np.int64)
        table += np.bincount(key, count, len(table))
    pooled = []
    for counts in table.reshape(num_classes, size).astype(np.int64):
        symbols = np.flatnonzero(counts)
        t, d = np.divmod(symbols.astype(np.uint64), np.uint64(size // 2))
        pooled.append(Pooled(t, d, counts[symbols], 0))
    return pooled


def _at_once(pieces: Pieces, num_classes: int) -> list[Pooled]:
    cls, t, d, count = (np.concatenate(parts) for parts in zip(_NOTHING, *pieces(), strict=True))
    pooled = []
    for one in range(num_classes):
        own = cls == one
        (own_t, own_d), sums = totals(count[own], t[own], d[own])
        pooled.append(Pooled(own_t, own_d, sums, 0))
    return pooled


class _Buckets:
    """Chunks and counts of each class and bucket.

    No symbol has more chunks than its bucket: the fullest are summed first, and those that hold fewer chunks
    than the least of the `wanted` that were found not at all.
    """

    def __init__(self, pieces: Pieces, num_classes: int) -> None:
        self._pieces = pieces
        self._num_chunks = np.zeros(num_classes * BUCKETS)
        self._num_counts = np.zeros(num_classes * BUCKETS, np.int64)
        for piece in pieces():
            bucket = _bucket(piece)
            self._num_chunks += np.bincount(bucket, piece.num_chunks, len(self._num_chunks))
            self._num_counts += np.bincount(bucket, minlength=len(self._num_counts))

    def most_frequent(self, cls: int, wanted: int) -> Pooled:
        own = slice(cls * BUCKETS, (cls + 1) * BUCKETS)
        num_chunks, num_counts = self._num_chunks[own].astype(np.int64), self._num_counts[own]
        left = np.argsort(-num_chunks, kind="stable")[: np.count_nonzero(num_chunks)]
        best = Pooled(_NO_TOPS, _NO_TOPS, _NO_INTS, 0)
        limit = FIRST_COUNTS
        while len(left):
            taken = max(1, int(np.searchsorted(np.cumsum(num_counts[left]), limit, "right")))
            t, d, count = self._symbols(cls, left[:taken])
            best = _largest(
                np.append(best.t, t), np.append(best.d, d), np.append(best.num_chunks, count), wanted
            )
            least = best.num_chunks.min() if len(best.num_chunks) == wanted else 0
            left = left[taken:]
            left = left[num_chunks[left] >= least]
            limit = MAX_COUNTS
        return best._replace(num_others=int(num_chunks.sum() - best.num_chunks.sum()))

    def _symbols(self, cls: int, buckets: Ints) -> tuple[Tops, Tops, Ints]:
        """Those in `buckets` of the class, each once."""
        is_asked = np.zeros(len(self._num_counts), np.bool_)
        is_asked[cls * BUCKETS + buckets] = True
        found = []
        for piece in self._pieces():
            asked: NDArray[np.bool_] = is_asked[_bucket(piece)]
            found.append([part[asked] for part in piece[1:]])
        t, d, count = (np.concatenate(parts) for parts in zip(*found, strict=True))
        (t, d), count = totals(count, t, d)
        return t, d, count


def _bucket(piece: Piece) -> Ints:
    """(m,) the number of the class and bucket of each symbol."""
    key = (piece.d << np.uint64(1) | piece.t) * _HASH
    return piece.cls * BUCKETS + (key >> np.uint64(48)).astype(np.int64)


def _largest(t: Tops, d: Tops, count: Ints, wanted: int) -> Pooled:
    order = np.sort(np.lexsort((d, t, -count))[:wanted])
    return Pooled(t[order], d[order], count[order], 0)
