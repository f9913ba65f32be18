"""How the fit of format version 2 splits integers: as if it had tried every tail, but it does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibp2_cases import noise
from numpy.typing import NDArray

from gnn_ibp.ibp2.classes import one_class_bits
from gnn_ibp.ibp2.counting import NumpyCounting
from gnn_ibp.ibp2.counts import TopCounts
from gnn_ibp.ibp2.fit import fit_dense
from gnn_ibp.ibp2.split import Split
from gnn_ibp.reference import Words


def best_of_all_tails(chunks: Words) -> Split:
    """Codes, and the bits of tails that are not zeros in all chunks, where these are three or more."""
    chunk_bits = 8 * chunks.itemsize
    ones = int(np.bitwise_or.reduce(chunks, axis=None))
    bits = []
    for tail in range(chunk_bits):
        split = Split(chunk_bits, 0, chunk_bits - tail)
        zeros = next((bit for bit in range(tail) if ones >> bit & 1), tail) if chunks.size else 0
        counts = TopCounts.of(split.tops(chunks), split.head_bits)
        bits.append(one_class_bits(counts, split) + chunks.size * (tail - (zeros if zeros >= 3 else 0)))
    return Split(chunk_bits, 0, chunk_bits - int(np.argmin(bits)))


def numbers(rng: np.random.Generator, chunk_bits: int, shape: tuple[int, int]) -> Words:
    """Noise, mostly small ones, few different ones, or columns about a number each; some end with zeros."""
    bits = int(rng.integers(1, chunk_bits + 1))
    kinds: list[NDArray[np.uint64]] = [
        noise(rng, shape, bits),
        noise(rng, shape, bits) >> noise(rng, shape, 4),
        rng.choice(noise(rng, 5, bits), shape),  # type: ignore[arg-type]
        noise(rng, shape[1], bits) + noise(rng, shape, min(bits, 5)),
    ]
    return (kinds[rng.integers(4)] << noise(rng, 1, 3)).astype(f"uint{chunk_bits}")


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), chunk_bits=st.sampled_from([8, 16, 32, 64]))
def test_the_cheapest_of_all_tails_is_found(seed: int, chunk_bits: int) -> None:
    rng = np.random.default_rng(seed)
    chunks = numbers(rng, chunk_bits, (int(rng.choice([0, 1, 5, 300])), int(rng.choice([1, 3, 8]))))
    fitted = fit_dense(chunks.view(np.uint8), Split(chunk_bits, 0, chunk_bits))
    assert (fitted.sign_bits, fitted.head_bits) == best_of_all_tails(chunks)[1:]


class ShortHeads(NumpyCounting):
    """Does not count heads of more than 12 bits."""

    def tops(self, chunks: Words, split: Split) -> TopCounts:
        assert split.head_bits <= 12, "heads are counted that nobody needs"
        return super().tops(chunks, split)


@pytest.mark.parametrize("chunk_bits", [32, 64])
def test_long_heads_of_noise_are_not_counted(chunk_bits: int) -> None:
    """There are as many as chunks: that took minutes."""
    chunks = noise(np.random.default_rng(0), (4000, 8), chunk_bits - 1).astype(f"uint{chunk_bits}")
    fit_dense(chunks.view(np.uint8), Split(chunk_bits, 0, chunk_bits), ShortHeads())
