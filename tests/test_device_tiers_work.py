"""TieredRows on a device: what it launches, waits for and holds in memory, with threads and interrupts."""

import gc
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from device_readers import (
    HOST,
    HOT,
    LAYOUTS,
    NUM_ROWS,
    ONE,
    PLENTY,
    SOME,
    check_sums,
    ids_of,
    opened,
    read,
    sectors,
    slots,
)
from lazy_cuda import LazyCuda
from simt_cuda import SimtCuda
from some_rows import in_threads, same_bits, unit_codec
from watched_cuda import WatchedCuda

from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.tiers import TieredRows


@pytest.mark.parametrize("pin_bytes", [None, 0])
def test_more_missing_rows_than_a_buffer_holds_come_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_bytes: int | None
) -> None:
    monkeypatch.setattr("gnn_ibp.device.staged_rows.BUFFER_BYTES", 2048)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader, rows, cuda = opened(tmp_path, ONE, HOST["some"], cuda=SimtCuda(pin_bytes=pin_bytes))
        ids = np.concatenate([np.arange(NUM_ROWS), ids_of(50)])
        assert same_bits(read(reader, ids), rows[ids])
    assert len(cuda.launches) > 10
    stats = reader.stats()
    check_sums(stats, len(ids))
    in_host = slots(reader.caches[1])[ids] >= 0
    sizes = reader.file.stored_sizes(ids)
    assert stats["host"]["hits"] == in_host.sum()
    assert stats["host"]["pcie_bytes"] == stats["host"]["physical_bytes"] == sectors(sizes[in_host])
    on_disk = ~in_host & (ids != HOT[0])
    assert stats["disk"]["encoded_bytes"] == sizes[on_disk].sum()
    assert stats["disk"]["pcie_bytes"] == sectors(sizes[on_disk])


def test_without_page_locked_memory_rows_are_exact_and_it_is_said_once(tmp_path: Path) -> None:
    reader, rows, _ = opened(tmp_path, SOME, 0, cuda=SimtCuda(pin_bytes=0))
    ids = ids_of(70)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for given in (ids, torch.from_numpy(ids), ids[:3]):
            assert same_bits(read(reader, given), rows[ids][: len(given)])
    assert len(warned) == 1
    assert "bytes for rows on their way to the device cannot be page-locked" in str(warned[0].message)
    check_sums(reader.stats(), 143)


def test_one_launch_serves_both_caches_and_lists_the_rest(tmp_path: Path) -> None:
    reader, _, cuda = opened(tmp_path)
    in_cache, in_host = (np.flatnonzero(slots(cache) >= 0) for cache in reader.caches)
    read(reader, np.concatenate([in_cache[:9], in_host[:9]]))
    assert len(cuda.launches) == 1
    on_disk = np.setdiff1d(np.arange(NUM_ROWS), np.concatenate([in_cache, in_host]))
    read(reader, torch.from_numpy(np.concatenate([in_cache[:9], in_host[:9], on_disk[:9]])))
    assert len(cuda.launches) == 3, "and one the rows of the disk, staged"


def test_a_read_waits_once_and_for_its_own_work(tmp_path: Path) -> None:
    cuda = WatchedCuda()
    reader, _, _ = opened(tmp_path, cuda=cuda)
    ids = torch.from_numpy(ids_of(100))
    for _ in range(3):  # until there is a staging buffer, and it was used
        cuda.waited.clear()
        read(reader, ids)
        assert int(reader.stats()["disk"]["hits"] or 0) > 0
        assert len(cuda.waited) <= 2, "one for the counts, one for the staging buffer to be free again"
    in_memory = np.flatnonzero((slots(reader.caches[0]) >= 0) | (slots(reader.caches[1]) >= 0))
    cuda.waited.clear()
    read(reader, torch.from_numpy(in_memory))
    assert len(cuda.waited) == 1


def test_memory_is_made_by_the_first_reads_and_used_again(tmp_path: Path) -> None:
    reader, rows, cuda = opened(tmp_path)
    read(reader, ids_of(100))
    device, pinned = cuda._device_memory._held, cuda._pinned_memory._held
    for seed in range(5):
        ids = ids_of(100, seed)
        assert same_bits(read(reader, ids), rows[ids])
        assert (cuda._device_memory._held, cuda._pinned_memory._held) == (device, pinned)


def test_memory_comes_back_with_the_reader(tmp_path: Path) -> None:
    reader, _, cuda = opened(tmp_path)
    read(reader, ids_of(100))
    assert cuda._pinned_memory._held > 0
    del reader
    gc.collect()
    assert (cuda._device_memory._held, cuda._pinned_memory._held) == (0, 0)


