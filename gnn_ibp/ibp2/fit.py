"""The fit of row format version 2 on sampled rows: deterministic, and lossless whatever it finds."""

from collections.abc import Iterator

import numpy as np

from gnn_ibp.ibp2.classes import Classes, find_classes, one_class, one_class_bits
from gnn_ibp.ibp2.counting import Counting, NumpyCounting
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.params import NUM_LEAVES, NUM_SYMBOLS, Kind, Params
from gnn_ibp.ibp2.positions import Positions
from gnn_ibp.ibp2.reference import stored_sizes
from gnn_ibp.ibp2.split import Split
from gnn_ibp.ibp2.values import most_frequent_values
from gnn_ibp.reference import Bytes, Words, as_chunks

MIN_ZERO_BITS = 3
"""Fewer low bits than these are not worth leaving out."""

TABLE_BITS = 16
"""Heads of so many bits are counted anew, longer ones by joining those that are whole chunks."""

MIN_EQUAL_PERCENT = 3
"""Kind S is tried if more of the chunks than these are equal."""


NUMPY = NumpyCounting()


def fit(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Params:
    """The parameters of version 2 that store `rows`, uint8 (N, row_bytes), in the fewest bytes."""
    return min(candidates(rows, split, counting), key=lambda params: int(stored_sizes(rows, params).sum()))


def candidates(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Iterator[Params]:
    """Those among which `fit` chooses, the preferred first: kind D, then S."""
    yield fit_dense(rows, split, counting)
    yield from fit_sparse(rows, split, counting)


def fit_dense(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Params:
    """Kind D."""
    chunks = as_chunks(rows, split.chunk_bits)
    trailing_zeros = count_trailing_zeros(chunks)
    if split.sign_bits == 0:
        split = _cheapest_split(chunks, split, trailing_zeros, counting)
    zero_bits = _zero_bits(trailing_zeros, split)
    return _params("D", chunks.shape[1], split, zero_bits, find_classes(counting.tops(chunks, split), split))


def fit_sparse(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Iterator[Params]:
    """Kind S, where enough chunks are equal: codes of tops, then of whole values; with 1, 2 and 3 levels."""
    chunks = as_chunks(rows, split.chunk_bits)
    equal = counting.commonest(chunks, MIN_EQUAL_PERCENT)
    if equal is None:
        return
    others = chunks[chunks != chunks.dtype.type(equal.value)]
    trailing_zeros = count_trailing_zeros(chunks)
    if split.sign_bits == 0:
        split = _cheapest_split(others[:, None], split, trailing_zeros, counting)
    whole = Split(split.chunk_bits, 0, split.chunk_bits)
    for one, zero_bits in ((split, _zero_bits(trailing_zeros, split)), (whole, 0)):
        if one == whole:
            counts = most_frequent_values(others, NUM_SYMBOLS)
        else:
            counts = counting.tops(others[:, None], one)
        classes = one_class(counts, one)
        for levels in (1, 2, 3):
            yield _params("S", chunks.shape[1], one, zero_bits, classes, levels, equal.value)


def _cheapest_split(chunks: Words, split: Split, trailing_zeros: int, counting: Counting) -> Split:
    """For integers (N, V): the tail that makes codes and tails together the shortest, the least of equals.

    trailing_zeros: with which all chunks end, those included that kind S leaves out.

    From the longest tail on, for as long as a shorter one can be better: short ones are slow to count.
    """
    whole: TopCounts | None = None
    best, fewest_bits = split, -1
    for tail in reversed(range(split.chunk_bits)):
        tried = split._replace(head_bits=split.chunk_bits - tail)
        if tried.head_bits <= TABLE_BITS:
            counts = counting.tops(chunks, tried)
        else:
            whole = whole or counting.tops(chunks, split)
            counts = whole.without_low_bits(tail)
        num_bits = one_class_bits(counts, tried) + chunks.size * (tail - _zero_bits(trailing_zeros, tried))
        if fewest_bits < 0 or num_bits <= fewest_bits:
            best, fewest_bits = tried, num_bits
        if _least_bits(counts, split, trailing_zeros) > fewest_bits:
            break
    return best


def _least_bits(counts: TopCounts, split: Split, trailing_zeros: int) -> int:
    """That all chunks take at least, if tails are no longer than those of the heads that are counted.

    A code has no more than 20 symbols, which stand for one head each at a position; longer heads are no more
    frequent. All others are RAW: 6 bits and the head, besides the tail.
    """
    num_symbols = np.minimum(counts.num_rows, NUM_SYMBOLS * counts.largest_counts()).sum()
    num_raw = counts.num_rows * counts.num_positions - int(num_symbols)
    return num_raw * (6 + split.chunk_bits - trailing_zeros)


def count_trailing_zeros(chunks: Words) -> int:
    """Low bits that are 0 in all chunks; none without chunks."""
    ones = int(np.bitwise_or.reduce(chunks, axis=None))
    all_zeros = 8 * chunks.itemsize if chunks.size else 0
    return (ones & -ones).bit_length() - 1 if ones else all_zeros


def _zero_bits(trailing_zeros: int, split: Split) -> int:
    """z, of chunks with so many zeros at the end."""
    zero_bits = min(trailing_zeros, split.chunk_bits - split.top_bits)
    return zero_bits if zero_bits >= MIN_ZERO_BITS else 0


def _params(
    kind: Kind,
    num_chunks: int,
    split: Split,
    zero_bits: int,
    classes: Classes,
    levels: int = 0,
    zero: int = 0,
) -> Params:
    (base, sgn, cls), codebook = classes
    leaves = codebook.leaves.tolist()
    return Params(
        kind,
        num_chunks,
        *split,
        zero_bits,
        levels,
        codebook.codes,
        tuple(leaves + [0] * (NUM_LEAVES - len(leaves))),
        zero,
        Positions(cls, sgn.astype(np.int64), base),
    )
