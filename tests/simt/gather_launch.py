"""Launches of the gather-decode kernel on the CPU: encoded rows as device sources, and what came out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from kernel_launch import Argument
from numpy.typing import NDArray
from simt_cuda import SimtCuda

from gnn_ibp.ops import DeviceSource, GatherCounts, initial_counts, launch_gather_decode
from gnn_ibp.row_codec import RowCodec
from gnn_ibp.rows import PAD_BYTES, EncodedRows

GUARD = 0xCD
"""The byte that `out` holds before a launch."""

_TILE_AT = 3  # of the tile's rows among the kernel's arguments


class TiledCuda(SimtCuda):
    """A SimtCuda whose warps take `tile` ids at once, in `grid` blocks, however few ids there are."""

    tile: int | None = None
    grid: int | None = None

    @property
    def in_process(self) -> bool:
        """Whether launches run in this process, where reads are recorded, and not under a sanitizer."""
        return self._sanitizer is None

    def launch(self, module: str, kernel: str, grid: int, block: int, arguments: Sequence[Argument]) -> None:
        if self.tile is not None:
            arguments = list(arguments)
            arguments[_TILE_AT] = np.uint32(self.tile)
        super().launch(module, kernel, self.grid or grid, block, arguments)


@dataclass(frozen=True)
class Launched:
    """out: uint8 (num_out, row_bytes). missing_ids, missing_at: as many as counts.num_missing tells."""

    out: NDArray[np.uint8]
    counts: GatherCounts
    missing_ids: NDArray[np.int64]
    missing_at: NDArray[np.int64]


def launch(
    cuda: SimtCuda,
    codec: RowCodec,
    ids: Sequence[int] | NDArray[np.int64],
    num_rows: int,
    sources: Sequence[DeviceSource | None],
    num_out: int | None = None,
    at: NDArray[np.int64] | None = None,
    out: torch.Tensor | None = None,
) -> Launched:
    """One launch, every argument in memory of its own. `out` is full of GUARD unless it is given."""
    n = len(ids)
    if out is None:
        out = on_device(np.full((n if num_out is None else num_out, codec.row_bytes), GUARD, np.uint8))
    missing_ids, missing_at = (on_device(np.full(n, -7, np.int64)) for _ in range(2))
    counts = on_device(initial_counts())
    assert codec.device_kernel is not None
    launch_gather_decode(
        cuda,
        codec,
        on_device(codec.device_kernel.table.view(np.int32)),
        on_device(np.asarray(ids, np.int64)),
        num_rows,
        sources,
        out,
        None if at is None else on_device(at),
        missing_ids,
        missing_at,
        counts,
    )
    found = GatherCounts.from_words(counts.numpy())
    assert (missing_ids[found.num_missing :] == -7).all()
    assert (missing_at[found.num_missing :] == -7).all()
    return Launched(
        out.numpy(),
        found,
        missing_ids[: found.num_missing].numpy(),
        missing_at[: found.num_missing].numpy(),
    )


def device_source(rows: EncodedRows, slot_of: NDArray[np.int32] | None = None) -> DeviceSource:
    """Encoded rows, copied to tensors as a kernel takes them."""
    index = rows.index
    return DeviceSource(
        on_device(rows.data),
        on_device(rows.bitmask),
        on_device(index.bases.view(np.int64)) if index else None,
        on_device(index.sizes.view(f"i{index.sizes.itemsize}")) if index else None,
        rows.num_rows,
        index.align if index else 1,
        None if slot_of is None else on_device(slot_of),
    )


def starts(rows: EncodedRows) -> NDArray[np.int64]:
    """Per row, the bytes of the slab before it."""
    if rows.index is None:
        return PAD_BYTES + np.arange(rows.num_rows) * rows.row_bytes
    aligned = rows.index.aligned_sizes()
    return PAD_BYTES + np.cumsum(aligned) - aligned


def on_device(array: NDArray[np.generic]) -> torch.Tensor:
    """A copy at a multiple of 256 bytes, as device memory is."""
    memory = np.zeros(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    memory = memory[start : start + array.nbytes]
    memory[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return torch.from_numpy(memory.view(array.dtype).reshape(array.shape))


def lazily_zeroed(num_bytes: int) -> torch.Tensor:
    """uint8 (num_bytes,): zeros that take memory only where they are touched; on a page boundary."""
    memory = np.zeros(num_bytes + 4096, np.uint8)
    start = -memory.ctypes.data % 4096
    return torch.from_numpy(memory[start : start + num_bytes])
