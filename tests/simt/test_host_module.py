"""What a launch in this process can be asked: which bytes it read, and buffers and grids of any size."""

import multiprocessing
import resource
from functools import cache
from pathlib import Path

import launch_child
import numpy as np
import pytest
import torch
from host_module import HostModule
from kernel_launch import ORDERS, LaunchError, Options, Readable, Undefined, UnfinishedError
from sanitized_module import SanitizedModule

SOURCE = Path(__file__).parent / "kernels" / "memory.cu"


@cache
def _module() -> HostModule:
    return HostModule(SOURCE)


@pytest.mark.parametrize("order", ORDERS)
def test_reads_of_the_watched_buffer_are_recorded_to_the_byte(order: str) -> None:
    data, out = np.arange(400, dtype=np.uint32), np.zeros(2, np.uint32)
    units = np.array([3, 50])
    stats = _module().launch("read_units", 1, 2, [data, units, out], Options(order=order), watch=data)
    copied = [np.arange(16 * unit, 16 * unit + 9) for unit in units]
    loaded = [np.arange(16 * unit + 16, 16 * unit + 32) for unit in units]
    assert stats.reads is not None
    np.testing.assert_array_equal(stats.reads.bytes_read(), np.sort(np.concatenate([*copied, *loaded])))
    assert stats.reads.sectors().tolist() == [1, 2, 25]
    assert out.tolist() == [12 + 16 + 20, 200 + 204 + 208]


def test_reads_of_other_buffers_are_not_recorded() -> None:
    data, units = np.arange(400, dtype=np.uint32), np.array([3])
    arguments = [data, units, np.zeros(1, np.uint32)]
    other = np.zeros(100, np.uint8)
    reads = _module().launch("read_units", 1, 1, arguments, watch=other).reads
    assert reads is not None and len(reads.sectors()) == 0 and len(reads.bytes_read()) == 0
    reads = _module().launch("read_units", 1, 1, arguments, watch=units).reads
    assert reads is not None and reads.bytes_read().tolist() == list(range(8))
    assert _module().launch("read_units", 1, 1, arguments).reads is None


def test_readable_ranges_allow_exactly_their_bytes() -> None:
    module = SanitizedModule(SOURCE, "address")
    data, units = np.arange(400, dtype=np.uint32), np.array([3])

    def run(ranges: list[tuple[int, int]]) -> int:
        out = np.zeros(1, np.uint32)
        module.launch("read_units", 1, 1, [Readable(data, ranges), units, Undefined(out)])
        return int(out[0])

    assert run([(48, 57), (64, 96)]) == 12 + 16 + 20
    with pytest.raises(LaunchError, match=r"cp.async reads 9 bytes out of bounds"):
        run([(48, 56), (64, 96)])
    for too_few in [[(48, 57), (64, 80)], [(48, 57), (72, 96)], []]:
        with pytest.raises(LaunchError, match=r"poison|out of bounds"):
            run(too_few)
    with pytest.raises(ValueError, match=r"range \[50, 57\) of 1600 bytes"):
        run([(50, 57)])


def test_buffer_beyond_4_gib_is_used_in_place() -> None:
    size, at = (5 << 30) // 8, (4 << 30) // 8 + 77
    buffer = torch.from_numpy(np.zeros(size, np.int64))  # lazily: pages that nobody writes take no memory
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _module().launch("write_far", 1, 32, [buffer, np.int64(at), np.uint64(9)])
    assert buffer[at] == 9 and buffer[at - (4 << 30) // 8] == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("blocks", [1, 2, 60_000])
def test_every_block_of_a_grid_runs_once(blocks: int, order: str) -> None:
    counts = np.zeros(blocks, np.uint32)
    _module().launch("count_blocks", blocks, 1, [counts], Options(order=order, seed=5))
    assert (counts == 1).all()


@pytest.mark.parametrize("sanitizer", [None, "address"])
def test_arguments_that_are_not_the_kernels_are_refused(sanitizer: str | None) -> None:
    module = _module() if sanitizer is None else SanitizedModule(SOURCE, sanitizer)
    to, at, value = np.zeros(4, np.uint64), np.int64(0), np.uint64(1)
    with pytest.raises(LaunchError, match="takes 3 arguments, 2 were given"):
        module.launch("write_far", 1, 1, [to, at])
    for wrong in [[to, np.int32(0), value], [to, to, value], [value, at, value], [to, None, value]]:
        with pytest.raises(LaunchError, match=r"argument \d of write_far is"):
            module.launch("write_far", 1, 1, wrong)
    with pytest.raises(LaunchError, match="is not contiguous"):
        module.launch("write_far", 1, 1, [to[::2], at, value])
    with pytest.raises(LaunchError, match="there is no kernel write"):
        module.launch("write", 1, 1, [to, at, value])


def test_sanitized_buffers_come_back_and_repeated_ones_are_one() -> None:
    module = SanitizedModule(SOURCE, "address")
    to = torch.zeros(4, dtype=torch.int64)
    module.launch("write_far", 1, 1, [to, np.int64(3), np.uint64(5)])
    assert to.tolist() == [0, 0, 0, 5]
    data = np.arange(16, dtype=np.uint32)  # `from` and `out`, and the units in its first bytes
    data[:2] = 1, 0
    module.launch("read_units", 1, 1, [data, data.view(np.int64)[:8], data])
    assert data[0] == 4 + 8 + 12
    with pytest.raises(LaunchError, match="argument 2 overlaps argument 0"):
        module.launch("read_units", 1, 1, [data, np.zeros(1, np.int64), data[4:]])


def test_child_serves_again_after_a_fault_and_in_a_forked_process() -> None:
    module = SanitizedModule(SOURCE, "address")
    to = np.zeros(4, np.uint64)

    def write(at: int) -> None:
        module.launch("write_far", 1, 1, [to, np.int64(at), np.uint64(5)])

    write(3)
    for _ in range(2):
        with pytest.raises(LaunchError, match=r"(?s)write_far under sanitizer address: exit 1.*overflow"):
            write(4)
    write(1)
    assert to.tolist() == [0, 5, 0, 5]
    forked = multiprocessing.get_context("fork").Process(target=write, args=(0,))
    forked.start()
    forked.join()
    assert forked.exitcode == 0
    write(2)
    assert to.tolist() == [0, 5, 5, 5]


def test_launch_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_child, "LIMIT_S", 0.3)
    module = SanitizedModule(SOURCE, "address")
    with pytest.raises(UnfinishedError, match=r"wait_for under sanitizer address: still runs after 0.3 s"):
        module.launch("wait_for", 1, 1, [np.zeros(1, np.uint32)])
