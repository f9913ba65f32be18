"""The fit of row format version 2 on sampled rows: deterministic, and lossless whatever it finds."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gnn_ibp import reference
from gnn_ibp.ibp2.classes import Classes, find_classes, one_class, one_class_bits
from gnn_ibp.ibp2.counting import Counting, NumpyCounting
from gnn_ibp.ibp2.params import NUM_LEAVES, NUM_SYMBOLS, Kind, Params, Position
from gnn_ibp.ibp2.reference import stored_sizes
from gnn_ibp.ibp2.split import Split
from gnn_ibp.ibp2.values import most_frequent_values
from gnn_ibp.reference import Bytes, Masks, Words, as_chunks

MIN_ZERO_BITS = 3
"""Fewer low bits than these are not worth leaving out."""

MIN_EQUAL_PERCENT = 3
"""Kind S is tried if more of the chunks than these are equal."""


NUMPY = NumpyCounting()


class Fitted(NamedTuple):
    """num_bytes: that the rows take which `params` were fitted on."""

    params: Params
    num_bytes: int


def fit(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Fitted:
    """The parameters of version 2 that store `rows`, uint8 (N, row_bytes), in the fewest bytes."""
    tried = candidates(rows, split, counting)
    fitted = (Fitted(params, int(stored_sizes(rows, params).sum())) for params in tried)
    return min(fitted, key=lambda one: one.num_bytes)


def candidates(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Iterator[Params]:
    """Those among which `fit` chooses, the preferred first: kind D, then S."""
    yield fit_dense(rows, split, counting)
    yield from fit_sparse(rows, split, counting)


def choose(rows: Bytes, masks: Masks, version2: Fitted) -> Masks | Params:
    """Of version 1 and 2, both fitted on `rows`, the one that stores them in fewer bytes; 1 of equals."""
    version1_bytes = int(reference.stored_sizes(rows, masks).sum())
    return version2.params if version2.num_bytes < version1_bytes else masks


def fit_dense(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Params:
    """Kind D."""
    chunks = as_chunks(rows, split.chunk_bits)
    if split.sign_bits == 0:
        split = _cheapest_split(chunks, split, counting)
    counts = counting.tops(chunks, split)
    return _params("D", chunks.shape[1], split, _zero_bits(chunks, split), find_classes(counts, split))


def fit_sparse(rows: Bytes, split: Split, counting: Counting = NUMPY) -> Iterator[Params]:
    """Kind S, where enough chunks are equal: codes of tops, then of whole values; with 1, 2 and 3 levels."""
    chunks = as_chunks(rows, split.chunk_bits)
    equal = counting.commonest(chunks, MIN_EQUAL_PERCENT)
    if equal is None:
        return
    others = chunks[chunks != chunks.dtype.type(equal.value)]
    if split.sign_bits == 0:
        split = _cheapest_split(others[:, None], split, counting)
    whole = Split(split.chunk_bits, 0, split.chunk_bits)
    for one, zero_bits in ((split, _zero_bits(chunks, split)), (whole, 0)):
        if one == whole:
            counts = most_frequent_values(others, NUM_SYMBOLS)
        else:
            counts = counting.tops(others[:, None], one)
        classes = one_class(counts, one)
        for levels in (1, 2, 3):
            yield _params("S", chunks.shape[1], one, zero_bits, classes, levels, equal.value)


def _cheapest_split(chunks: Words, split: Split, counting: Counting) -> Split:
    """For integers (N, V): the tail that makes codes and tails together the shortest, the least of equals."""
    counts = counting.tops(chunks, split)
    best, fewest_bits = split, -1
    for tail in range(split.chunk_bits):
        tried = split._replace(head_bits=split.chunk_bits - tail)
        num_bits = one_class_bits(counts, tried) + chunks.size * (tail - _zero_bits(chunks, tried))
        if fewest_bits < 0 or num_bits < fewest_bits:
            best, fewest_bits = tried, num_bits
        counts = counts.without_low_bits(1)
    return best


def _zero_bits(chunks: Words, split: Split) -> int:
    """z: low bits that are 0 in all chunks; none without chunks."""
    ones = int(np.bitwise_or.reduce(chunks, axis=None))
    trailing_zeros = (ones & -ones).bit_length() - 1 if ones else split.chunk_bits
    zero_bits = min(trailing_zeros, split.chunk_bits - split.top_bits)
    return zero_bits if chunks.size and zero_bits >= MIN_ZERO_BITS else 0


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
        tuple(map(Position, cls.tolist(), sgn.tolist(), base.tolist())),
    )
