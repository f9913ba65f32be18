"""The classes of the fit of row format version 2 once more: one position after the other, in other words."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from gnn_ibp.ibp2.codebook import Assignment, Codebook, make_codebook
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.split import Split


class Choice(NamedTuple):
    """Of a position."""

    base: int
    sgn: int
    cls: int


def find_classes_literally(columns: list[list[int]], split: Split) -> list[Choice]:
    """What each of `columns` takes, the tops at one position in all rows; the codes are the library's."""
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
        codebook = _codebook(columns, choices, num_classes, split)
        best = [_cheapest(column, own, codebook, split) for column, own in zip(columns, first, strict=True)]
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
    return [choice._replace(cls=used.index(choice.cls)) for choice in choices]


def _mode(numbers: list[int]) -> int:
    return min(numbers, key=lambda number: (-numbers.count(number), number))


def _majority(column: list[int], mask: int) -> int:
    return int(2 * sum(top > mask for top in column) > len(column))


def _entropy(column: list[int]) -> float:
    """Bits of all chunks together; summed in ascending order, so that equal counts have an equal sum."""
    total = float(len(column) * np.log2(len(column)))
    return total - sum(float(n * np.log2(n)) for n in sorted(Counter(column).values()))


def _codebook(columns: list[list[int]], choices: list[Choice], num_classes: int, split: Split) -> Codebook:
    base, sgn, cls = zip(*choices, strict=True)
    assignment = Assignment(np.array(base, np.uint64), np.array(sgn, np.uint64), np.array(cls, np.int64))
    counts = TopCounts.of(np.array(columns, np.uint64).T, split.head_bits)
    return make_codebook(counts, assignment, num_classes, split)


def _cheapest(column: list[int], own: Choice, codebook: Codebook, split: Split) -> tuple[Choice, int]:
    """The first of the cheapest, and its price."""
    tried = [
        Choice((own.base + step) % (1 << split.head_bits), own.sgn ^ flip, cls)
        for step in (0, -1, 1)
        for flip in range(split.sign_bits + 1)
        for cls in range(len(codebook.codes))
    ]
    prices = [_price(column, choice, codebook, split) for choice in tried]
    return tried[prices.index(min(prices))], min(prices)


def _price(column: list[int], choice: Choice, codebook: Codebook, split: Split) -> int:
    leaves = [*codebook.leaves.tolist(), None]
    price = 0
    for top, count in Counter(column).items():
        s, e = divmod(top, 1 << split.head_bits)
        d = (e - choice.base) % (1 << split.head_bits)
        leaf = leaves.index(d if d in leaves else None)
        price += count * int(codebook.bits[choice.cls, s ^ choice.sgn, leaf])
    return price
