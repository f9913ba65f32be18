"""Rows of row format version 2 through the tiers of a device: bit for bit, by its own kernels."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from simt_cuda import SimtCuda

from gnn_ibp.dataset import Dataset
from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.errors import FormatError
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.rows import PAD_BYTES
from gnn_ibp.tiers import TieredRows

NUM_ROWS = 120
PLENTY = 1 << 20


class Kind(NamedTuple):
    """Rows of a dtype, so many of their columns not zero, and the kernel that decodes them."""

    dtype: torch.dtype
    num_columns: int
    share: float
    kernel: str


KINDS = [
    Kind(torch.float32, 24, 1, "gather_ibp2_w32_x4"),
    Kind(torch.float32, 128, 1, "gather_ibp2_w32_x1"),
    Kind(torch.float32, 300, 1, "gather_ibp2_w32_long"),
    Kind(torch.float32, 700, 0.03, "gather_ibp2_w32_sparse"),
    Kind(torch.bfloat16, 100, 1, "gather_ibp2_w16_x2"),
    Kind(torch.float16, 100, 0.4, "gather_ibp2_w16_sparse"),
    Kind(torch.float64, 50, 1, "gather_ibp2_w64_x1"),
]


def written(path: Path, kind: Kind) -> tuple[FeatureFile, torch.Tensor]:
    """A file, and its rows; some of them are noise, and stored raw."""
    rng = np.random.default_rng(0)
    shape = NUM_ROWS, kind.num_columns
    rows = torch.from_numpy(rng.standard_normal(shape) * (rng.random(shape) < kind.share)).to(kind.dtype)
    codec = IBP2Codec.fit(rows)
    rows[::9] = torch.from_numpy(rng.integers(0, 256, rows[::9].view(torch.uint8).shape, np.uint8)).view(
        kind.dtype
    )
    write_feature_file(path, rows, codec)
    return FeatureFile(path), rows


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.view(torch.uint8).equal(b.view(torch.uint8))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kernel)
def test_every_tier_gives_what_was_written(tmp_path: Path, kind: Kind) -> None:
    file, rows = written(tmp_path / "x.ibp", kind)
    sizes = file.stored_sizes(np.arange(NUM_ROWS))
    assert 0.8 < (sizes < file.row_bytes).mean() < 1
    cuda = SimtCuda()
    ids = np.random.default_rng(2).integers(0, NUM_ROWS, 200)
    third = int(sizes.sum()) // 3
    used = []
    for budgets in ((PLENTY, 0), (PLENTY, PLENTY), (third + 8 * NUM_ROWS, third)):
        hot = np.arange(NUM_ROWS if budgets[1] == 0 else 40)
        reader = TieredRows(device_caches(cuda, file, hot, *budgets), file, cuda)
        out = torch.zeros(len(ids), kind.num_columns, dtype=kind.dtype)
        reader.read(ids, out)
        assert same_bits(out, rows[ids])
        used.append([name for name, tier in reader.stats().items() if tier["hits"]])
    assert used == [["cache"], ["cache", "host"], ["cache", "host", "disk"]]
    assert {launched.kernel for launched in cuda.launches} == {kind.kernel}


@pytest.mark.parametrize("kind", [KINDS[1], KINDS[2], KINDS[3]], ids=lambda kind: kind.kernel)
def test_a_damaged_row_of_a_cache_is_named(tmp_path: Path, kind: Kind) -> None:
    file, rows = written(tmp_path / "x.ibp", kind)
    cuda = SimtCuda()
    caches = device_caches(cuda, file, np.arange(NUM_ROWS), PLENTY, 0)
    source = caches[0].device_source
    assert source is not None
    sizes = file.stored_sizes(np.arange(NUM_ROWS))
    at = PAD_BYTES + int((-(-sizes[:5] // 16) * 16).sum())
    source.data[at : at + 24] = 0xFF
    reader = TieredRows(caches, file, cuda)
    out = torch.zeros(3, kind.num_columns, dtype=kind.dtype)
    with pytest.raises(FormatError, match="row 5 is damaged"):
        reader.read([4, 5, 6], out)
    reader.read([4, 6, 7], out)
    assert same_bits(out, rows[[4, 6, 7]])


@pytest.mark.parametrize("format", [1, 2])
def test_a_store_on_a_device_serves_what_one_on_the_cpu_serves(tmp_path: Path, format: int) -> None:
    rng = np.random.default_rng(3)
    shape = NUM_ROWS, 700
    words = (rng.random(shape) < 0.02).astype(np.float32)
    dataset = Dataset.from_arrays(
        tmp_path / "data",
        edge_index=rng.integers(0, NUM_ROWS, (2, 500)),
        x=rng.standard_normal((NUM_ROWS, 96), np.float32),
        features={"words": words, "year": rng.integers(1990, 2020, NUM_ROWS).astype(np.int16)},
        format=format,
    )
    on_cpu = FeatureStore(dataset, "cpu", cache_bytes=0)
    cuda = SimtCuda()
    on_device = FeatureStore(dataset, cuda, cache_bytes="40KiB", host_bytes="40KiB")
    ids = torch.from_numpy(rng.integers(0, NUM_ROWS, 300))
    for name in ("x", "words", "year"):
        assert same_bits(on_device.read(name, ids), on_cpu.read(name, ids))
    modules = {launched.module for launched in cuda.launches}
    assert all(module.startswith("gather_ibp2" if format == 2 else "gather_decode") for module in modules)
