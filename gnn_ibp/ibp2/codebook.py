"""Codes of row format version 2 out of counts: which symbols get the short fields."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from gnn_ibp.ibp2.bits import Ints, Tops
from gnn_ibp.ibp2.counts import TopCounts, totals
from gnn_ibp.ibp2.params import NUM_LEAVES, NUM_SYMBOLS, Code, num_symbols
from gnn_ibp.ibp2.pooled import Piece, most_frequent_of_classes
from gnn_ibp.ibp2.split import Split

UNCODABLE_BITS = 1 << 20
"""The price of a chunk that its class cannot code, and that makes the row raw."""

LEVELS = [(k1, g) for k1 in (1, 2, 3) for g in (1, 2)]
"""(k1, g) that are tried, the preferred first."""


class Assignment(NamedTuple):
    """base, sgn and class of each position; (positions,) each."""

    base: Tops
    sgn: Tops
    cls: Ints


class Symbols(NamedTuple):
    """The symbols (t, d) of a class, most frequent first, and the fields that they get on level 1.

    num_bits: that the codes of all chunks of the class take.
    """

    t: Tops
    d: Tops
    num_chunks: Ints
    k1: int
    g: int
    num_bits: int


class Codebook(NamedTuple):
    """codes: one a class. leaves: at most 32, ascending. bits: (classes, 2, leaves + 1) price of a chunk.

    Prices go by class, t and leaf number; the last one stands for every d that is no leaf.
    """

    codes: tuple[Code, ...]
    leaves: Tops
    bits: Ints

    def leaf_numbers(self, d: Tops) -> Ints:
        """(m,) the number of the leaf that each of `d` is; `len(leaves)` for none."""
        numbers = np.searchsorted(self.leaves, d)
        is_leaf = self.leaves[np.minimum(numbers, len(self.leaves) - 1)] == d
        return np.where(is_leaf, numbers, len(self.leaves))


def make_codebook(counts: TopCounts, assignment: Assignment, num_classes: int, split: Split) -> Codebook:
    """The codes that store the counted chunks in the fewest bits, for this assignment."""
    by_class = class_symbols(counts, assignment, num_classes, split)
    leaves = _leaves(by_class)
    codes = tuple(_code(symbols, leaves) for symbols in by_class)
    bits = np.array([_prices(code, len(leaves), split.top_bits) for code in codes])
    bits[[len(symbols.num_chunks) == 0 for symbols in by_class]] = UNCODABLE_BITS
    return Codebook(codes, leaves, bits)


def class_symbols(counts: TopCounts, assignment: Assignment, num_classes: int, split: Split) -> list[Symbols]:
    """Of each class."""
    pieces = partial(_pieces, counts, assignment, split)
    pooled = most_frequent_of_classes(pieces, len(counts.top), num_classes, split, NUM_SYMBOLS)
    return [
        most_frequent(t, d, count, split.top_bits, num_others + counts.num_others)
        for t, d, count, num_others in pooled
    ]


def _pieces(counts: TopCounts, assignment: Assignment, split: Split) -> Iterator[Piece]:
    for block in counts.blocks():
        own = slice(block.first, block.last)
        t = block.s ^ assignment.sgn[own][block.position]
        d = (block.e - assignment.base[own][block.position]) & split.head_mask
        yield Piece(assignment.cls[own][block.position], t, d, block.count)


def most_frequent(t: Tops, d: Tops, count: Ints, top_bits: int, num_others: int = 0) -> Symbols:
    """Those that get a place in the lists, of chunks with (t, d) (m,) `count` times, and of rarer ones."""
    (t, d), count = totals(count, t, d)
    order = _largest(count, NUM_SYMBOLS)
    num_others += int(count.sum() - count[order].sum())
    levels = LEVELS if len(order) > 1 else [(0, 0)]
    num_bits = [_code_bits(count[order], num_others, top_bits, k1, g) for k1, g in levels]
    fewest = int(np.argmin(num_bits))
    k1, g = levels[fewest]
    listed = order[: num_symbols(k1, g)]
    return Symbols(t[listed], d[listed], count[listed], k1, g, num_bits[fewest])


def _largest(count: Ints, wanted: int) -> Ints:
    """Where the `wanted` largest of `count` are, falling; the first of equals."""
    if len(count) > wanted:
        least = np.partition(count, -wanted)[-wanted]
        larger = np.flatnonzero(count > least)
        candidates = np.concatenate([larger, np.flatnonzero(count == least)[: wanted - len(larger)]])
    else:
        candidates = np.arange(len(count))
    return candidates[np.argsort(-count[candidates], kind="stable")]


def _code_bits(count: Ints, num_others: int, top_bits: int, k1: int, g: int) -> int:
    """Of all chunks: symbols that occur `count` times, most frequent first, and others, which are RAW."""
    num_raw_bits = (k1 + 5 + top_bits) * num_others if num_others else 0
    return int(count @ _field_bits(len(count), top_bits, k1, g)) + num_raw_bits


def _field_bits(num_wanted: int, top_bits: int, k1: int, g: int) -> Ints:
    """(num_wanted,) bits of symbol 0, 1, … of a list; behind its end, of RAW."""
    if g == 0:
        bits = np.full(num_wanted, UNCODABLE_BITS)
    else:
        bits = np.full(num_wanted, k1 + 5 + top_bits)
        bits[: num_symbols(k1, g)] = k1 + 5
        bits[: num_symbols(k1, g) - 7] = k1 + 2
    bits[: (1 << k1) - g] = k1
    return bits


def _leaves(by_class: list[Symbols]) -> Tops:
    """The d of all symbols, ascending; the most frequent 32 where there are more, the smaller of equals."""
    symbols = [np.concatenate(parts) for parts in zip(*(symbols[:3] for symbols in by_class), strict=True)]
    _, d, count = symbols
    (d,), count = totals(count, d)
    leaves = np.sort(d[np.lexsort((d, -count))[:NUM_LEAVES]])
    return leaves if len(leaves) else np.zeros(1, np.uint64)


def _code(symbols: Symbols, leaves: Tops) -> Code:
    """Lists that are short repeat their last symbol."""
    is_kept = np.isin(symbols.d, leaves)
    numbers = np.searchsorted(leaves, symbols.d[is_kept]).astype(np.uint8)
    listed = (symbols.t[is_kept].astype(np.uint8) << 6 | numbers).tobytes() or b"\0"
    missing = num_symbols(symbols.k1, symbols.g) - len(listed)
    return Code(symbols.k1, symbols.g, listed + missing * listed[-1:])


def _prices(code: Code, num_leaves: int, top_bits: int) -> Ints:
    """(2, num_leaves + 1) bits of a chunk with t and this leaf number."""
    *symbol_bits, raw_bits = _field_bits(len(code.symbols) + 1, top_bits, code.k1, code.g)
    bits = np.full((2, num_leaves + 1), raw_bits)
    for symbol, price in reversed(list(zip(code.symbols, symbol_bits, strict=True))):
        bits[symbol >> 6, symbol & 31] = price
    return bits
