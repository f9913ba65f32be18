"""What the fit of format version 2 counts: the kernels count as NumPy does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibp2_cases import noise

from gnn_ibp import _kernels, ops
from gnn_ibp.ibp2.counting import Commonest, NumpyCounting
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.fit import candidates
from gnn_ibp.ibp2.split import FLOATS, Split
from gnn_ibp.reference import Words

NUMPY, KERNELS = NumpyCounting(), ops.KernelCounting()
CHUNK_BITS = st.sampled_from([8, 16, 32, 64])


def assert_equal(counts: TopCounts, wanted: TopCounts) -> None:
    for name in ("num_rows", "head_bits", "num_others", "num_positions"):
        assert getattr(counts, name) == getattr(wanted, name), name
    for name in ("starts", "top", "count"):
        assert np.array_equal(getattr(counts, name), getattr(wanted, name)), name


def chunks_of(rng: np.random.Generator, chunk_bits: int, shape: tuple[int, int], bits: int) -> Words:
    """Numbers of `bits` bits, shifted anywhere."""
    shift = np.uint64(rng.integers(chunk_bits - bits + 1))
    return (noise(rng, shape, bits) << shift).astype(f"uint{chunk_bits}")


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), chunk_bits=CHUNK_BITS)
def test_tops_are_counted_as_by_numpy(seed: int, chunk_bits: int) -> None:
    rng = np.random.default_rng(seed)
    sign_bits = int(rng.integers(2))
    split = Split(chunk_bits, sign_bits, int(rng.integers(1, min(chunk_bits - sign_bits, 18) + 1)))
    shape = int(rng.choice([0, 1, 50, 3000])), int(rng.choice([0, 1, 3, 130]))
    chunks = chunks_of(rng, chunk_bits, shape, int(rng.integers(1, chunk_bits + 1)))
    assert_equal(KERNELS.tops(chunks, split), NUMPY.tops(chunks, split))


def test_tops_of_chunks_that_are_not_contiguous_are_counted() -> None:
    chunks = noise(np.random.default_rng(0), (3000, 20), 32).astype(np.uint32)[:, ::2]
    assert_equal(KERNELS.tops(chunks, FLOATS["float32"]), NUMPY.tops(chunks, FLOATS["float32"]))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), chunk_bits=CHUNK_BITS)
def test_the_commonest_chunk_is_that_of_numpy(seed: int, chunk_bits: int) -> None:
    """Among values that begin alike and are about as frequent."""
    rng = np.random.default_rng(seed)
    values = chunks_of(rng, chunk_bits, (40, 1), int(rng.integers(1, chunk_bits + 1)))[:, 0]
    values[:20] = values[0] ^ rng.integers(0, 3, 20).astype(values.dtype)
    chunks = rng.choice(values[: rng.integers(1, 41)], (int(rng.choice([0, 1, 30, 900])), 3))
    for percent in (0, 3, 10, 50):
        assert KERNELS.commonest(chunks, percent) == NUMPY.commonest(chunks, percent)


def test_the_smallest_of_equally_common_chunks_is_found_where_it_passes_the_limit() -> None:
    chunks = np.array([[7, 1 << 31, 7, 1 << 31, 9]], np.uint32)
    assert KERNELS.commonest(chunks, 39) == Commonest(7, 2)
    assert KERNELS.commonest(chunks, 40) is None  # 2 of 5 are no more than 40 %


def test_a_table_of_another_shape_is_refused() -> None:
    chunks = np.zeros((4, 3), np.uint16)
    for shape, shift in [((2, 4), 0), ((3, 5), 0), ((3, 1), 0), ((3, 4), 15), ((3, 1 << 17), 0)]:
        with pytest.raises(ValueError, match="counts does not fit"):
            _kernels.count_tops(chunks, shift, np.zeros(shape, np.uint32))


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int32"])
def test_the_fit_does_not_depend_on_who_counts(dtype: str, zeros: float) -> None:
    rng = np.random.default_rng(1)
    rows = (10 * rng.standard_normal((500, 40))).astype(dtype)
    rows[rng.random(rows.shape) < zeros] = 0
    row_bytes, split = rows.view(np.uint8), Split.of(dtype, rows.itemsize)
    assert list(candidates(row_bytes, split, KERNELS)) == list(candidates(row_bytes, split, NUMPY))
