"""Buffers are reused, and never while somebody holds them."""

import gc

import numpy as np
import pytest
import torch

from gnn_ibp.buffers import BufferPool
from gnn_ibp.row_type import RowType

FLOATS = RowType("float32", (4,))
NUMBERS = RowType("int64", ())


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "float64"])
@pytest.mark.parametrize("shape", [(5, 3), (7,), (2, 3, 4), (0, 3), (3, 0)])
def test_tensor_has_the_asked_shape_and_dtype(shape, dtype):
    tensor = BufferPool(1).empty(RowType(dtype, shape[1:]), shape[0])
    assert tensor.shape == shape
    assert tensor.dtype == getattr(torch, dtype)
    assert tensor.is_contiguous()


def test_buffer_is_reused_when_nobody_holds_it():
    pool = BufferPool(num_kept=2)
    first = pool.empty(FLOATS, 100)
    where = address(first)
    del first
    assert address(pool.empty(FLOATS, 90)) == where


def test_buffer_of_a_held_view_is_not_reused():
    pool = BufferPool(num_kept=2)
    tensor = pool.empty(FLOATS, 100)
    where = address(tensor)
    row = tensor[3]
    array = tensor.numpy()
    del tensor
    row.fill_(7.0)
    other = pool.empty(FLOATS, 100)
    assert address(other) != where
    other.fill_(1.0)
    assert np.all(array[3] == 7.0)
    del row
    assert address(pool.empty(FLOATS, 100)) != where
    del array
    gc.collect()
    assert address(pool.empty(FLOATS, 100)) == where


def test_pool_keeps_no_more_than_it_was_told():
    pool = BufferPool(num_kept=1)
    held = [pool.empty(NUMBERS, 10) for _ in range(5)]
    del held
    assert len(pool._free) == 1


def test_small_buffer_makes_room_for_a_larger_one():
    pool = BufferPool(num_kept=1)
    small = pool.empty(NUMBERS, 10)
    del small
    large = pool.empty(NUMBERS, 1000)
    del large
    assert pool._free[0].nbytes >= 8000
