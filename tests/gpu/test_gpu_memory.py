"""Memory of a GPU and page-locked memory come, go, and are counted; offsets beyond 32 bits work."""

import gc
import os
from typing import Any

import numpy as np
import pytest
import torch

from gnn_ibp.budget import free_memory
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.ops.device import DeviceSource, GatherCounts, initial_counts, launch_gather_decode
from gnn_ibp.rows import PAD_BYTES


def test_pinned_memory_is_read_by_kernels_and_given_back(cuda: Any, simulated: bool):
    units = 1 << (4 if simulated else 16)
    for round_ in range(3 if simulated else 50):
        pinned = cuda.pin(16 * units)
        pinned.copy_(torch.full((16 * units,), round_ + 1, dtype=torch.uint8))
        out = cuda.empty(16 * units)
        scalars = [np.int64(1), np.int64(units), np.int32(units)]
        cuda.launch("read_lines", "read_lines", 1, 32, [pinned, None, *scalars, out])
        assert (out.cpu() == round_ + 1).all()
        del pinned
        gc.collect()


def test_what_the_host_writes_into_pinned_memory_is_what_the_next_kernel_reads(cuda: Any, simulated: bool):
    units, rounds = (1 << 4, 3) if simulated else (1 << 12, 200)  # little enough for any cache
    pinned, out = cuda.pin(16 * units), cuda.empty(16 * units)
    numbers = pinned.view(torch.int64)
    scalars = [np.int64(1), np.int64(units), np.int32(units)]
    for round_ in range(rounds):
        numbers.copy_(torch.arange(round_, round_ + len(numbers)))
        cuda.launch("read_lines", "read_lines", 1, 32, [pinned, None, *scalars, out])
        cuda.event().wait()
        assert torch.equal(out.cpu(), pinned)


def test_after_a_fork_kernels_read_what_the_parent_writes(cuda: Any, simulated: bool):
    units = 1 << (4 if simulated else 16)
    pinned, out = cuda.pin(16 * units).fill_(1), cuda.empty(16 * units)
    begin, end = os.pipe()
    child = os.fork()
    if child == 0:  # holds whatever it inherited until the parent has read
        os.close(end)
        os.read(begin, 1)
        os._exit(0)
    pinned.fill_(2)
    scalars = [np.int64(1), np.int64(units), np.int32(units)]
    cuda.launch("read_lines", "read_lines", 1, 32, [pinned, None, *scalars, out])
    cuda.event().wait()
    os.close(end), os.close(begin)
    os.waitpid(child, 0)
    assert (out.cpu() == 2).all()


def test_memory_that_there_is_not_is_a_memory_error(big: Any):
    with pytest.raises(MemoryError, match=r"1,125,899,906,842,624 bytes .* are free"):
        big.empty(1 << 50)
    assert big.empty(1 << 20).numel() == 1 << 20


def test_uploaded_tensor_is_a_copy_of_that_moment(cuda: Any):
    for dtype in (torch.int64, torch.float16, torch.bool):
        tensor = torch.arange(100_000).to(dtype)
        wanted = tensor.clone()
        uploaded = cuda.upload(tensor)
        tensor.zero_()
        assert uploaded.device == cuda.device
        assert torch.equal(uploaded.cpu(), wanted)
    assert cuda.upload(torch.empty(0, dtype=torch.int64)).shape == (0,)


def test_copies_go_both_ways_through_page_locked_memory(cuda: Any):
    source, target = cuda.pin(1 << 20), cuda.pin(1 << 20)
    source.copy_(torch.from_numpy(np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)))
    between = cuda.empty(1 << 20)
    cuda.copy(between, source)
    cuda.copy(target, between)
    cuda.event().wait()
    assert torch.equal(target, source)


def test_events_tell_time_and_order(cuda: Any):
    before = cuda.event()
    with cuda.stream():
        memory = cuda.empty(1 << 22)
        memory.fill_(3)
        made = cuda.event()
    made.join()
    cuda.share(memory)
    assert (memory.cpu() == 3).all()
    after = cuda.event()
    after.wait()
    before.wait()
    assert 0 <= after.seconds_since(before) < 60


@pytest.mark.parametrize("where", ["device", "host"])
def test_rows_beyond_four_gigabytes_and_two_to_the_31_are_found(big: Any, where: str):
    num_rows, row_bytes = (1 << 31) + 1000, 4
    num_bytes = num_rows * row_bytes + 2 * PAD_BYTES
    if big.free_bytes() < 2 * num_bytes:
        pytest.skip(f"needs {2 * num_bytes >> 30} GiB of device memory")
    if where == "host" and free_memory() < 2 * num_bytes:
        pytest.skip(f"needs {2 * num_bytes >> 30} GiB of memory")
    data = big.empty(num_bytes) if where == "device" else big.pin(num_bytes)
    rows = data[PAD_BYTES:-PAD_BYTES].view(torch.int32)
    ids = torch.tensor([num_rows - 1, 0, 1 << 31, (1 << 30) + 1, (1 << 31) - 1, num_rows - 1000])
    rows[ids.to(rows.device)] = torch.arange(len(ids), dtype=torch.int32, device=rows.device) + 7
    bitmask = big.empty(-(-num_rows // 8))
    bitmask.zero_()
    source = DeviceSource(data, bitmask, None, None, num_rows, 32, None)
    codec = IBPCodec.raw(row_bytes)
    assert codec.device_kernel is not None
    out, counts = (
        big.empty(len(ids) * row_bytes).view(-1, row_bytes),
        big.upload(torch.from_numpy(initial_counts())),
    )
    missing = [big.upload(torch.empty(len(ids), dtype=torch.int64)) for _ in range(2)]
    table = big.upload(torch.from_numpy(codec.device_kernel.table.view(np.int32).copy()))
    launch_gather_decode(
        *(big, codec, table, big.upload(ids), num_rows, [None, source], out, None, *missing, counts)
    )
    assert torch.equal(out.cpu().view(torch.int32).view(-1), torch.arange(len(ids), dtype=torch.int32) + 7)
    found = GatherCounts.from_words(counts.cpu().numpy())
    assert (found.hits[1], found.bad_at, found.damaged_at) == (len(ids), -1, -1)
