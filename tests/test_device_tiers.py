"""TieredRows on a device: bit for bit what the CPU reads, whatever lies where; exact counters."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from device_readers import (
    ALL,
    HOST,
    HOT,
    LAYOUTS,
    NONE,
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
from simt_cuda import SimtCuda
from some_rows import numbered_file, same_bits

from gnn_ibp.cache import RowCache
from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_type import DTYPES, RowType
from gnn_ibp.tiers import TieredRows


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
    monkeypatch.setattr("gnn_ibp.device.copied_tiers.BUFFER_BYTES", 100)  # four rows at a time
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
