"""The most frequent of many values, nearly all of which may differ: counted in the memory of one copy."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from gnn_ibp.ibp2.bits import Ints
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.reference import Words

PIECE = 1 << 18
"""Values that are counted at a time."""


class Runs(NamedTuple):
    """Different values, in some order, and how often each occurs; (m,) both."""

    values: Words
    sizes: Ints


def most_frequent_values(values: Words, wanted: int) -> TopCounts:
    """Of `values` (n,), whole, the `wanted` most frequent; the others are only `num_others`.

    Of equals those that come first going up from the most frequent one and around.
    """
    ordered = np.sort(values)
    # of its dtype: for any other number a copy of all would be searched
    start = int(np.searchsorted(ordered, ordered.dtype.type(_most_frequent(ordered))))
    kept = Runs(ordered[:0], np.empty(0, np.int64))
    for runs in chain(_runs(ordered[start:]), _runs(ordered[:start])):
        least = kept.sizes[-1] if len(kept.sizes) == wanted else 0
        rivals = runs.sizes > least  # equals of those kept come too late
        found = Runs(*(np.concatenate([a, b[rivals]]) for a, b in zip(kept, runs, strict=True)))
        best = np.argsort(-found.sizes, kind="stable")[:wanted]
        kept = Runs(found.values[best], found.sizes[best])
    ascending = np.argsort(kept.values)
    top, count = kept.values[ascending], kept.sizes[ascending]
    num_others = len(values) - int(count.sum())
    starts = np.array([0, len(top)])
    return TopCounts(len(values), 8 * values.itemsize, starts, top, count, num_others)


def _most_frequent(ordered: Words) -> int:
    """The smallest of equals; 0 of none."""
    best, most = 0, 0
    for values, sizes in _runs(ordered):
        at = int(np.argmax(sizes))
        if sizes[at] > most:
            best, most = int(values[at]), int(sizes[at])
    return best


def _runs(ordered: Words) -> Iterator[Runs]:
    """Of ascending values, some at a time, each complete."""
    first = 0
    while first < len(ordered):
        last = min(first + PIECE, len(ordered)) - 1
        end = int(np.searchsorted(ordered, ordered[last], "right"))
        piece = ordered[first:end]
        is_new = np.ones(len(piece), np.bool_)
        np.not_equal(piece[1:], piece[:-1], out=is_new[1:])
        at = np.flatnonzero(is_new)
        yield Runs(piece[at], np.diff(at, append=len(piece)))
        first = end
