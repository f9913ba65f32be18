"""SimtCuda keeps the promises that the wiring relies on."""

import gc

import numpy as np
import pytest
import torch
from simt_cuda import PAGE_BYTES, SimtCuda

from gnn_ibp.cuda import PinError


def test_memory_is_page_aligned_and_counted_while_it_lives() -> None:
    cuda = SimtCuda(device_bytes=1000)
    held = cuda.empty(600)[100:]
    assert cuda.free_bytes() == 400
    with pytest.raises(MemoryError, match="600 bytes of device memory wanted, 400 are free"):
        cuda.empty(600)
    del held
    gc.collect()
    assert cuda.free_bytes() == 1000
    assert cuda.empty(500).data_ptr() % PAGE_BYTES == 0
    assert cuda.peak_bytes() == 600


def test_pinning_fails_beyond_its_limit() -> None:
    cuda = SimtCuda(pin_bytes=64)
    cuda.pin(64).zero_()
    with pytest.raises(PinError, match="65 bytes"):
        cuda.pin(65)


def test_fresh_memory_is_not_zero() -> None:
    assert (SimtCuda().empty(100) != 0).all() and (SimtCuda().pin(100) != 0).all()


def test_side_streams_are_per_thread_and_nest() -> None:
    cuda = SimtCuda()
    outer, inner = cuda.stream(), cuda.stream()
    with outer:
        with inner:
            assert cuda.current_stream is inner
        assert cuda.current_stream is outer
    assert cuda.current_stream is None


def test_copy_moves_bytes_between_dtypes_and_refuses_other_sizes() -> None:
    cuda = SimtCuda()
    target = torch.zeros(2, dtype=torch.int64)
    cuda.copy(target, torch.from_numpy(np.arange(4, dtype=np.int32)))
    assert target.tolist() == [1 << 32, 2 | 3 << 32]
    with pytest.raises(ValueError, match="target has 16 bytes, source has 3"):
        cuda.copy(target, torch.zeros(3, dtype=torch.uint8))
