"""StagingRing, StagedRows, LockedMemory: buffers in turn, never to two at once, pageable where need be."""

import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from simt_cuda import SimtCuda, SimtEvent
from some_rows import in_threads, numbered_file, same_bits, unit_codec

from gnn_ibp.device.device_decoder import DeviceDecoder
from gnn_ibp.device.locked_memory import LockedMemory
from gnn_ibp.device.staged_rows import BUFFER_BYTES, StagedRows, buffer_bytes, rows_per_buffer
from gnn_ibp.device.staging import StagingBuffer, StagingRing
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.rows import PAD_BYTES


class SlowEvent:
    """Passes when told to."""

    def __init__(self) -> None:
        self.passed = threading.Event()

    def wait(self) -> None:
        assert self.passed.wait(timeout=120)


class SlowCuda(SimtCuda):
    """Its events pass when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[SlowEvent] = []

    def event(self) -> SlowEvent:  # type: ignore[override]
        self.events.append(SlowEvent())
        return self.events[-1]


def ring_of(cuda: SimtCuda, num_bytes: int = 4096, num_buffers: int = 2) -> StagingRing:
    return StagingRing(cuda, LockedMemory(cuda, "a test"), num_bytes, num_buffers)


def pinned_bytes(cuda: SimtCuda) -> int:
    return cuda._pinned_memory._held


def test_buffers_are_made_when_needed_and_used_again() -> None:
    cuda = SimtCuda()
    ring = ring_of(cuda)
    assert pinned_bytes(cuda) == 0
    seen = set()
    for _ in range(5):
        with ring.buffer() as buffer:
            assert buffer.locked
            assert buffer.host.nbytes == 4096
            seen.add(buffer.host.data_ptr())
    assert len(seen) == 1
    assert pinned_bytes(cuda) == 4096
    with ring.buffer() as one, ring.buffer() as other:
        assert one.host.data_ptr() != other.host.data_ptr()
    assert pinned_bytes(cuda) == 8192


def test_a_buffer_is_never_given_to_two_at_once() -> None:
    ring = ring_of(SimtCuda(), num_buffers=3)
    torn = []

    def work(number: int) -> None:
        for _ in range(30):
            with ring.buffer() as buffer:
                buffer.host.fill_(number)
                time.sleep(0)
                if not bool((buffer.host == number).all()):
                    torn.append(number)

    in_threads(work, 6)
    assert torn == []


def test_who_finds_no_buffer_waits_for_one() -> None:
    ring = ring_of(SimtCuda(), num_buffers=1)
    got = threading.Event()

    def take() -> None:
        with ring.buffer():
            got.set()

    thread = threading.Thread(target=take)
    with ring.buffer():
        thread.start()
        assert not got.wait(timeout=0.05)
    assert got.wait(timeout=120)
    thread.join()


def test_a_buffer_is_filled_again_only_when_the_device_has_read_it() -> None:
    cuda = SlowCuda()
    ring = ring_of(cuda, num_buffers=1)
    with ring.buffer():
        assert cuda.events == []
    got = threading.Event()

    def take() -> None:
        with ring.buffer():
            got.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert not got.wait(timeout=0.05)
    cuda.events[0].passed.set()
    assert got.wait(timeout=120)
    thread.join()
    cuda.events[1].passed.set()


def test_a_failure_loses_no_place_in_the_ring() -> None:
    cuda = SimtCuda()
    ring = ring_of(cuda, num_buffers=1)
    for _ in range(3):
        with pytest.raises(KeyError), ring.buffer():
            raise KeyError
        assert pinned_bytes(cuda) == 4096, "the buffer is used again"
    with ring.buffer():
        pass


def test_a_device_that_is_lost_is_told_to_everybody_and_keeps_nobody_waiting() -> None:
    class LostCuda(SimtCuda):
        """Nothing works on it any more."""

        def event(self) -> SlowEvent:  # type: ignore[override]
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    ring = ring_of(LostCuda(), num_buffers=2)
    told = []

    def work(number: int) -> None:
        with pytest.raises(RuntimeError, match="illegal memory access"), ring.buffer():
            time.sleep(0.01)
        told.append(number)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert sorted(told) == list(range(6))


def test_a_buffer_that_may_be_in_use_for_ever_is_kept_and_another_takes_its_place() -> None:
    class FailingCuda(SimtCuda):
        fails = True

        def event(self) -> SimtEvent:
            if self.fails:
                raise RuntimeError("CUDA error: out of memory")
            return super().event()

    cuda = FailingCuda()
    ring = ring_of(cuda, num_buffers=1)
    with pytest.raises(RuntimeError, match="out of memory"), ring.buffer() as buffer:
        first = buffer.host.data_ptr()
    del buffer
    cuda.fails = False
    for _ in range(2):
        with ring.buffer() as other:
            assert other.host.data_ptr() != first
    assert pinned_bytes(cuda) == 2 * 4096


def test_memory_does_not_go_before_the_device_has_read_it() -> None:
    cuda = SlowCuda()
    ring = ring_of(cuda)
    with pytest.raises(KeyError), ring.buffer():
        raise KeyError  # work may have been queued
    gone = threading.Event()

    def let_go() -> None:
        nonlocal ring
        del ring
        gone.set()

    thread = threading.Thread(target=let_go)
    thread.start()
    assert not gone.wait(timeout=0.05)
    assert pinned_bytes(cuda) == 4096
    cuda.events[0].passed.set()
    assert gone.wait(timeout=120)
    thread.join()
    assert pinned_bytes(cuda) == 0


def test_memory_that_cannot_be_had_loses_no_place_either(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = ring_of(SimtCuda(), num_buffers=1)
    with monkeypatch.context() as patch:
        patch.setattr(LockedMemory, "take", lambda self, num_bytes: (_ for _ in ()).throw(MemoryError))
        for _ in range(3):
            with pytest.raises(MemoryError), ring.buffer():
                pass
    with ring.buffer() as buffer:
        assert buffer.locked


def test_memory_that_cannot_be_locked_is_pageable_and_said_once() -> None:
    cuda = SimtCuda(pin_bytes=5000)
    memory = LockedMemory(cuda, "a test")
    ring = StagingRing(cuda, memory, 4096, 4)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with ring.buffer() as locked, ring.buffer() as pageable, ring.buffer() as another:
            assert [buffer.locked for buffer in (locked, pageable, another)] == [True, False, False]
            assert pageable.host.nbytes == 4096
        assert not memory.take(10).locked
    assert len(warned) == 1
    assert "4,096 bytes for a test cannot be page-locked" in str(warned[0].message)


def test_device_memory_of_a_buffer_grows_to_what_is_asked_for() -> None:
    cuda = SimtCuda()
    with ring_of(cuda).buffer() as buffer:
        assert buffer.device(cuda, 100).nbytes == 100
        first_bytes = cuda._device_memory._held
        first = buffer.device(cuda, first_bytes).data_ptr()
        assert buffer.device(cuda, 100).data_ptr() == first
        assert buffer.device(cuda, first_bytes + 1).nbytes == first_bytes + 1
        assert cuda._device_memory._held == 2 * first_bytes


@pytest.mark.parametrize("row_bytes", [0, 4, 80, 512, 4096, 65_536, 1 << 20, BUFFER_BYTES])
def test_a_buffer_has_room_for_rows_that_do_not_encode(row_bytes: int) -> None:
    codec = IBPCodec.raw(row_bytes)
    num_bytes = buffer_bytes(codec)
    num_rows = rows_per_buffer(num_bytes, codec)
    assert num_rows >= 1
    assert num_bytes == BUFFER_BYTES or num_rows == 1
    row_room = -(-row_bytes // 32) * 32
    for extra, fits in ((0, True), (1, False)):
        staged = StagedRows(
            StagingBuffer(torch.empty(2 * num_bytes, dtype=torch.uint8), True), num_rows + extra, codec
        )
        begin = staged.rows.data.ctypes.data - staged.at.ctypes.data
        assert (begin + PAD_BYTES + (num_rows + extra) * row_room + PAD_BYTES <= num_bytes) == fits


@pytest.mark.parametrize("pin_bytes", [None, 0])
@pytest.mark.parametrize("num_rows", [1, 7, 32, 33, 100])
def test_staged_rows_are_decoded_to_their_places(
    tmp_path: Path, num_rows: int, pin_bytes: int | None
) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", 500)
    cuda = SimtCuda(pin_bytes=pin_bytes)
    decoder = DeviceDecoder(cuda, file.codec)
    ring = StagingRing(cuda, LockedMemory(cuda, None), buffer_bytes(file.codec), 1)
    rng = np.random.default_rng(num_rows)
    out = torch.full((200, 80), 7, dtype=torch.uint8)
    expected = out.numpy().copy()
    for _ in range(2):
        ids, at = rng.integers(0, 500, num_rows), rng.permutation(200)[:num_rows]
        with ring.buffer() as buffer:
            staged = StagedRows(buffer, num_rows, file.codec)
            file.read_stored(ids, staged.rows)
            staged.at[:] = at
            sectors = staged.decode(decoder, torch.arange(500), out)
            assert staged.encoded_bytes == file.stored_sizes(ids).sum()
        assert sectors == (-(-file.stored_sizes(ids) // 32) * 32).sum()
        expected[at] = rows[ids].view(np.uint8)
        assert same_bits(out.numpy(), expected)


def test_the_tables_of_staged_rows_are_all_that_is_copied_where_memory_is_locked(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", 500)
    copied = []

    class Watched(SimtCuda):
        def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
            copied.append(source.nbytes)
            super().copy(target, source)

    for pin_bytes, most in ((None, 100 * 14), (0, 100 * 110)):
        cuda = Watched(pin_bytes=pin_bytes)
        decoder = DeviceDecoder(cuda, unit_codec())
        with StagingRing(cuda, LockedMemory(cuda, None), buffer_bytes(file.codec)).buffer() as buffer:
            staged = StagedRows(buffer, 100, file.codec)
            file.read_stored(np.arange(100), staged.rows)
            staged.at[:] = np.arange(100)
            copied.clear()
            staged.decode(decoder, torch.arange(100), torch.empty(100, 80, dtype=torch.uint8))
        assert most / 2 < sum(copied) < most
