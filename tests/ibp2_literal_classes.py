"""Classes and codes of the fit of row format version 2 once more: chunk after chunk, in other words."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from gnn_ibp.ibp2.split import Split

Symbol = tuple[int, int]
"""t, d"""


class Choice(NamedTuple):
    """Of a position."""

    base: int
    sgn: int
    cls: int


class LiteralCode(NamedTuple):
    """symbols: those that are listed, the most frequent first. raw_price: in bits, of all others."""

    k1: int
    g: int
    symbols: list[Symbol]
    prices: dict[Symbol, int]
    raw_price: int


class Found(NamedTuple):
    """Of each position what it takes; the codes of all classes."""

    choices: list[Choice]
    codes: list[LiteralCode]


def find_classes_literally(columns: list[list[int]], split: Split) -> Found:
    """Of `columns`: the tops at one position in all rows, each."""
    mask = (1 << split.head_bits) - 1
    entropy = [_entropy(column) for column in columns]
    ranked = sorted(range(len(columns)), key=lambda j: (entropy[j], j))
    num_classes = min(4, len(columns))
    first = [Choice(_mode([top & mask for top in column]), _majority(column, mask), 0) for column in columns]
    choices = [
        choice._replace(cls=ranked.index(j) * num_classes // len(columns)) for j, choice in enumerate(first)
    ]
    sums: list[int] = []
    has_restarted = False
    while len(sums) < 16:
        codes = _codes(columns, choices, num_classes, split)
        best = [_cheapest(column, own, codes, split) for column, own in zip(columns, first, strict=True)]
        choices, bits = [choice for choice, _ in best], [price for _, price in best]
        sums.append(sum(bits))
        empty = sorted(set(range(num_classes)) - {choice.cls for choice in choices})
        if empty and not has_restarted:
            has_restarted = True
            dearest = sorted(range(len(columns)), key=lambda j: (entropy[j] - bits[j], j))
            for cls, j in zip(empty, dearest, strict=False):
                choices[j] = choices[j]._replace(cls=cls)
        elif len(sums) > 1 and sums[-1] >= sums[-2]:
            break
    used = sorted({choice.cls for choice in choices})
    choices = [choice._replace(cls=used.index(choice.cls)) for choice in choices]
    return Found(choices, _codes(columns, choices, len(used), split))


def _mode(numbers: list[int]) -> int:
    return min(numbers, key=lambda number: (-numbers.count(number), number))


def _majority(column: list[int], mask: int) -> int:
    return int(2 * sum(top > mask for top in column) > len(column))


def _entropy(column: list[int]) -> float:
    """Bits of all chunks together; summed in ascending order, so that equal counts have an equal sum."""
    total = float(len(column) * np.log2(len(column)))
    return total - sum(float(n * np.log2(n)) for n in sorted(Counter(column).values()))


def _codes(
    columns: list[list[int]], choices: list[Choice], num_classes: int, split: Split
) -> list[LiteralCode]:
    """Of each class: what its positions have in common, without the symbols of the rarest d beyond 32."""
    pooled = [Counter[Symbol]() for _ in range(num_classes)]
    for column, choice in zip(columns, choices, strict=True):
        pooled[choice.cls].update(_symbol(top, choice, split) for top in column)
    codes = [_code(count, split.top_bits) for count in pooled]
    leaves = Counter[int]()
    for code, count in zip(codes, pooled, strict=True):
        for symbol in code.symbols:
            leaves[symbol[1]] += count[symbol]
    kept = sorted(leaves, key=lambda d: (-leaves[d], d))[:32]
    return [_priced(code, [symbol for symbol in code.symbols if symbol[1] in kept]) for code in codes]


def _code(count: Counter[Symbol], top_bits: int) -> LiteralCode:
    """The first of the cheapest."""
    symbols = sorted(count, key=lambda symbol: (-count[symbol], symbol))
    levels = [(k1, g) for k1 in (1, 2, 3) for g in (1, 2)] if len(symbols) > 1 else [(0, 0)]
    tried = [
        _priced(LiteralCode(k1, g, symbols, {}, k1 + 5 + top_bits if g else 1 << 20), symbols)
        for k1, g in levels
    ]
    bits = [
        sum(count[symbol] * code.prices.get(symbol, code.raw_price) for symbol in symbols) for code in tried
    ]
    return tried[bits.index(min(bits))]


def _priced(code: LiteralCode, symbols: list[Symbol]) -> LiteralCode:
    """With as many of `symbols` as there is room for."""
    k1, g = code.k1, code.g
    first, second = 2**k1 - g, 4 * g - 1 if g else 0
    bits = [k1] * first + [k1 + 2] * second + [k1 + 5] * (7 if g else 0)
    prices = dict(zip(symbols, bits, strict=False))
    return code._replace(symbols=list(prices), prices=prices)


def _cheapest(column: list[int], own: Choice, codes: list[LiteralCode], split: Split) -> tuple[Choice, int]:
    """The first of the cheapest, and its price."""
    tried = [
        Choice((own.base + step) % (1 << split.head_bits), own.sgn ^ flip, cls)
        for step in (0, -1, 1)
        for flip in range(split.sign_bits + 1)
        for cls in range(len(codes))
    ]
    prices = [sum(_price(top, choice, codes, split) for top in column) for choice in tried]
    return tried[prices.index(min(prices))], min(prices)


def _price(top: int, choice: Choice, codes: list[LiteralCode], split: Split) -> int:
    code = codes[choice.cls]
    return code.prices.get(_symbol(top, choice, split), code.raw_price)


def _symbol(top: int, choice: Choice, split: Split) -> Symbol:
    s, e = divmod(top, 1 << split.head_bits)
    return s ^ choice.sgn, (e - choice.base) % (1 << split.head_bits)