def test_a_read_allocates_nothing_as_large_as_its_rows_in_host_memory(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).uniform(0.5, 1, (1000, 512)).astype(np.float32)
    write_feature_file(tmp_path / "x.ibp", rows, unit_codec(512))
    file, cuda = FeatureFile(tmp_path / "x.ibp"), SimtCuda()
    caches = device_caches(cuda, file, np.arange(300), PLENTY, PLENTY // 2)
    reader = TieredRows(caches, file, cuda)
    ids, out = torch.arange(1000), torch.empty(1000, 512)
    reader.read(ids, out)
    tracemalloc.start()
    reader.read(ids, out)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(out.numpy(), rows)
    assert all(tier["hits"] for tier in reader.stats().values())
    assert peak_bytes < out.nbytes / 10


def test_many_threads_get_their_rows_and_are_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_ibp.device.staged_rows.BUFFER_BYTES", 4096)
    reader, rows, cuda = opened(tmp_path)
    wrong: list[int] = []

    def work(seed: int) -> None:
        with cuda.stream():
            for number in range(5):
                ids = ids_of(60, 10 * seed + number)
                given = torch.from_numpy(ids) if number % 2 else ids
                if not same_bits(read(reader, given), rows[ids]):
                    wrong.append(seed)

    in_threads(work, 6)
    assert wrong == []
    stats = reader.stats()
    check_sums(stats, 6 * 5 * 60)
    ids = np.concatenate([ids_of(60, 10 * seed + number) for seed in range(6) for number in range(5)])
    in_cache = slots(reader.caches[0])[ids] >= 0
    assert stats["cache"]["hits"] == in_cache.sum()
    assert stats["host"]["hits"] == ((slots(reader.caches[1])[ids] >= 0) & ~in_cache).sum()


@pytest.mark.parametrize("pin_bytes", [None, 0])
def test_a_busy_device_finds_everything_as_it_was_when_it_gets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_bytes: int | None
) -> None:
    monkeypatch.setattr("gnn_ibp.device.staged_rows.BUFFER_BYTES", 2048)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cuda = LazyCuda(main_stream=True, pin_bytes=pin_bytes)
        reader, rows, _ = opened(tmp_path, cuda=cuda)
        wrong: list[int] = []
        late: list[int] = []

        def work(seed: int) -> None:
            outs = []
            with cuda.stream():
                for number in range(3):  # reads that are queued one after the other, each in many pieces
                    ids = ids_of(90, 10 * seed + number)
                    outs.append((ids, torch.zeros(90, 20)))
                    reader.read(torch.from_numpy(ids), outs[-1][1])
                if any(not same_bits(out.numpy(), rows[ids]) for ids, out in outs):
                    late.append(seed)
                cuda.event().wait()
            if not all(same_bits(out.numpy(), rows[ids]) for ids, out in outs):
                wrong.append(seed)

        work(0)
        assert late == [0], "nobody waited for the last rows; other threads may, for a buffer they share"
        in_threads(work, 4)
    assert wrong == []


def test_an_interrupted_read_does_not_disturb_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = LazyCuda(main_stream=True)
    reader, rows, _ = opened(tmp_path, cuda=cuda)
    with monkeypatch.context() as patch:
        patch.setattr("lazy_cuda.LazyEvent.wait", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read(reader, torch.from_numpy(ids_of(50)))
    ids, out = ids_of(50, 1), torch.zeros(50, 20)
    with cuda.stream():
        reader.read(torch.from_numpy(ids), out)
        cuda.event().wait()
    assert cuda.num_left() == 0, "the memory of the first read was not used before that was over"
    assert same_bits(out.numpy(), rows[ids])
    check_sums(reader.stats(), 50)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("host", ["some", "all"])
def test_kernels_touch_no_byte_beside_what_they_are_given(tmp_path: Path, layout: str, host: str) -> None:
    cuda = SimtCuda(sanitizer="address")
    reader, rows, _ = opened(tmp_path, SOME, HOST[host], layout, cuda)
    for num_ids in (1, 100):
        ids = ids_of(num_ids)
        assert same_bits(read(reader, torch.from_numpy(ids)), rows[ids])


def test_kernels_are_compiled_when_a_reader_is_opened(tmp_path: Path) -> None:
    compiled = []

    class Compiling(SimtCuda):
        def compile(self, module: str, kernel: str) -> None:
            compiled.append((module, kernel))

    reader, _, cuda = opened(tmp_path, cuda=Compiling())
    ready = set(compiled)
    read(reader, ids_of(100))
    assert {(launched.module, launched.kernel) for launched in cuda.launches} == ready
    assert set(compiled) == ready


def test_what_reads_host_memory_leaves_most_processors_to_the_model(tmp_path: Path) -> None:
    def blocks(host_bytes: int, ids: np.ndarray) -> list[int]:
        cuda = SimtCuda()
        cuda.num_processors = 12  # three blocks on each
        reader, _, _ = opened(tmp_path, host_bytes=host_bytes, cuda=cuda)
        read(reader, np.resize(ids, 9216))
        return [launched.grid for launched in cuda.launches]

    assert blocks(0, HOT[:SOME]) == [36], "all are in device memory"
    assert blocks(PLENTY, np.arange(NUM_ROWS)) == [6]
    assert blocks(0, HOT[SOME:]) == [36, 6], "looked up, then staged"


def test_what_a_decoder_keeps_is_shared_with_every_stream_that_reads(tmp_path: Path) -> None:
    cuda = WatchedCuda()
    reader, _, _ = opened(tmp_path, cuda=cuda)
    kept = set(cuda.made_on)  # uploaded or allocated before there was a side stream
    side = cuda.stream()
    with side:
        read(reader, ids_of(100))
    assert len({address for address, stream in cuda.shared if stream is side} & kept) == 3, (
        "the table, the counts to begin with, and the numbers of staged rows"
    )
