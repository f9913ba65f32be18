"""Readers of numbered rows on a device, and what they read."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from simt_cuda import SimtCuda
from some_rows import numbered_file

from gnn_ibp.cache import RowCache
from gnn_ibp.device.device_cache import device_caches
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
