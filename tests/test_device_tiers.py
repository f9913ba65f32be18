"""TieredRows on a device: bit for bit what the CPU reads, whatever lies where; exact counters."""

import gc
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from late_cuda import LateCuda
from simt_cuda import SimtCuda
from some_rows import in_threads, numbered_file, same_bits, unit_codec
from watched_cuda import WatchedCuda

from gnn_ibp.cache import RowCache
from gnn_ibp.device_cache import device_caches
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.format import ROWS_AT
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_type import DTYPES, RowType
from gnn_ibp.rows import PAD_BYTES
from gnn_ibp.tiers import Stats, TieredRows

LAYOUTS = ["condensed", "in-place"]
NUM_ROWS = 300
HOT = np.random.default_rng(4).permutation(NUM_ROWS)
PLENTY = 1 << 20
NONE, ONE, SOME, ALL = 0, 1, 60, NUM_ROWS
"""How many rows are hot: those in the cache."""

HOST = {"none": 0, "some": 8000, "all condensed": 22_000, "all": PLENTY}
"""Bytes of host memory; 24,128 hold all rows in place."""


def opened(
    folder: Path,
    num_hot: int = SOME,
    host_bytes: int = HOST["some"],
    layout: str = "condensed",
    cuda: SimtCuda | None = None,
    cache_bytes: int = PLENTY,
) -> tuple[TieredRows, np.ndarray, SimtCuda]:
    """A reader of numbered rows, the rows, and the device."""
    file, rows = numbered_file(folder / "x.ibp", NUM_ROWS, layout=layout)
    cuda = cuda or SimtCuda()
    caches = device_caches(cuda, file, HOT[:num_hot], cache_bytes, host_bytes)
    return TieredRows(caches, file, cuda), rows, cuda


def ids_of(num_ids: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, NUM_ROWS, num_ids)


def read(reader: TieredRows, ids: Any, at: Any = None, num_out: int | None = None) -> np.ndarray:
    """Rows (num_out, 20), 7 where nothing was read to."""
    out = torch.full((len(ids) if num_out is None else num_out, 20), 7.0)
    reader.read(ids, out, at)
    return out.numpy()


