"""The caches of a device: who lies where, within two budgets, on a SimtCuda that counts its memory."""

import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from lazy_cuda import LazyCuda
from simt_cuda import SimtCuda
from some_rows import numbered_file, numbered_rows, same_bits, unit_codec

from gnn_ibp.cache import RowCache
from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.rows import GROUP, PAD_BYTES
from gnn_ibp.tiers import TieredRows

LAYOUTS = ["condensed", "in-place"]
NUM_ROWS = 500
HOT = np.random.default_rng(4).permutation(NUM_ROWS)[:200]
TABLE_BYTES = 4 * NUM_ROWS
PLENTY = 1 << 20


def held(cache: RowCache) -> list[int]:
    """Ids by slot."""
    source = cache.device_source or cache.source
    if source is None:
        return []
    if source.slot_of is None:
        return list(range(cache.num_rows))
    slot_of = np.asarray(source.slot_of)
    ids = np.flatnonzero(slot_of >= 0)
    return ids[np.argsort(slot_of[ids])].tolist()


def index_bytes(num_rows: int) -> int:
    """Of bitmask, bases and sizes of condensed rows."""
    return -(-num_rows // 8) + 8 * -(-num_rows // GROUP) + 2 * num_rows


def slab_bytes(file: FeatureFile, ids: list[int], align: int) -> int:
    sizes = file.stored_sizes(np.array(ids, np.int64))
    return 2 * PAD_BYTES + int((-(-sizes // align) * align).sum())


def pinned_bytes(cuda: SimtCuda) -> int:
    return cuda._pinned_memory._held


def device_bytes(cuda: SimtCuda) -> int:
    return cuda._device_memory._held


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("budget", [2250, 3000, 5000, 10_000, 14_999, 15_000, PLENTY])
def test_cache_keeps_the_rows_a_cpu_cache_keeps(tmp_path: Path, layout: str, budget: int) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    on_cpu = RowCache.fill(file, HOT, budget)
    cuda = SimtCuda()
    cache, host = device_caches(cuda, file, HOT, budget, 0)
    assert sorted(held(on_cpu)) == held(cache)
    assert on_cpu.num_rows > 0
    assert (cache.num_rows, cache.nbytes) == (on_cpu.num_rows, on_cpu.nbytes)
    assert cache.num_rows_if_raw == on_cpu.num_rows_if_raw
    assert cache.nbytes == device_bytes(cuda)
    assert (host.num_rows, host.nbytes, host.num_rows_if_raw, host.device_source) == (0, 0, 0, None)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_budget_is_ever_exceeded(tmp_path: Path, layout: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    cache_rows, host_rows = set(), set()
    for cache_bytes in (2129, 3000, 4800, 6000, 9000, 20_000, 50_000):
        for host_bytes in (200, 2000, 10_000, 30_000, 41_000):
            cuda = SimtCuda(device_bytes=cache_bytes)  # more is a MemoryError
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cache, host = device_caches(cuda, file, HOT, cache_bytes, host_bytes)
            assert cache.nbytes + host.tables_bytes == cache_bytes - cuda.free_bytes()
            assert host.slab_bytes == pinned_bytes(cuda) <= host_bytes
            cache_rows.add(cache.num_rows)
            host_rows.add(host.num_rows)
    assert {0, len(HOT)} < cache_rows
    assert {0, NUM_ROWS} < host_rows


def test_a_byte_less_holds_a_row_less(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    host_bytes = slab_bytes(file, list(range(60)), 32)
    tables = TABLE_BYTES + index_bytes(60)
    for one_less, num_rows in ((0, 60), (1, 59)):
        _, host = device_caches(SimtCuda(), file, [], tables, host_bytes - one_less)
        assert host.num_rows == num_rows
        _, host = device_caches(SimtCuda(), file, [], tables - one_less, 2 * host_bytes)
        assert host.num_rows == num_rows


@pytest.mark.parametrize("layout", LAYOUTS)
def test_host_rows_are_the_next_hot_ones_and_then_others_in_order(tmp_path: Path, layout: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    cache, host = device_caches(SimtCuda(), file, HOT, 8000, 20_000)
    in_cache, in_host = held(cache), held(host)
    assert 0 < len(in_cache) < len(HOT)
    assert set(in_cache) == set(HOT[: len(in_cache)].tolist())
    rest = [*HOT[len(in_cache) :].tolist(), *sorted(set(range(NUM_ROWS)) - set(HOT.tolist()))]
    assert len(HOT) - len(in_cache) < len(in_host) < len(rest)
    assert set(in_host) == set(rest[: len(in_host)])
    for ids in (in_cache, in_host):
        assert ids == sorted(ids), "slots are in the order of ids"


def test_host_memory_alone_takes_hot_rows_first(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    tables = TABLE_BYTES + index_bytes(50)
    with pytest.warns(
        UserWarning, match=r"cache_bytes=2,\d+ hold no row.*beside 2,\d+ for the tables of host"
    ):
        cache, host = device_caches(SimtCuda(), file, HOT, tables, 30_000)
    assert held(cache) == []
    assert held(host) == sorted(HOT[:50].tolist())
    assert host.tables_bytes == tables


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_rows_in_host_memory_need_no_slot_table(tmp_path: Path, layout: str) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    in_place, condensed = 2 * PAD_BYTES + 80 * NUM_ROWS, slab_bytes(file, list(range(NUM_ROWS)), 32)
    assert condensed < in_place
    for host_bytes in (condensed, in_place - 1, in_place):
        cache, host = device_caches(SimtCuda(), file, HOT, PLENTY, host_bytes)
        assert (cache.num_rows, host.num_rows) == (len(HOT), NUM_ROWS)
        assert host.device_source is not None
        assert host.device_source.slot_of is None
        assert (host.device_source.bases is None) == (layout == "in-place" and host_bytes == in_place)
        assert host.num_rows_if_raw == min(NUM_ROWS, host.nbytes // 80)
    _, host = device_caches(SimtCuda(), file, HOT, PLENTY, condensed - 1)
    assert host.device_source is not None
    assert host.device_source.slot_of is not None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slabs_hold_the_rows_as_they_are_stored(
    tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_ibp.device.staged_rows.BUFFER_BYTES", 1024)  # a few rows at a time
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    packed = unit_codec().encode(rows)
    for cache, align in zip(device_caches(SimtCuda(), file, HOT, 8000, 20_000), (16, 32), strict=True):
        stored = [packed.row(i) for i in held(cache)]
        slab = b"".join(row + bytes(-len(row) % align) for row in stored)
        assert cache.device_source is not None
        assert cache.device_source.data.numpy().tobytes() == bytes(PAD_BYTES) + slab + bytes(PAD_BYTES)


def test_in_place_slab_is_the_file_s(tmp_path: Path) -> None:
    path = tmp_path / "x.ibp"
    file, _ = numbered_file(path, NUM_ROWS, layout="in-place")
    _, host = device_caches(SimtCuda(), file, [], PLENTY, PLENTY)
    assert host.device_source is not None
    rows = path.read_bytes()[ROWS_AT : ROWS_AT + 80 * NUM_ROWS]
    assert host.device_source.data.numpy().tobytes() == bytes(PAD_BYTES) + rows + bytes(PAD_BYTES)


def test_a_page_locked_slab_is_filled_where_it_is(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda()
    pinned = []
    pin = cuda.pin
    cuda.pin = lambda num_bytes: pinned.append(pin(num_bytes)) or pinned[-1]  # type: ignore[method-assign]
    _, host = device_caches(cuda, file, [], PLENTY, PLENTY)
    assert host.device_source is not None
    assert [memory.data_ptr() for memory in pinned] == [host.device_source.data.data_ptr()]


@pytest.mark.parametrize(("cache_bytes", "host_bytes"), [(PLENTY * 32, 0), (PLENTY, PLENTY * 32)])
def test_filling_never_holds_a_second_slab(
    tmp_path: Path, cache_bytes: int, host_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_ibp.device.staged_rows.BUFFER_BYTES", 1 << 20)
    rows = np.random.default_rng(0).uniform(0.5, 1, (20_000, 256)).astype(np.float32)
    write_feature_file(tmp_path / "x.ibp", rows, unit_codec(256), block_bytes=1 << 20)
    file, num_rows = FeatureFile(tmp_path / "x.ibp"), len(rows)
    del rows
    cuda = SimtCuda()
    tracemalloc.start()
    caches = device_caches(cuda, file, np.arange(num_rows), cache_bytes, host_bytes, progress=None)
    held_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    slab = max(cache.slab_bytes for cache in caches)
    assert slab > 12 << 20
    assert held_bytes >= slab, "the memory of SimtCuda is traced, too"
    assert peak_bytes < held_bytes + slab / 2


@pytest.mark.parametrize("num_hot", [0, 200])
@pytest.mark.parametrize("pin_bytes", [None, 12_000])
def test_caches_are_there_for_every_stream(tmp_path: Path, pin_bytes: int | None, num_hot: int) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = LazyCuda(main_stream=True, pin_bytes=pin_bytes)
    cache, host = device_caches(cuda, file, HOT[:num_hot], 8000, 10_000)
    assert cuda.num_left() == 0
    assert host.device_source is not None
    assert held(host) == sorted(held(host)), "the slot table is there"
    if num_hot:
        assert cache.device_source is not None
        last = unit_codec().encode(rows).row(held(cache)[-1])
        slab = cache.device_source.data[:-PAD_BYTES].numpy().tobytes()
        assert slab.endswith(last + bytes(-len(last) % 16))


def test_zero_bytes_are_silent(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda(device_bytes=0, pin_bytes=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caches = device_caches(cuda, file, HOT, 0, 0)
        caches += device_caches(SimtCuda(), file, [], 10_000, 0)
    assert [cache.nbytes for cache in caches] == [0] * 4


@pytest.mark.parametrize(
    ("cache_bytes", "host_bytes", "message"),
    [
        (TABLE_BYTES, 0, r"cache_bytes=2,000 hold no row.*takes 2,000 bytes, 4 for each of 500 rows"),
        (TABLE_BYTES + 2 * PAD_BYTES, 0, r"cache_bytes=2,128 hold no row"),
        (PLENTY, 150, r"host_bytes=150 hold no row.*2,000 bytes, 4 for each of 500 rows"),
        (0, PLENTY, r"host_bytes=1,048,576 hold no row.*2,000 bytes.*cache_bytes=0 may be used"),
    ],
)
def test_too_small_a_budget_is_one_warning_with_the_numbers(
    tmp_path: Path, cache_bytes: int, host_bytes: int, message: str
) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with pytest.warns(UserWarning, match=message) as warned:
        cache, host = device_caches(SimtCuda(), file, HOT, cache_bytes, host_bytes)
    assert len(warned) == 1
    assert (cache.num_rows == 0) == (cache_bytes < PLENTY)
    assert host.num_rows == 0


def test_a_cache_of_all_rows_leaves_none_for_host_memory(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache, host = device_caches(SimtCuda(), file, np.arange(NUM_ROWS), PLENTY, 10_000)
    assert (cache.num_rows, host.num_rows) == (NUM_ROWS, 0)


@pytest.mark.parametrize("num_hot", [0, 1, 200])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_that_cannot_be_locked_is_ordinary_and_said_once(
    tmp_path: Path, layout: str, num_hot: int
) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS, layout=layout)
    hot = HOT[:num_hot]
    cuda = SimtCuda(pin_bytes=0)
    with pytest.warns(
        UserWarning, match=r"[\d,]+ bytes for host rows cannot be page-locked: .*ordinary"
    ) as warned:
        cache, host = device_caches(cuda, file, hot, 8000, 20_000)
    assert len(warned) == 1
    assert pinned_bytes(cuda) == 0
    assert host.device_source is None
    assert not host.over_pcie
    assert host.num_rows > 0
    assert host.nbytes <= 20_000
    assert cache.nbytes == device_bytes(cuda), "no tables of host rows are on the device"
    in_cache, in_host = held(cache), held(host)
    rest = [*hot[len(in_cache) :].tolist(), *sorted(set(range(NUM_ROWS)) - set(hot.tolist()))]
    assert in_host == rest[: len(in_host)]


def test_too_little_device_memory_says_what_to_do(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda(device_bytes=5000)
    with pytest.raises(MemoryError, match=r"5,?000.*give the cache less, cache_bytes is 20,000"):
        device_caches(cuda, file, HOT, 20_000, 0)
    assert cuda.free_bytes() == 5000


def test_memory_comes_back_with_the_caches(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda()
    caches = device_caches(cuda, file, HOT, PLENTY, PLENTY)
    assert device_bytes(cuda) > 0
    assert pinned_bytes(cuda) > 0
    del caches
    assert (device_bytes(cuda), pinned_bytes(cuda)) == (0, 0)


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    with pytest.raises(IndexError, match=r"ids\[1\] is 500"):
        device_caches(SimtCuda(), file, [0, 500], 10_000, 0)
    with pytest.raises(ValueError, match="cache_bytes is -1"):
        device_caches(SimtCuda(), file, [0], -1, 0)
    with pytest.raises(ValueError, match="host_bytes is -1"):
        device_caches(SimtCuda(), file, [0], 0, -1)


def test_repeated_hot_ids_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnn_ibp.slots._FIRST_STEP", 3)
    monkeypatch.setattr("gnn_ibp.cache_plan._STEP", GROUP)
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    hot = np.array([9, 3, 9, 3, 7, 9, 1, 400, 7, 0])
    cache, host = device_caches(SimtCuda(), file, hot, 10_000, 20_000)
    assert held(cache) == [0, 1, 3, 7, 9, 400]
    assert set(held(host)) == set(range(host.num_rows + 5)) - {0, 1, 3, 7, 9}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_met_while_filling(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "x.ibp"
    numbered_file(path, NUM_ROWS, layout=layout)
    data = bytearray(path.read_bytes())
    data[ROWS_AT + 4096 + 5] ^= 1
    path.write_bytes(data)
    for cache_bytes, host_bytes in ((PLENTY, 0), (PLENTY, PLENTY)):
        with pytest.raises(FormatError, match=r"x\.ibp: block 1 \(rows "):
            device_caches(SimtCuda(), FeatureFile(path), np.arange(NUM_ROWS), cache_bytes, host_bytes)


def test_the_file_is_read_once_for_both_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    passes = []
    encoded_blocks = FeatureFile.encoded_blocks

    def counted(self: FeatureFile, wanted: object = None, **options: object) -> object:
        passes.append(None if wanted is None else len(wanted))  # type: ignore[arg-type]
        return encoded_blocks(self, wanted, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FeatureFile, "encoded_blocks", counted)
    cache, host = device_caches(SimtCuda(), file, HOT, 8000, 10_000)
    assert passes == [cache.num_rows + host.num_rows]
    device_caches(SimtCuda(), file, HOT, PLENTY, PLENTY)
    assert passes[1:] == [None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(0, 3), (50, 0)], ids=str)
def test_no_rows_and_rows_without_bytes_are_legal(
    tmp_path: Path, shape: tuple[int, int], layout: str
) -> None:
    rows = np.empty(shape, np.float32)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.raw(4 * shape[1]), layout=layout)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caches = device_caches(
            SimtCuda(), FeatureFile(tmp_path / "x.ibp"), np.arange(min(9, len(rows))), PLENTY, PLENTY
        )
    assert [cache.num_rows for cache in caches] == [min(9, len(rows)), len(rows)]


def test_wide_rows_keep_their_wide_index(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (4, 140_004), np.uint8).view(np.float32)
    nothing = np.zeros(70_002, np.uint16)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec(nothing, nothing, 16))
    file = FeatureFile(tmp_path / "x.ibp")
    cuda = SimtCuda()
    caches = device_caches(cuda, file, [2, 0], 300_000, 300_000)
    assert [held(cache) for cache in caches] == [[0, 2], [1, 3]]
    out = np.empty((4, 35_001), np.float32)
    TieredRows(caches, file, cuda).read(np.arange(4), torch.from_numpy(out))
    assert same_bits(out, rows)


def test_8_bit_chunks_lie_in_ordinary_memory_and_the_device_is_left_alone(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).integers(0, 3, (NUM_ROWS, 21), np.uint8)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.fit(rows, chunk_bits=8))
    cuda = SimtCuda(device_bytes=0, pin_bytes=0)
    cache, host = device_caches(cuda, FeatureFile(tmp_path / "x.ibp"), HOT, PLENTY, 6000)
    assert cache.num_rows == 0
    assert host.source is not None
    assert held(host)[: min(200, host.num_rows)] == HOT[: host.num_rows].tolist()
    assert 0 < host.nbytes <= 6000


def test_rows_numbered_encode_to_sizes_that_differ() -> None:
    """What the tests of budgets rely on."""
    packed = unit_codec().encode(numbered_rows(NUM_ROWS))
    assert len({len(packed.row(i)) for i in range(NUM_ROWS)}) > 1
