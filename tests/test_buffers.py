"""Buffers are reused, and never while somebody holds them."""

import gc

import numpy as np
import pytest
import torch

from gnn_ibp.buffers import BufferPool, empty_rows


def address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.float64])
@pytest.mark.parametrize("shape", [(5, 3), (7,), (2, 3, 4), (0, 3), (3, 0)])
def test_tensor_has_the_asked_shape_and_dtype(shape, dtype):
    for tensor in (BufferPool(1).empty(shape, dtype), empty_rows(shape[0], shape[1:], dtype)):
        assert tensor.shape == shape
        assert tensor.dtype == dtype
        assert tensor.is_contiguous()


def test_buffer_is_reused_when_nobody_holds_it():
    pool = BufferPool(num_kept=2)
    first = pool.empty((100, 4), torch.float32)
    where = address(first)
    del first
    assert address(pool.empty((90, 4), torch.float32)) == where


def test_buffer_of_a_held_view_is_not_reused():
    pool = BufferPool(num_kept=2)
    tensor = pool.empty((100, 4), torch.float32)
    where = address(tensor)
    row = tensor[3]
    array = tensor.numpy()
    del tensor
    row.fill_(7.0)
    other = pool.empty((100, 4), torch.float32)
    assert address(other) != where
    other.fill_(1.0)
    assert np.all(array[3] == 7.0)
    del row
    assert address(pool.empty((100, 4), torch.float32)) != where
    del array
    gc.collect()
    assert address(pool.empty((100, 4), torch.float32)) == where


def test_pool_keeps_no_more_than_it_was_told():
    pool = BufferPool(num_kept=1)
    held = [pool.empty((10,), torch.int64) for _ in range(5)]
    del held
    assert len(pool._free) == 1


def test_small_buffer_makes_room_for_a_larger_one():
    pool = BufferPool(num_kept=1)
    small = pool.empty((10,), torch.int64)
    del small
    large = pool.empty((1000,), torch.int64)
    del large
    assert pool._free[0].nbytes >= 8000
