"""SimtCuda keeps the promises that the wiring relies on."""

import gc

import numpy as np
import pytest
import torch
from kernel_launch import LaunchError, Options, Readable
from simt_cuda import PAGE_BYTES, Launched, SimtCuda

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


@pytest.mark.parametrize("sanitizer", [None, "address"])
def test_launches_run_and_are_noted_with_their_stream(sanitizer: str | None) -> None:
    cuda = SimtCuda(Options(order="random"), sanitizer=sanitizer)
    rows, out = torch.arange(64, dtype=torch.uint8), torch.zeros(32, dtype=torch.uint8)
    scalars = [np.int64(2), np.int64(2), np.int32(1)]  # two rows of a unit, every other unit
    with cuda.stream() as stream:
        cuda.launch("read_lines", "read_lines", 1, 32, [rows, None, *scalars, out])
    assert out.tolist() == [*range(16), *range(32, 48)]
    assert cuda.launches == [Launched("read_lines", "read_lines", 1, 32, stream)]


def test_prepared_arguments_are_what_the_kernel_gets() -> None:
    cuda = SimtCuda(sanitizer="address")
    rows, out = torch.zeros(64, dtype=torch.uint8), torch.zeros(32, dtype=torch.uint8)
    arguments = [rows, None, np.int64(2), np.int64(2), np.int32(1), out]

    def run(*ranges: tuple[int, int]) -> None:
        cuda.prepare = lambda kernel, arguments: [Readable(rows, ranges), *arguments[1:]]
        cuda.launch("read_lines", "read_lines", 1, 32, arguments)

    run((0, 16), (32, 48))
    with pytest.raises(LaunchError, match="use-after-poison"):
        run((0, 16), (32, 40))