def sectors(sizes: np.ndarray) -> int:
    return int((-(-sizes // 32) * 32).sum())


def check_sums(stats: Stats, num_lookups: int) -> None:
    lookups = num_lookups
    for name, tier in stats.items():
        assert tier["lookups"] == lookups, name
        assert tier["hits"] + tier["misses"] == lookups
        assert tier["logical_bytes"] == tier["hits"] * 80
        lookups = tier["misses"]
    assert lookups == 0


def slots(cache: RowCache) -> np.ndarray:
    """Of every id, -1 where it is not in the cache."""
    source = cache.device_source or cache.source
    if source is None:
        return np.full(NUM_ROWS, -1)
    return np.arange(NUM_ROWS) if source.slot_of is None else np.asarray(source.slot_of)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("host", HOST)
@pytest.mark.parametrize("num_hot", [NONE, ONE, SOME, ALL])
def test_rows_are_exact_whatever_lies_where(tmp_path: Path, num_hot: int, host: str, layout: str) -> None:
    reader, rows, _ = opened(tmp_path, num_hot, HOST[host], layout)
    cache, host_rows = reader.caches
    assert cache.num_rows == num_hot
    assert (host_rows.num_rows == NUM_ROWS) == host.startswith("all")
    ids = ids_of(70)
    for given in (ids, torch.from_numpy(ids)):
        assert same_bits(read(reader, given), rows[ids])
    at = np.random.default_rng(1).permutation(90)[:70]
    expected = np.full((90, 20), 7, np.float32)
    expected[at] = rows[ids]
    for places in (at, torch.from_numpy(at)):
        assert same_bits(read(reader, torch.from_numpy(ids), places, 90), expected)

    stats = reader.stats()
    check_sums(stats, 4 * 70)
    in_cache = slots(cache)[ids] >= 0
    in_host = (slots(host_rows)[ids] >= 0) & ~in_cache
    sizes = reader.file.stored_sizes(ids)
    for name, here in (("cache", in_cache), ("host", in_host), ("disk", ~in_cache & ~in_host)):
        assert stats[name]["hits"] == 4 * here.sum()
        assert stats[name]["encoded_bytes"] == 4 * sizes[here].sum()
    assert stats["cache"]["physical_bytes"] == stats["cache"]["encoded_bytes"]
    assert stats["cache"]["pcie_bytes"] == 0
    assert stats["host"]["pcie_bytes"] == stats["host"]["physical_bytes"]
    in_place = host_rows.device_source is not None and host_rows.device_source.bases is None
    if not in_place:
        assert stats["host"]["pcie_bytes"] == 4 * sectors(sizes[in_host])
    else:  # 80 bytes do not begin at a sector
        begins = 80 * ids[in_host]
        touched = -(-(begins + sizes[in_host]) // 32) - begins // 32
        assert stats["host"]["pcie_bytes"] == 4 * 32 * touched.sum()
    assert stats["disk"]["pcie_bytes"] == 4 * sectors(sizes[~in_cache & ~in_host])
    assert stats["disk"]["physical_bytes"] % 4096 == 0
    assert all(tier["seconds"] >= 0 for tier in stats.values())


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "bool", "complex64"]
)
@pytest.mark.parametrize("shape", [(), (8,), (3, 4)], ids=str)
def test_any_dtype_and_shape_comes_back(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    row_type = RowType(dtype, shape)
    words = np.random.default_rng(3).integers(0, 2, (NUM_ROWS, max(1, row_type.row_bytes)), np.uint8)
    rows = row_type.from_bytes(words)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.fit(rows), block_bytes=4096)
    file = FeatureFile(tmp_path / "x.ibp")
    cuda = SimtCuda()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader = TieredRows(device_caches(cuda, file, HOT[:SOME], 4000, 2000), file, cuda)
    ids = torch.from_numpy(ids_of(50))
    out = torch.empty(50, *shape, dtype=DTYPES[dtype])
    reader.read(ids, out)
    assert out.reshape(-1).view(torch.uint8).equal(rows[ids].reshape(-1).view(torch.uint8))
    check = reader.stats()
    assert sum(int(tier["hits"] or 0) for tier in check.values()) == 50


def test_8_bit_chunks_are_decoded_by_the_cpu_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_ibp.copied_tiers.BUFFER_BYTES", 100)  # four rows at a time
    rows = np.random.default_rng(2).integers(0, 3, (NUM_ROWS, 21), np.uint8)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.fit(rows, chunk_bits=8))
    file, cuda = FeatureFile(tmp_path / "x.ibp"), SimtCuda()
    with pytest.warns(UserWarning, match="decoded by the CPU.*chunks of 8 bits") as warned:
        reader = TieredRows(device_caches(cuda, file, HOT, PLENTY, 4000), file, cuda)
        ids = ids_of(50)
        for given in (ids, torch.from_numpy(ids)):
            for at in (None, np.arange(50)[::-1].copy(), torch.arange(50).flip(0)):
                out = torch.empty(50, 21, dtype=torch.uint8)
                reader.read(given, out, at)
                assert np.array_equal(out.numpy() if at is None else out.numpy()[::-1], rows[ids])
    assert len(warned) == 1
    assert cuda.launches == []
    stats = reader.stats()
    assert stats["cache"]["hits"] == 0
    assert stats["host"]["hits"] == 6 * (slots(reader.caches[1])[ids] >= 0).sum() > 0
    assert stats["disk"]["hits"] == 300 - int(stats["host"]["hits"] or 0) > 0
    assert stats["host"]["pcie_bytes"] == 21 * int(stats["host"]["hits"] or 0)
    for bad, message in (
        ([5, NUM_ROWS], r"ids\[1\] is 300, the valid range is 0 to 299"),
        ([-3, 0], r"ids\[0\] is -3"),
    ):
        for given in (np.array(bad), torch.tensor(bad)):
            with pytest.raises(IndexError, match=message):
                reader.read(given, torch.empty(2, 21, dtype=torch.uint8))
    with pytest.raises(IndexError, match="at has places from 0 to 2, out has rows 0 to 1"):
        reader.read([1, 2], torch.empty(2, 21, dtype=torch.uint8), torch.tensor([0, 2]))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_ids_of_any_integer_width(tmp_path: Path, dtype: torch.dtype) -> None:
    reader, rows, _ = opened(tmp_path)
    ids = torch.tensor([99, 0, 50, 50], dtype=dtype)
    assert same_bits(read(reader, ids), rows[[99, 0, 50, 50]])
    assert same_bits(read(reader, ids[::2]), rows[[99, 50]])
    assert same_bits(read(reader, ids.tolist()), rows[[99, 0, 50, 50]])


@pytest.mark.parametrize("bad", [-1, NUM_ROWS, 2**31 + 5, 2**40, -(2**63)])
@pytest.mark.parametrize("where", [0, 33, 69])
def test_a_bad_id_is_the_same_error_wherever_it_is_found(tmp_path: Path, bad: int, where: int) -> None:
    reader, rows, _ = opened(tmp_path)
    ids = ids_of(70)
    ids[where] = bad
    ids[60] = -7 if where < 60 else ids[60]
    messages = []
    for given in (ids, ids.tolist(), torch.from_numpy(ids)):
        with pytest.raises(IndexError) as caught:
            read(reader, given)
        messages.append(str(caught.value))
    assert messages == [f"ids[{where}] is {bad}, the valid range is 0 to 299"] * 3
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, torch.tensor([5, 6])), rows[[5, 6]]), "and the next read is well"


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([0.5]), TypeError, "float32, want integers"),
        (torch.tensor([True]), TypeError, r"bool, want integers; a mask becomes ids by mask\.nonzero"),
        (torch.tensor([[1]]), ValueError, r"\(1, 1\), want one dimension"),
        (torch.tensor([1, 2]), ValueError, "out has 1 rows, there are 2 ids"),
        ([0.5], TypeError, "float64, want integers"),
    ],
)
def test_what_are_no_ids_is_refused(tmp_path: Path, ids: Any, error: type[Exception], message: str) -> None:
    reader, _, cuda = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read(ids, torch.empty(1, 20))
    assert cuda.launches == []


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        ([0, 3], IndexError, "at has places from 0 to 3, out has rows 0 to 2"),
        ([-1, 0], IndexError, "at has places from -1 to 0, out has rows 0 to 2"),
        ([0], ValueError, r"at has shape \(1,\), there are 2 ids"),
        ([[0, 1]], ValueError, r"at has shape \(1, 2\)"),
        ([0.0, 1.0], TypeError, r"at has dtype .*float(32|64), integers are wanted"),
        ([True, False], TypeError, "bool, integers are wanted"),
    ],
)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_bad_places_are_refused_wherever_they_are(
    tmp_path: Path, at: Any, error: type[Exception], message: str, as_tensor: bool
) -> None:
    reader, _, _ = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read([1, 2], torch.empty(3, 20), torch.tensor(at) if as_tensor else np.array(at))
    check_sums(reader.stats(), 0)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.empty((2, 20), np.float32), TypeError, "torch tensor on cpu, got ndarray"),
        (torch.empty(2, 20, dtype=torch.float64), TypeError, "float64, the rows have float32"),
        (torch.empty(2, 19), ValueError, r"\(2, 19\), \(num_rows, 20\) is wanted"),
        (torch.empty(2, 40)[:, ::2], ValueError, "not contiguous"),
        (torch.empty(2, 20, device="meta"), ValueError, "out is on meta"),
    ],
    ids=range(5),
)
def test_bad_out_is_refused(tmp_path: Path, out: Any, error: type[Exception], message: str) -> None:
    reader, _, cuda = opened(tmp_path)
    with pytest.raises(error, match=message):
        reader.read([1, 2], out)
    assert cuda.launches == []


