"""How often each sign and exponent occurs at each position of sampled rows: what version 2 is fitted on."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.ibp2.bits import Ints, Tops
from gnn_ibp.reference import Words


class Totals(NamedTuple):
    """keys: the different ones, ascending, an array for each part of a key. sums: of each."""

    keys: list[NDArray[Any]]
    sums: Ints


def totals(count: Ints, *keys: NDArray[Any]) -> Totals:
    """`count` (m,) summed over equal keys, whose parts are (m,) each, the most significant first."""
    order = np.lexsort(keys[::-1])
    return totals_in_order(count[order], *(key[order] for key in keys))


def totals_in_order(count: Ints, *keys: NDArray[Any]) -> Totals:
    """`totals` where the keys ascend already."""
    is_new = np.ones(len(count), np.bool_)
    is_new[1:] = np.any([part[1:] != part[:-1] for part in keys], axis=0)
    first = np.flatnonzero(is_new)
    sums = np.add.reduceat(count, first) if len(first) else count[:0]
    return Totals([part[first] for part in keys], sums)


@dataclass(frozen=True)
class TopCounts:
    """The different (s, e) of each position, ascending, and how many of `num_rows` have it; all (m,).

    num_others: chunks with others, rarer ones; of one position at most.
    """

    num_rows: int
    num_positions: int
    position: Ints
    s: Tops
    e: Tops
    count: Ints
    num_others: int = 0

    @classmethod
    def of(cls, tops: Words, head_bits: int) -> "TopCounts":
        """Of `tops` (N, V), V positions; e is the lowest `head_bits` of each."""
        columns = [np.unique(column, return_counts=True) for column in tops.T]
        none = np.empty(0, np.int64)
        top = np.concatenate([none.astype(np.uint64), *(values for values, _ in columns)])
        position = np.repeat(np.arange(len(columns)), [len(values) for values, _ in columns])
        e = top & np.uint64((1 << head_bits) - 1)
        s = top >> np.uint64(head_bits) if head_bits < 64 else np.zeros_like(top)
        count = np.concatenate([none, *(count for _, count in columns)])
        return cls(len(tops), len(columns), position, s, e, count)

    def without_low_bits(self, num_bits: int) -> "TopCounts":
        """The same with the lowest `num_bits` of e cut off."""
        e = self.e >> np.uint64(num_bits)
        (position, s, e), count = totals_in_order(self.count, self.position, self.s, e)
        return TopCounts(self.num_rows, self.num_positions, position, s, e, count)

    def most_frequent_e(self) -> Tops:
        """(num_positions,) the smallest of equals."""
        of_both_signs = totals if self.s.any() else totals_in_order
        (position, e), count = of_both_signs(self.count, self.position, self.e)
        modes = np.zeros(self.num_positions, np.uint64)
        if len(count):
            first = np.flatnonzero(np.diff(position, prepend=-1))
            most = np.repeat(np.maximum.reduceat(count, first), np.diff(first, append=len(count)))
            is_most = np.flatnonzero(count == most)[::-1]
            modes[position[is_most]] = e[is_most]  # the last one that is assigned stays
        return modes

    def largest_counts(self) -> Ints:
        """(num_positions,) how many rows have the most frequent (s, e)."""
        largest = np.zeros(self.num_positions, np.int64)
        np.maximum.at(largest, self.position, self.count)
        return largest

    def mostly_negative(self) -> Tops:
        """(num_positions,) 1 where more than half have s = 1."""
        ones = np.bincount(self.position, self.count * (self.s == 1), self.num_positions)
        return (2 * ones > self.num_rows).astype(np.uint64)

    def entropy_bits(self) -> NDArray[np.float64]:
        """(num_positions,) order-0 entropy of all rows together; equal for equal counts in any order."""
        order = np.lexsort((self.count, self.position))
        count = self.count[order].astype(np.float64)
        inner = np.bincount(self.position[order], count * np.log2(count), self.num_positions)
        entropy: NDArray[np.float64] = self.num_rows * np.log2(max(1, self.num_rows)) - inner
        return entropy
