"""The most frequent values: those that counting all of them finds, in any order and in little memory."""

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from gnn_ibp.ibp2 import values as module
from gnn_ibp.ibp2.classes import one_class
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.params import NUM_SYMBOLS
from gnn_ibp.ibp2.split import Split
from gnn_ibp.ibp2.values import most_frequent_values


def drawn(seed: int) -> NDArray[np.uint8]:
    """Few values or many, alike in number or not, at either end of what a byte holds."""
    rng = np.random.default_rng(seed)
    num = int(rng.choice([0, 1, 2, 30, 300, 3000]))
    values = rng.integers(0, int(rng.choice([1, 19, 20, 21, 256])), num)
    skewed = (values * rng.random(num) ** rng.choice([0, 1, 4])).astype(np.uint8)
    return skewed + np.uint8(rng.integers(256))


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_the_code_is_that_of_all_values(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    whole = Split(8, 0, 8)
    for seed in range(200):
        values = drawn(seed)
        found = most_frequent_values(values, NUM_SYMBOLS)
        (base, sgn, cls), (codes, leaves, bits) = one_class(TopCounts.of(values[:, None], 8), whole)
        assignment, codebook = one_class(found, whole)
        assert (assignment.base, assignment.sgn, assignment.cls) == (base, sgn, cls), seed
        assert codebook.codes == codes and np.array_equal(codebook.leaves, leaves), seed
        assert np.array_equal(codebook.bits, bits), seed
        assert found.count.sum() + found.num_others == found.num_rows == len(values)


def test_of_equals_those_come_first_that_are_next_above_the_most_frequent() -> None:
    values = np.array([5, 250, 250, 1, 251, 100, 0, 255], np.uint8)
    found = most_frequent_values(values, 4)
    assert found.top.tolist() == [0, 250, 251, 255] and found.count.tolist() == [1, 2, 1, 1]
    assert found.num_others == 3


def test_values_that_all_differ_take_the_memory_of_one_copy() -> None:
    values = np.random.default_rng(0).permutation(np.arange(1 << 23, dtype=np.uint32))
    tracemalloc.start()
    most_frequent_values(values, NUM_SYMBOLS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < values.nbytes + (48 << 20)
