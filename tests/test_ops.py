"""ops: ids are checked, rows are laid out as described."""

from typing import Any

import numpy as np
import pytest
import torch

from gnn_ibp import IBPCodec, ops
from gnn_ibp.rows import PAD_BYTES


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param([3, 0, 9], id="list"),
        pytest.param((3, 0, 9), id="tuple"),
        pytest.param(np.array([3, 0, 9], np.int64), id="int64"),
        pytest.param(np.array([3, 0, 9], np.int32), id="int32"),
        pytest.param(np.array([3, 0, 9], np.uint8), id="uint8"),
        pytest.param(np.array([3, 0, 9], np.uint64), id="uint64"),
        pytest.param(np.array([3, 0, 9], ">i4"), id="big-endian"),
        pytest.param(np.array([3, 7, 0, 7, 9])[::2], id="strided"),
        pytest.param(torch.tensor([3, 0, 9]), id="torch int64"),
        pytest.param(torch.tensor([3, 0, 9], dtype=torch.int32), id="torch int32"),
        pytest.param(torch.tensor([3, 7, 0, 7, 9])[::2], id="torch strided"),
    ],
)
def test_ids_of_any_integer_type_become_int64(ids: Any) -> None:
    checked = ops.check_ids(ids, 10)
    assert checked.dtype == np.int64
    assert checked.flags.c_contiguous
    assert checked.tolist() == [3, 0, 9]


def test_int64_ids_are_not_copied() -> None:
    ids = np.arange(10)
    assert ops.check_ids(ids, 10) is ids
    tensor = torch.arange(10)
    assert ops.check_ids(tensor, 10).ctypes.data == tensor.data_ptr()


@pytest.mark.parametrize("empty", [[], np.empty(0, np.int32), torch.empty(0, dtype=torch.int64)], ids=str)
def test_no_ids_are_legal_even_without_rows(empty: Any) -> None:
    assert ops.check_ids(empty, 0).shape == (0,)


@pytest.mark.parametrize(
    ("ids", "first"),
    [
        ([0, 10, 11], "ids[1] is 10"),
        ([0, 1, -1, -2], "ids[2] is -1"),
        (np.array([0, 2**63 + 5], np.uint64), "ids[1] is 9223372036854775813"),
        (np.array([2**40]), "ids[0] is 1099511627776"),
        (torch.tensor([-5], dtype=torch.int8), "ids[0] is -5"),
    ],
)
def test_first_id_out_of_range_is_named_with_the_valid_range(ids: Any, first: str) -> None:
    with pytest.raises(IndexError) as caught:
        ops.check_ids(ids, 10)
    assert str(caught.value) == f"{first}, the valid range is 0 to 9"


def test_ids_without_rows_say_so() -> None:
    with pytest.raises(IndexError, match="there are no rows"):
        ops.check_ids([0], 0)


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        (np.array([True, False]), TypeError),
        ([True, False], TypeError),
        (torch.tensor([True]), TypeError),
        (np.array([1.0]), TypeError),
        (torch.tensor([1.0]), TypeError),
        (torch.tensor([1.0], dtype=torch.bfloat16), TypeError),
        (["1"], TypeError),
        (None, TypeError),
        ([[0, 1]], ValueError),
        (np.zeros((2, 2), np.int64), ValueError),
        (torch.tensor(3), ValueError),
        (5, ValueError),
    ],
)
def test_ids_that_are_no_list_of_integers_are_refused(ids: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="ids have"):
        ops.check_ids(ids, 10)


@pytest.mark.parametrize("mask", [np.array([True, False, True]), torch.tensor([True, False, True])])
def test_a_mask_is_answered_with_what_makes_ids_of_it(mask: Any) -> None:
    with pytest.raises(TypeError, match=r"torch.where\(mask\)\[0\] or numpy.flatnonzero\(mask\)"):
        ops.check_ids(mask, 3)
    where = torch.where if isinstance(mask, torch.Tensor) else np.flatnonzero
    ids = where(mask)
    assert ops.check_ids(ids[0] if isinstance(ids, tuple) else ids, 3).tolist() == [0, 2]


def mixed_rows(num_rows: int = 100, num_columns: int = 24) -> np.ndarray:
    """uint8 rows: some all zero, some dense, some half of each."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (num_rows, num_columns), np.uint8)
    rows[::3] = 0
    rows[1::3, ::2] = 0
    return rows


@pytest.mark.parametrize("align", [8, 16, 24, 32])
def test_condensed_rows_stand_at_aligned_places_with_zeros_between(align: int) -> None:
    rows = mixed_rows()
    codec = IBPCodec(np.full(3, 2**64 - 1, np.uint64), np.zeros(3, np.uint64), 64)
    encoded = ops.encode_rows(codec, rows, align)
    packed = codec.encode(rows)
    expected = b"".join(stored + b"\0" * (-len(stored) % align) for stored in map(packed.row, range(100)))
    assert encoded.data[PAD_BYTES:-PAD_BYTES].tobytes() == expected
    assert not encoded.data[:PAD_BYTES].any()
    assert not encoded.data[-PAD_BYTES:].any()


def test_in_place_rows_own_their_bytes_and_fill_a_prefix() -> None:
    rows = mixed_rows()
    codec = IBPCodec.fit(rows)
    encoded = ops.encode_rows(codec, rows, align=8, in_place=True)
    packed = codec.encode(rows)
    expected = b"".join(packed.row(i).ljust(24, b"\0") for i in range(100))
    assert encoded.index is None
    assert encoded.data[PAD_BYTES:-PAD_BYTES].tobytes() == expected
    assert np.array_equal(encoded.encoded(), packed.bitmask)


@pytest.mark.parametrize("align", [0, -8, 6, 12, 4])
def test_align_that_does_not_suit_the_codec_is_refused(align: int) -> None:
    with pytest.raises(ValueError, match=f"align is {align}"):
        ops.encode_rows(IBPCodec.raw(24), mixed_rows(), align)


def test_encoding_is_the_same_for_any_number_of_threads() -> None:
    rows = mixed_rows(50_000)
    codec = IBPCodec.fit(rows)
    threads = ops.num_threads()
    try:
        encoded = []
        for num_threads in (1, 3):
            ops.set_num_threads(num_threads)
            encoded.append(ops.encode_rows(codec, rows, align=8).data)
    finally:
        ops.set_num_threads(threads)
    assert np.array_equal(*encoded)


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="num_threads is 0"):
        ops.set_num_threads(0)
