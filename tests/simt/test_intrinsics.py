"""Every intrinsic of the harness gives what CUDA's documentation says, computed here in NumPy."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from host_module import HostModule
from kernel_launch import ORDERS, Options
from numpy.typing import ArrayLike, NDArray
from sanitized_module import SanitizedModule

SOURCE = Path(__file__).parent / "kernels" / "intrinsics.cu"
BLOCKS, THREADS = 40, 64
N = BLOCKS * THREADS
LANE = np.arange(N) % 32

_random = np.random.default_rng(3)
A = _random.integers(0, 1 << 32, N, dtype=np.uint32) >> _random.integers(0, 32, N).astype(np.uint32)
B = _random.integers(0, 1 << 32, N, dtype=np.uint32)
Q = _random.integers(0, 1 << 64, N, dtype=np.uint64) >> _random.integers(0, 64, N).astype(np.uint64)
A[:3] = 0
Q[:3] = 0


@cache
def _module(sanitizer: str | None) -> HostModule | SanitizedModule:
    return HostModule(SOURCE) if sanitizer is None else SanitizedModule(SOURCE, sanitizer)


def _check(kernel: str, inputs: list[NDArray[np.generic]], expected: dict[str, ArrayLike]) -> None:
    """Run the kernel in every schedule and under AddressSanitizer, and compare it row by row."""
    runs = [(None, Options(order=order, dynamic_shared_bytes=256)) for order in ORDERS]
    for sanitizer, options in [*runs, ("address", runs[-1][1])]:
        out = np.zeros((len(expected), N), np.uint32)
        _module(sanitizer).launch(kernel, BLOCKS, THREADS, [*inputs, out], options)
        for row, (name, values) in zip(out, expected.items(), strict=True):
            np.testing.assert_array_equal(row, np.asarray(values).astype(np.uint32), f"{name} {options}")


def _each(function: Callable[..., int], *arrays: NDArray[np.generic]) -> list[int]:
    """A function of Python's integers, for each column."""
    return [function(*(int(value) for value in values)) for values in zip(*arrays, strict=True)]


def _groups(function: Callable[..., object], values: ArrayLike, size: int) -> NDArray[np.generic]:
    """A function of the values of `size` neighbouring threads, for each of them."""
    return np.repeat([function(group) for group in np.asarray(values).reshape(-1, size)], size)


def _ballot(predicate: ArrayLike) -> NDArray[np.uint64]:
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    return _groups(lambda group: (group.astype(np.uint64) * weights).sum(), predicate, 32)


def _from_lane(values: NDArray[np.generic], lane: NDArray[np.int64]) -> NDArray[np.generic]:
    return values[np.arange(N) - LANE + lane]