def test_nothing_to_read_asks_nobody(tmp_path: Path) -> None:
    reader, _, cuda = opened(tmp_path)
    for ids in ([], torch.empty(0, dtype=torch.int64)):
        reader.read(ids, torch.empty(0, 20))
    check_sums(reader.stats(), 0)
    assert cuda.launches == []


@pytest.mark.parametrize("num_columns", [5, 6, 7])
def test_an_output_inside_of_a_chunk_is_served_too(tmp_path: Path, num_columns: int) -> None:
    rows = np.random.default_rng(0).uniform(0.5, 1, (50, 2 * num_columns)).astype(np.float16)
    write_feature_file(tmp_path / "x.ibp", rows, IBPCodec.fit(rows, chunk_bits=32))
    file, cuda = FeatureFile(tmp_path / "x.ibp"), SimtCuda()
    reader = TieredRows(device_caches(cuda, file, [3, 4], PLENTY, 0), file, cuda)
    memory = torch.zeros(1 + 4 * 2 * num_columns, dtype=torch.float16)
    out = memory[1:].view(4, 2 * num_columns)
    assert out.data_ptr() % 4 == 2
    reader.read([4, 10, 3, 4], out)
    assert np.array_equal(out.numpy(), rows[[4, 10, 3, 4]])
    reader.read([10, 3], out, torch.tensor([3, 1]))
    assert np.array_equal(out.numpy(), rows[[4, 3, 3, 10]])
    with pytest.raises(IndexError, match="at has places from 0 to 4, out has rows 0 to 3"):
        reader.read([10, 3], out, torch.tensor([0, 4]))
    assert memory[0] == 0


