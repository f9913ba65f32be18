"""The most frequent symbols of a class: the same however few are summed at a time; and what that saves."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gnn_ibp import ops
from gnn_ibp.conversion.need import FIT_FACTOR, ROWS_BYTES
from gnn_ibp.ibp2 import pooled
from gnn_ibp.ibp2.codebook import Assignment, class_symbols
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.fit import candidates
from gnn_ibp.ibp2.split import Split

LONG = Split(32, 0, 24)


def symbols_in_words(
    counts: TopCounts, assignment: Assignment, num_classes: int
) -> list[list[tuple[int, int]]]:
    """(count, d) of the 20 most frequent d of each class, of equals the smallest first."""
    sums: list[dict[int, int]] = [{} for _ in range(num_classes)]
    for block in counts.blocks():
        for position, e, count in zip(block.position, block.e, block.count, strict=True):
            at = block.first + int(position)
            d = (int(e) - int(assignment.base[at])) % (1 << LONG.head_bits)
            own = sums[assignment.cls[at]]
            own[d] = own.get(d, 0) + int(count)
    ranked = (sorted(own.items(), key=lambda one: (-one[1], one[0])) for own in sums)
    return [[(count, d) for d, count in symbols[:20]] for symbols in ranked]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), limits=st.sampled_from([(1, 1), (40, 200), (1 << 16, 0), (9, 1 << 20)]))
def test_symbols_are_the_same_however_few_are_summed_at_a_time(seed: int, limits: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    shape, num_classes = (int(rng.choice([1, 9, 300])), int(rng.choice([1, 5]))), int(rng.integers(1, 5))
    tops = (rng.zipf(1.2, shape) % (1 << int(rng.choice([4, 24])))).astype(np.uint32)
    counts = TopCounts.of(tops, LONG.head_bits)
    none = np.zeros(shape[1], np.uint64)
    base = rng.integers(0, 1 << 24, shape[1]).astype(np.uint64)
    assignment = Assignment(base, none, rng.integers(0, num_classes, shape[1]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pooled, "FIRST_COUNTS", limits[0])
        patched.setattr(pooled, "MAX_COUNTS", limits[1])
        found = class_symbols(counts, assignment, num_classes, LONG)
    at_once = class_symbols(counts, assignment, num_classes, LONG)
    in_words = symbols_in_words(counts, assignment, num_classes)
    for symbols, same, wanted in zip(found, at_once, in_words, strict=True):
        listed = list(zip(symbols.num_chunks.tolist(), symbols.d.tolist(), strict=True))
        assert listed == wanted[: len(listed)] and bool(listed) == bool(wanted)
        assert (symbols.k1, symbols.g, symbols.num_bits) == (same.k1, same.g, same.num_bits)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(lambda rng: rng.standard_normal((4, 30_000)).astype(np.float32), id="many columns"),
        pytest.param(lambda rng: rng.zipf(1.3, (32768, 256)), id="many numbers", marks=pytest.mark.slow),
    ],
)
def test_fitting_takes_no_more_than_conversions_reckon_with(rows: Callable[..., NDArray[Any]]) -> None:
    """Beside the rows themselves, and the room for blocks that are not on their way yet."""
    sample = rows(np.random.default_rng(0))
    split = Split.of(str(sample.dtype), sample.itemsize)
    tracemalloc.start()
    try:
        for _ in candidates(sample.view(np.uint8).reshape(len(sample), -1), split, ops.KernelCounting()):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (FIT_FACTOR - 1) * sample.nbytes + min(ROWS_BYTES, 1000 * sample.shape[1])
