"""How often each sign and exponent occurs at each position of sampled rows: what version 2 is fitted on."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gnn_ibp.ibp2.bits import Ints, Tops
from gnn_ibp.reference import Words

BLOCK = 1 << 17
"""Counts that are looked at together: arrays of them, a word each, are small beside a sample."""


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
class Block:
    """The counts of positions `first` to `last`, (m,) each; position begins with 0 at `first`."""

    first: int
    last: int
    position: Ints
    s: Tops
    e: Tops
    count: Ints

    @property
    def starts(self) -> Ints:
        """(last - first,) where the counts of each position begin; each has some."""
        return np.flatnonzero(np.diff(self.position, prepend=-1))

    def most_frequent_e(self) -> Tops:
        """(last - first,) the smallest of equals."""
        of_both_signs = totals if self.s.any() else totals_in_order
        (position, e), count = of_both_signs(self.count, self.position, self.e)
        modes = np.zeros(self.last - self.first, np.uint64)
        if len(count):
            first = np.flatnonzero(np.diff(position, prepend=-1))
            most = np.repeat(np.maximum.reduceat(count, first), np.diff(first, append=len(count)))
            is_most = np.flatnonzero(count == most)[::-1]
            modes[position[is_most]] = e[is_most]  # the last one that is assigned stays
        return modes

    def largest_counts(self) -> Ints:
        """(last - first,) how many rows have the most frequent (s, e)."""
        largest = np.zeros(self.last - self.first, np.int64)
        np.maximum.at(largest, self.position, self.count)
        return largest

    def num_negative(self) -> NDArray[np.float64]:
        """(last - first,) how many rows have s = 1."""
        return self._sums(self.position, self.count * (self.s == 1))

    def inner_entropy(self) -> NDArray[np.float64]:
        """(last - first,) sums of count * log2(count), from the smallest on."""
        order = np.lexsort((self.count, self.position))
        count = self.count[order].astype(np.float64)
        return self._sums(self.position[order], count * np.log2(count))

    def _sums(self, position: Ints, terms: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(position, terms, self.last - self.first).astype(np.float64)


@dataclass(frozen=True)
class TopCounts:
    """The different tops of each position, ascending, and how many of `num_rows` have it; (m,) both.

    Tops are s << head_bits | e. There may be as many of them as chunks: both arrays are of narrow dtypes.
    starts: (num_positions + 1,) where those of each position begin. num_others: chunks with others, rarer
    ones; of one position at most. cut_bits: low bits of `top` that do not count.
    """

    num_rows: int
    head_bits: int
    starts: Ints
    top: Words
    count: NDArray[np.integer[Any]]
    num_others: int = 0
    cut_bits: int = 0

    @classmethod
    def of(cls, tops: Words, head_bits: int) -> "TopCounts":
        """Of `tops` (N, V), V positions; e is the lowest `head_bits` of each."""
        num_rows, num_positions = tops.shape
        starts = np.zeros(num_positions + 1, np.int64)
        top_type, count_type = np.min_scalar_type(tops.max(initial=0)), np.min_scalar_type(num_rows)
        top, count = [np.empty(0, top_type)], [np.empty(0, count_type)]
        step = max(1, BLOCK // max(1, num_rows))
        for first in range(0, num_positions if num_rows else 0, step):
            columns = tops[:, first : first + step].T.astype(top_type, order="C")
            columns.sort(axis=1)
            is_new = np.ones(columns.shape, np.bool_)
            np.not_equal(columns[:, 1:], columns[:, :-1], out=is_new[:, 1:])
            at = np.flatnonzero(is_new)
            top.append(columns.reshape(-1)[at])
            count.append(np.diff(at, append=columns.size).astype(count_type))
            starts[first + 1 : first + step + 1] = is_new.sum(axis=1)
        return cls(num_rows, head_bits, np.cumsum(starts), np.concatenate(top), np.concatenate(count))

    @property
    def num_positions(self) -> int:
        return len(self.starts) - 1

    def blocks(self) -> Iterator[Block]:
        """Some whole positions at a time."""
        first = 0
        while first < self.num_positions:
            begin = int(self.starts[first])
            last = max(first + 1, int(np.searchsorted(self.starts, begin + BLOCK, "right")) - 1)
            position = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
            end = begin + len(position)
            top = self.top[begin:end].astype(np.uint64) >> np.uint64(self.cut_bits)
            count = self.count[begin:end].astype(np.int64)
            if self.cut_bits:
                (position, top), count = totals_in_order(count, position, top)
            e = top & np.uint64((1 << self.head_bits) - 1)
            s = top >> np.uint64(self.head_bits) if self.head_bits < 64 else np.zeros_like(top)
            yield Block(first, last, position, s, e, count)
            first = last

    def without_low_bits(self, num_bits: int) -> "TopCounts":
        """The same with the lowest `num_bits` of e cut off, whenever they are looked at."""
        return replace(self, head_bits=self.head_bits - num_bits, cut_bits=num_bits)

    def most_frequent_e(self) -> Tops:
        """(num_positions,) the smallest of equals."""
        return self._joined(Block.most_frequent_e, np.uint64)

    def largest_counts(self) -> Ints:
        """(num_positions,) how many rows have the most frequent (s, e)."""
        return self._joined(Block.largest_counts, np.int64)

    def mostly_negative(self) -> Tops:
        """(num_positions,) 1 where more than half have s = 1."""
        return (2 * self._joined(Block.num_negative, np.float64) > self.num_rows).astype(np.uint64)

    def entropy_bits(self) -> NDArray[np.float64]:
        """(num_positions,) order-0 entropy of all rows together; equal for equal counts in any order."""
        inner = self._joined(Block.inner_entropy, np.float64)
        entropy: NDArray[np.float64] = self.num_rows * np.log2(max(1, self.num_rows)) - inner
        return entropy

    def _joined(self, answer: Callable[[Block], NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
        """(num_positions,) what `answer` gives for each block."""
        return np.concatenate([np.empty(0, dtype), *map(answer, self.blocks())])