def _within(lane: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The lane to read, or the own one where it lies outside of the group."""
    return np.where((lane >= 0) & (lane // width == LANE // width), lane, LANE)


def test_bit_functions() -> None:
    def permuted(a: int, b: int, selectors: int) -> int:
        pool = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        return int.from_bytes(bytes(pool[selectors >> 4 * i & 7] for i in range(4)), "little")

    def shifted_left(low: int, high: int, shift: int) -> int:
        return ((high << 32 | low) << shift) >> 32 & 0xFFFFFFFF

    def shifted_right(low: int, high: int, shift: int) -> int:
        return (high << 32 | low) >> shift & 0xFFFFFFFF

    expected = {
        "__popc": _each(int.bit_count, A),
        "__clz": _each(lambda x: 32 - x.bit_length(), A),
        "__ffs": _each(lambda x: (x & -x).bit_length(), A),
        "__brev": _each(lambda x: int(f"{x:032b}"[::-1], 2), A),
        "__funnelshift_l": _each(shifted_left, A, B, B & 31),
        "__funnelshift_r": _each(shifted_right, A, B, A & 31),
        "__funnelshift_lc": _each(shifted_left, A, B, np.minimum(B & 63, 32)),
        "__funnelshift_rc": _each(shifted_right, A, B, np.minimum(A & 63, 32)),
        "__byte_perm": _each(permuted, A, B, A ^ B),
        "__umulhi": _each(lambda x, y: x * y >> 32, A, B),
        "__popcll": _each(int.bit_count, Q),
        "__clzll": _each(lambda x: 64 - x.bit_length(), Q),
        "__ffsll": _each(lambda x: (x & -x).bit_length(), Q),
        "min": np.minimum(A, B),
        "max": np.maximum(A, B),
    }
    _check("bits", [A, B, Q], expected)


def test_shuffles_of_all_kinds_and_widths() -> None:
    wide = _from_lane(Q, LANE ^ 17)
    expected = {
        "__shfl_sync": _from_lane(A, (B & 31).astype(np.int64)),
        "__shfl_up_sync": _from_lane(A, _within(LANE - 3, 32)),
        "__shfl_down_sync": _from_lane(A, _within(LANE + 5, 32)),
        "__shfl_xor_sync": _from_lane(A, LANE ^ 9),
        "__shfl_sync of 8": _from_lane(A, LANE // 8 * 8 + (B & 7)),
        "__shfl_up_sync of 8": _from_lane(A, _within(LANE - 3, 8)),
        "__shfl_down_sync of 16": _from_lane(A, _within(LANE + 5, 16)),
        "__shfl_xor_sync of 4": _from_lane(A, _within(LANE ^ 3, 4)),
        "eight bytes, low": wide & np.uint64(0xFFFFFFFF),
        "eight bytes, high": wide >> np.uint64(32),
    }
    _check("shuffles", [A, B, Q], expected)


def test_votes_and_reductions() -> None:
    own_half = np.where(LANE >= 16, np.uint64(0xFFFF0000), np.uint64(0xFFFF))
    same = [_ballot(value == (B & 3)) for value in range(4)]
    expected = {
        "__ballot_sync": _ballot(A & 1),
        "__any_sync": _groups(np.any, A % 37 == 0, 32),
        "__all_sync": _groups(np.all, (A & 1023) != 5, 32),
        "__ballot_sync of halves": _ballot(B & 1) & own_half,
        "__match_any_sync": np.choose(B & 3, same),
        "__reduce_add_sync": _groups(lambda group: group.sum(dtype=np.uint32), A, 32),
        "__reduce_min_sync": _groups(np.min, A, 32),
        "__reduce_max_sync": _groups(np.max, A, 32),
        "__reduce_and_sync": _groups(np.bitwise_and.reduce, A | np.uint32(0xFFFFFFF0), 16),
        "__reduce_or_sync": _groups(np.bitwise_or.reduce, A & 0x11111111, 16),
        "__reduce_xor_sync": _groups(np.bitwise_xor.reduce, A, 16),
        "__syncthreads_or": _groups(np.any, A % 61 == 0, THREADS),
        "__syncthreads_and": _groups(np.all, (A & 7) != 9, THREADS),
        "__syncthreads_count": _groups(np.sum, A & 1, THREADS),
    }
    _check("votes", [A, B], expected)


def test_shared_memory_of_both_kinds() -> None:
    expected = {
        "static": A.reshape(-1, THREADS)[:, ::-1].ravel(),
        "dynamic": B.reshape(-1, THREADS)[:, 63 - (np.arange(THREADS) ^ 7)].ravel(),
    }
    _check("shared", [A, B], expected)


def test_asynchronous_copies_of_each_size() -> None:
    rows = np.tile(np.arange(THREADS), BLOCKS)
    expected = {
        "4 bytes": A[rows],
        "8 bytes": A[2 * rows + 1],
        "16 bytes": A[4 * rows + 3],
        "5 of 16 bytes, word 0": A[4 * rows],
        "5 of 16 bytes, word 1": A[4 * rows + 1] & 0xFF,
        "5 of 16 bytes, word 2": np.zeros(N),
    }
    _check("copies", [A, A.copy(), A.copy()], expected)


@pytest.mark.parametrize("order", ORDERS)
def test_atomics(order: str) -> None:
    counts = np.array([5, 0, ~0, 0, 11, ~0, 0], np.int64).view(np.uint64)
    _module(None).launch("atomics", BLOCKS, THREADS, [A, counts], Options(order=order))
    wide = A.astype(np.uint64)
    ands = np.bitwise_and.reduce(wide | np.uint64(0xF))
    expected = [5 + int(wide.sum()), np.bitwise_or.reduce(wide), ands, 7, 11 + N, wide.min(), wide.max()]
    assert counts.tolist() == [int(value) for value in expected]