@pytest.mark.parametrize("host", ["some", "all condensed", "all"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tier", [0, 1])
def test_a_damaged_row_in_memory_is_named(tmp_path: Path, tier: int, layout: str, host: str) -> None:
    reader, rows, _ = opened(tmp_path, SOME, HOST[host], layout)
    source = reader.caches[tier].device_source
    assert source is not None
    held = slots(reader.caches[tier])
    if tier == 1:
        held = np.where(slots(reader.caches[0]) >= 0, -1, held)
    victim, well = [int(id_) for id_ in np.flatnonzero(held >= 0) if id_ % 5][:2]  # every fifth is stored raw
    slot = int(held[victim])
    if source.bases is None:
        begin = 80 * slot
    else:
        assert source.sizes is not None
        sizes = source.sizes.numpy()[:slot].astype(int) * 4
        begin = int((-(-sizes // source.align) * source.align).sum())
    source.data[PAD_BYTES + begin : PAD_BYTES + begin + 4] = 0  # no chunk participates: the row does not fit
    message = f"row {victim} is damaged: its stored bytes are no encoded row"
    for ids in ([well, victim], torch.tensor([well, victim])):
        with pytest.raises(FormatError, match=message):
            read(reader, ids)
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, [well]), rows[[well]])


def test_a_damaged_row_in_ordinary_memory_is_named(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cannot be page-locked"):
        reader, _, _ = opened(tmp_path, SOME, HOST["some"], cuda=SimtCuda(pin_bytes=0))
    source = reader.caches[1].source
    assert source is not None
    held, index = slots(reader.caches[1]), source.rows.index
    assert index is not None
    victim = int(np.flatnonzero((held >= 0) & (held < 32) & (np.arange(NUM_ROWS) % 5 > 0))[3])
    begin = PAD_BYTES + int(index.aligned_sizes(slice(0, int(held[victim]))).sum())
    source.rows.data[begin : begin + 4] = 0
    with pytest.warns(UserWarning), pytest.raises(FormatError, match=f"^row {victim} is damaged"):
        read(reader, [victim, 3])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_row_on_disk_is_named_with_its_file(tmp_path: Path, layout: str) -> None:
    reader, rows, _ = opened(tmp_path, NONE, 0, layout)
    begin = 7 * 80 if layout == "in-place" else int(reader.file.stored_sizes(np.arange(7)).sum())
    path = tmp_path / "x.ibp"
    data = bytearray(path.read_bytes())
    data[ROWS_AT + begin : ROWS_AT + begin + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    for ids in ([3, 7], torch.tensor([3, 7])):
        with pytest.raises(FormatError, match=r"x\.ibp: block 0 .* row 7 is not well-formed"):
            read(reader, ids)
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, [3, 6]), rows[[3, 6]])


def test_a_cut_file_is_an_error_for_rows_of_the_disk_alone(tmp_path: Path) -> None:
    reader, rows, _ = opened(tmp_path, SOME, 0)
    with (tmp_path / "x.ibp").open("r+b") as file:
        file.truncate(ROWS_AT)
    with pytest.raises(FormatError, match="cut short"):
        read(reader, np.arange(NUM_ROWS))
    check_sums(reader.stats(), 0)
    assert same_bits(read(reader, HOT[:SOME]), rows[HOT[:SOME]])
    for _ in range(9):  # more failures than there are staging buffers
        with pytest.raises(FormatError, match="cut short"):
            read(reader, HOT[SOME : SOME + 1])


@pytest.mark.parametrize("pin_bytes", [None, 0])
def test_more_missing_rows_than_a_buffer_holds_come_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_bytes: int | None
) -> None:
    monkeypatch.setattr("gnn_ibp.staged_rows.BUFFER_BYTES", 2048)
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


def test_memory_of_a_device_that_runs_out_says_so(tmp_path: Path) -> None:
    file, _ = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda(device_bytes=10_000)
    reader = TieredRows(device_caches(cuda, file, HOT, 10_000, 0), file, cuda)
    with pytest.raises(MemoryError, match=r"bytes of device memory wanted, \d+ are free"):
        read(reader, ids_of(4000))


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
    monkeypatch.setattr("gnn_ibp.staged_rows.BUFFER_BYTES", 4096)
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


def test_a_cache_on_a_device_wants_the_device(tmp_path: Path) -> None:
    reader, _, _ = opened(tmp_path)
    with pytest.raises(ValueError, match="a cache lies on a device"):
        TieredRows(reader.caches, reader.file)


def test_caches_in_ordinary_memory_serve_a_device_too(tmp_path: Path) -> None:
    file, rows = numbered_file(tmp_path / "x.ibp", NUM_ROWS)
    cuda = SimtCuda()
    reader = TieredRows([RowCache.fill(file, HOT[:SOME], PLENTY)], file, cuda)
    ids = ids_of(70)
    assert same_bits(read(reader, torch.from_numpy(ids)), rows[ids])
    stats = reader.stats()
    assert list(stats) == ["cache", "disk"]
    assert stats["cache"]["hits"] == np.isin(ids, HOT[:SOME]).sum()
    assert stats["cache"]["pcie_bytes"] > 0
    check_sums(stats, 70)


def test_rows_without_bytes_and_no_rows_are_legal(tmp_path: Path) -> None:
    for shape in ((50, 0), (0, 3)):
        path = tmp_path / f"{shape[0]}.ibp"
        write_feature_file(path, np.empty(shape, np.float32), IBPCodec.raw(4 * shape[1]))
        file, cuda = FeatureFile(path), SimtCuda()
        reader = TieredRows(device_caches(cuda, file, np.arange(shape[0])[:9], PLENTY, 0), file, cuda)
        out = torch.empty(shape)
        reader.read(np.arange(shape[0]), out)
        assert reader.stats()["disk"]["hits"] == max(0, shape[0] - 9)
    with pytest.raises(IndexError, match=r"ids\[0\] is 0, the valid range is empty: there are no rows"):
        reader.read(torch.tensor([0]), torch.empty(1, 3))


@pytest.mark.parametrize("pin_bytes", [None, 0])
def test_a_busy_device_finds_everything_as_it_was_when_it_gets_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_bytes: int | None
) -> None:
    monkeypatch.setattr("gnn_ibp.staged_rows.BUFFER_BYTES", 2048)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cuda = LateCuda(pin_bytes=pin_bytes)
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
    cuda = LateCuda()
    reader, rows, _ = opened(tmp_path, cuda=cuda)
    with monkeypatch.context() as patch:
        patch.setattr("late_cuda.LateEvent.wait", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            read(reader, torch.from_numpy(ids_of(50)))
    ids, out = ids_of(50, 1), torch.zeros(50, 20)
    with cuda.stream():
        reader.read(torch.from_numpy(ids), out)
        cuda.event().wait()
    assert cuda.queued[None] == [], "the memory of the first read was not used before that was over"
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
