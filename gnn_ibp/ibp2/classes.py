"""Classes of positions in row format version 2: which ones share a code, and what it is relative to."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.bits import Ints, Tops
from gnn_ibp.ibp2.codebook import Assignment, Codebook, class_symbols, make_codebook
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.params import MAX_CLASSES
from gnn_ibp.ibp2.split import Split

MAX_ROUNDS = 16
BASE_STEPS = (0, -1, 1)
"""The bases that are tried, from the most frequent exponent."""


class Classes(NamedTuple):
    """What kind D is parametrized by; there is no class without positions."""

    assignment: Assignment
    codebook: Codebook


class Cheapest(NamedTuple):
    """The best assignment for a codebook, and the bits of all chunks of each position, (positions,)."""

    assignment: Assignment
    bits: Ints


def one_class(counts: TopCounts, split: Split) -> Classes:
    """All positions in one class."""
    assignment = _most_frequent(counts)
    return Classes(assignment, make_codebook(counts, assignment, 1, split))


def one_class_bits(counts: TopCounts, split: Split) -> int:
    """Bits of the codes of all chunks, all positions in one class."""
    return class_symbols(counts, _most_frequent(counts), 1, split)[0].num_bits


def find_classes(counts: TopCounts, split: Split) -> Classes:
    """Up to four classes: codes are made for the positions, then positions choose among the codes, and again.

    Positions of like entropy start together. Classes that lose all positions get a new start, once, with the
    positions that pay the most above their entropy.
    """
    if not len(counts.count):
        return one_class(counts, split)
    first = _most_frequent(counts)
    entropy = counts.entropy_bits()
    assignment = first._replace(cls=_by_rank(entropy))
    num_classes = int(assignment.cls.max()) + 1
    last_bits, has_restarted = None, False
    for _ in range(MAX_ROUNDS):
        codebook = make_codebook(counts, assignment, num_classes, split)
        assignment, bits = _cheapest(counts, first, codebook, split)
        empty = np.setdiff1d(np.arange(num_classes), assignment.cls)
        if len(empty) and not has_restarted:
            dearest = np.argsort(entropy - bits, kind="stable")[: len(empty)]
            assignment.cls[dearest] = empty
            has_restarted = True
        elif last_bits is not None and bits.sum() >= last_bits:
            break
        last_bits = bits.sum()
    used, cls = np.unique(assignment.cls, return_inverse=True)
    assignment = assignment._replace(cls=cls)
    return Classes(assignment, make_codebook(counts, assignment, len(used), split))


def _most_frequent(counts: TopCounts) -> Assignment:
    """Each position relative to its most frequent exponent and sign; all in class 0."""
    cls = np.zeros(counts.num_positions, np.int64)
    return Assignment(counts.most_frequent_e(), counts.mostly_negative(), cls)


def _by_rank(entropy: NDArray[np.float64]) -> Ints:
    """(V,) classes of equal size, the positions of the least entropy first."""
    num_positions = len(entropy)
    cls = np.empty(num_positions, np.int64)
    num_classes = min(MAX_CLASSES, num_positions)
    cls[np.argsort(entropy, kind="stable")] = np.arange(num_positions) * num_classes // num_positions
    return cls


def _cheapest(counts: TopCounts, first: Assignment, codebook: Codebook, split: Split) -> Cheapest:
    """The first of the cheapest choices: bases as in BASE_STEPS, own sign first, classes ascending."""
    assignment = Assignment(first.base.copy(), first.sgn.copy(), first.cls.copy())
    bits = np.zeros(counts.num_positions, np.int64)
    prices = codebook.bits.reshape(len(codebook.bits), -1)
    for block in counts.blocks():
        own, starts = slice(block.first, block.last), block.starts
        options = []
        for step in BASE_STEPS:
            d = (block.e - _moved(first.base[own], step, split)[block.position]) & split.head_mask
            leaf = codebook.leaf_numbers(d)
            for flip in range(1 + split.sign_bits):
                t = (block.s ^ first.sgn[own][block.position] ^ np.uint64(flip)).astype(np.int64)
                symbol = t * codebook.bits.shape[2] + leaf
                options += [
                    np.add.reduceat(own_prices.take(symbol) * block.count, starts) for own_prices in prices
                ]
        best = np.argmin(options, axis=0)
        bits[own] = np.min(options, axis=0)
        turn, assignment.cls[own] = np.divmod(best, len(prices))
        step_at, flip_of = np.divmod(turn, 1 + split.sign_bits)
        assignment.sgn[own] ^= flip_of.astype(np.uint64)
        assignment.base[own] = _moved(first.base[own], np.array(BASE_STEPS)[step_at], split)
    return Cheapest(assignment, bits)


def _moved(base: Tops, steps: Ints | int, split: Split) -> Tops:
    """`base` and `steps`, modulo 2^E."""
    return (base + np.asarray(steps, np.int64).view(np.uint64)) & split.head_mask
