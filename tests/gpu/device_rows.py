"""Rows of many kinds, in files and read through every tier of a device: what the tests on a GPU compare."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.device.device_cache import device_caches
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.feature_writer import write_feature_file
from gnn_ibp.ibp2_codec import IBP2Codec
from gnn_ibp.ibp_codec import IBPCodec
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.tiers import TieredRows

LAYOUTS = ["condensed", "in-place"]


@dataclass(frozen=True)
class Kind:
    """Rows of one dtype and length; `share` of the entries are not zero.

    chunk_bits: of version 1; version 2 takes those of the dtype.
    """

    dtype: torch.dtype
    num_columns: int
    chunk_bits: int
    share: float = 1.0
    version: int = 1

    def rows(self, num_rows: int, seed: int = 0) -> Tensor:
        """(num_rows, num_columns) of any bits that make some rows encode, and every seventh stay raw."""
        rng = np.random.default_rng(seed)
        values = rng.normal(0, 0.1, (num_rows, self.num_columns))
        values *= rng.random(values.shape) < self.share
        if self.dtype.is_floating_point:
            rows = torch.from_numpy(values).to(self.dtype)
        else:
            rows = torch.from_numpy(values * 100).to(self.dtype)
        bits = rows.view(torch.uint8)
        noise = rng.integers(0, 256, bits[::7].shape, np.uint8)
        bits[::7] = torch.from_numpy(noise)
        return rows

    @property
    def row_bytes(self) -> int:
        return self.num_columns * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}x{self.num_columns}w{self.chunk_bits}v{self.version}"

    @property
    def layouts(self) -> list[str]:
        """Those that rows of its version may have."""
        return LAYOUTS if self.version == 1 else LAYOUTS[:1]


KINDS = [
    Kind(torch.float32, 1, 32),
    Kind(torch.float32, 20, 32),
    Kind(torch.float32, 100, 32),
    Kind(torch.float32, 128, 32),
    Kind(torch.float32, 128, 64),
    Kind(torch.float32, 602, 32),
    Kind(torch.float32, 602, 16),
    Kind(torch.float32, 1433, 32, share=0.02),
    Kind(torch.float16, 3, 16),
    Kind(torch.float16, 100, 16),
    Kind(torch.float16, 768, 16),
    Kind(torch.bfloat16, 129, 16),
    Kind(torch.float64, 33, 64),
    Kind(torch.int32, 50, 32),
    Kind(torch.uint8, 10, 16),
    Kind(torch.uint8, 7, 8),
    Kind(torch.float32, 20, 32, version=2),
    Kind(torch.float32, 128, 32, version=2),
    Kind(torch.float32, 602, 32, version=2),
    Kind(torch.float32, 1536, 32, version=2),
    Kind(torch.float32, 1433, 32, share=0.02, version=2),
    Kind(torch.float32, 4000, 32, share=0.4, version=2),
    Kind(torch.bfloat16, 100, 16, version=2),
    Kind(torch.bfloat16, 768, 16, version=2),
    Kind(torch.float16, 300, 16, share=0.1, version=2),
    Kind(torch.float64, 33, 64, version=2),
    Kind(torch.float64, 300, 64, version=2),
    Kind(torch.int32, 50, 32, version=2),
    Kind(torch.uint8, 7, 8, version=2),
]

FIT_ROWS = 2000
"""Enough to fit version 2 on, whose fit is plain NumPy."""

ALL = 1 << 30
BUDGETS = {  # bytes of the device's cache, and of host rows
    "device": (ALL, 0),
    "host": (ALL, ALL),
    "device and host": (None, ALL),
    "all three": (None, None),
    "disk": (0, 0),
}
"""None stands for what holds about a third of the rows. For "host" no row is hot, so that none is cached."""


def write(path: Path, kind: Kind, num_rows: int, layout: str = "condensed") -> tuple[FeatureFile, Tensor]:
    """A feature file of such rows, and these."""
    rows = kind.rows(num_rows)
    if kind.version == 1:
        codec: RowCodec = IBPCodec.fit(rows, chunk_bits=kind.chunk_bits)
    else:
        codec = IBP2Codec.fit(rows[:FIT_ROWS])
    write_feature_file(path, rows, codec, layout=layout)
    return FeatureFile(path), rows


def through(cuda: Any, file: FeatureFile, budget: str) -> TieredRows:
    """A reader of the file whose rows lie in the tiers of BUDGETS[budget]."""
    third = int(file.stored_sizes(np.arange(file.num_rows)).sum()) // 3
    tables = 8 * file.num_rows + 1024
    cache_bytes, host_bytes = BUDGETS[budget]
    cache_bytes = third + tables if cache_bytes is None else cache_bytes
    host_bytes = third if host_bytes is None else host_bytes
    hot = np.random.default_rng(1).permutation(0 if budget == "host" else file.num_rows)
    caches = device_caches(cuda, file, hot, cache_bytes, host_bytes, progress=None)
    return TieredRows(caches, file, cuda)


def empty(cuda: Any, reader: TieredRows, num_rows: int) -> Tensor:
    """(num_rows, *row_shape) on the device, of bytes that no row has."""
    row_type = reader.row_type
    memory = cuda.empty(num_rows * row_type.row_bytes)
    memory.fill_(0xA5)
    return row_type.over(memory, num_rows)


def some_ids(num_rows: int, num_ids: int, seed: int = 0) -> NDArray[np.int64]:
    """Ids in any order, with repeats, the first and the last row among them."""
    ids = np.random.default_rng(seed).integers(0, num_rows, num_ids)
    ids[:1], ids[-1:] = num_rows - 1, 0
    return ids


def same_bits(found: Tensor, wanted: Tensor) -> bool:
    """Whether two tensors, the first on any device, have dtype, shape and every bit in common."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    as_bytes = [tensor.cpu().contiguous().view(-1).view(torch.uint8) for tensor in (found, wanted)]
    return torch.equal(*as_bytes)
