"""The gather-decode kernel on a device: what it takes, what it counts, its launch.

All tensors are on the device; the slab of a source may lie in page-locked host memory. Nothing here waits
for the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp.ops.device_kernel import LANE_BYTES, DeviceKernel
from gnn_ibp.rows import PAD_BYTES

MAX_SOURCES = 2
MAX_ROW_BYTES = 1 << 27
"""Decoded rows on a device are no longer than this."""

COUNT_WORDS = 10
"""Of the tensor that a launch counts in."""

SECTOR_BYTES = 32
SLAB_ALIGN = 32
"""The address of the first row of a slab is a multiple of this many bytes."""

_MAX_TILE = 32  # ids that a warp takes at once


class DeviceCodec(Protocol):
    """What a launch needs of a row format."""

    @property
    def row_bytes(self) -> int: ...
    @property
    def unit(self) -> int: ...
    @property
    def announces_size(self) -> bool: ...
    @property
    def device_kernel(self) -> DeviceKernel | None: ...


class Launcher(Protocol):
    """What a launch needs of a device: `gnn_ibp.cuda.Cuda`."""

    num_processors: int

    def launch(
        self,
        module: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence["Tensor | np.generic | None"],
    ) -> None: ...


@dataclass(frozen=True)
class DeviceSource:
    """Encoded rows that a kernel can be asked for; the tensors are those of `EncodedRows` and `RowIndex`.

    data:    uint8, `PAD_BYTES` + rows + `PAD_BYTES`, the first row at a multiple of `SLAB_ALIGN` bytes; on
             the device or page-locked. All else is on the device.
    bitmask: uint8 (ceil(num_rows / 8),).
    bases:   int64, the bits of uint64 (ceil(num_rows / GROUP),); None: in place.
    sizes:   int16 or int32, the bits of unsigned ones (num_rows,), in units, 16-byte aligned; None: in place.
    align:   rows begin at multiples of it; a power of two, and a multiple of 4 and of the codec's unit.
    slot_of: int32, one entry per row of the data set: the row here that holds it, negative where none does.
             None: row i holds id i.
    """

    data: Tensor
    bitmask: Tensor
    bases: Tensor | None
    sizes: Tensor | None
    num_rows: int
    align: int
    slot_of: Tensor | None

    def arguments(self, unit: int) -> list["Tensor | np.generic | None"]:
        """Of the kernel, in its order."""
        if (self.data.data_ptr() + PAD_BYTES) % SLAB_ALIGN:
            raise ValueError(f"the first row of the slab is not at a multiple of {SLAB_ALIGN} bytes")
        if self.sizes is not None and self.sizes.data_ptr() % 16:
            raise ValueError("sizes do not begin at a multiple of 16 bytes")
        if self.bases is not None and (self.align & (self.align - 1) or self.align % max(4, unit)):
            raise ValueError(f"align is {self.align}, want a power of two, and a multiple of {max(4, unit)}")
        sizes_bytes = self.sizes.element_size() if self.sizes is not None else 0
        return [
            self.data,
            self.bitmask,
            self.bases,
            self.sizes if sizes_bytes == 2 else None,
            self.sizes if sizes_bytes == 4 else None,
            self.slot_of,
            np.uint64(self.data.numel()),
            np.uint64(self.num_rows),
            np.uint32(self.align),
        ]


_NO_SOURCE: list["Tensor | np.generic | None"] = [
    *(None,) * 6,
    np.uint64(2 * PAD_BYTES),
    np.uint64(0),
    np.uint32(1),
]


@dataclass(frozen=True)
class GatherCounts:
    """What a launch found. The lists have an entry per source.

    num_missing:   ids in no source.
    bad_at:        first position of an id outside of the data set, -1 where there is none.
    bad_target_at: first position whose `at` is no row of `out`, or -1.
    damaged_at:    first position of a row whose stored bytes are damaged, or -1.
    hits, encoded_bytes: rows, and their bytes as stored.
    sector_bytes:  of the 32-byte sectors that these lie in.
    """

    num_missing: int
    bad_at: int
    bad_target_at: int
    damaged_at: int
    hits: list[int]
    encoded_bytes: list[int]
    sector_bytes: list[int]

    @classmethod
    def from_words(cls, words: NDArray[np.int64]) -> "GatherCounts":
        """words: int64 (COUNT_WORDS,), what the kernel made of `initial_counts`."""
        missing, bad, bad_target, damaged, *sums = (int(word) for word in words)
        return cls(missing, bad, bad_target, damaged, sums[0:2], sums[2:4], sums[4:6])


def initial_counts() -> NDArray[np.int64]:
    """int64 (COUNT_WORDS,): what `counts` has to hold when a launch begins."""
    words = np.zeros(COUNT_WORDS, np.int64)
    words[1:4] = -1
    return words


def launch_gather_decode(
    cuda: Launcher,
    codec: DeviceCodec,
    table: Tensor,
    ids: Tensor,
    num_rows: int,
    sources: Sequence[DeviceSource | None],
    out: Tensor,
    at: Tensor | None,
    missing_ids: Tensor,
    missing_at: Tensor,
    counts: Tensor,
) -> None:
    """Starts decoding row ids[i] to out[at[i]] (out[i] without `at`), out of the first source that has it.

    table: the codec's `device_kernel.table` on the device. ids, at: int64 (n,). num_rows: of the data set.
    out: uint8 (num_out, row_bytes). missing_ids, missing_at: int64 (n,); their first `num_missing` entries
    are written, in no particular order. counts: `initial_counts` on the device; `GatherCounts` afterwards.

    Asynchronous on the current stream. Nothing is read for an id outside of [0, num_rows), nothing written
    for an `at` outside of [0, num_out). Nothing outside of a slab is read, whatever it holds; only the
    place of a damaged row in `out` is undefined. Raises TypeError and ValueError for what the kernel cannot
    take.
    """
    device_kernel = codec.device_kernel
    if device_kernel is None:
        raise ValueError("rows in chunks of 8 bits are not decoded on a device")
    if not codec.announces_size and any(source and source.bases is None for source in sources):
        raise ValueError("rows of this format cannot lie in place: they do not tell their size")
    n = ids.numel()
    integers = {"ids": ids, "at": at, "missing_ids": missing_ids, "missing_at": missing_at, "counts": counts}
    for name, tensor in integers.items():
        if tensor is not None and tensor.dtype != torch.int64:
            raise TypeError(f"{name} has dtype {tensor.dtype}, want torch.int64")
    _check(codec, n, len(sources), out, at)
    if n == 0:
        return
    row_bytes, num_out = codec.row_bytes, out.shape[0]
    blocks = _blocks(n, cuda.num_processors, device_kernel)
    given = [*sources, None, None][:MAX_SOURCES]
    arguments = [
        *(table, np.uint32(row_bytes), np.uint32(device_kernel.head_bytes), np.uint32(blocks.tile)),
        *(ids, np.int64(n), np.uint64(num_rows), at),
        *(out, np.uint64(num_out), np.uint32(_store_bytes(out)), missing_ids, missing_at, counts),
        *(
            argument
            for source in given
            for argument in (source.arguments(codec.unit) if source else _NO_SOURCE)
        ),
    ]
    cuda.launch(device_kernel.module, device_kernel.kernel, blocks.num, 32 * device_kernel.warps, arguments)


def _check(codec: DeviceCodec, n: int, num_sources: int, out: Tensor, at: Tensor | None) -> None:
    if num_sources > MAX_SOURCES:
        raise ValueError(f"there are {num_sources} sources, at most {MAX_SOURCES} can be asked")
    if codec.row_bytes > MAX_ROW_BYTES:
        raise ValueError(f"rows have {codec.row_bytes} bytes, on a device at most {MAX_ROW_BYTES}")
    if out.shape[1] != codec.row_bytes:
        raise ValueError(f"out has {out.shape[1]} columns, the rows have {codec.row_bytes} bytes")
    if out.data_ptr() % codec.unit:
        raise ValueError(f"out does not begin at a multiple of {codec.unit} bytes")
    if at is None and n > out.shape[0]:
        raise ValueError(f"out has {out.shape[0]} rows, there are {n} ids")
    if at is not None and at.numel() != n:
        raise ValueError(f"at has {at.numel()} entries, there are {n} ids")


class _Blocks(NamedTuple):
    """How a launch is spread: how many blocks, and how many ids each of their warps takes at once."""

    num: int
    tile: int


def _blocks(n: int, num_processors: int, kernel: DeviceKernel) -> _Blocks:
    """At most as many blocks as run at once; all warps take about as many ids, in as few tiles as can be."""
    at_once = num_processors * kernel.blocks_per_processor * kernel.warps
    rounds = -(-n // (at_once * _MAX_TILE))
    tile = -(-n // (at_once * rounds * kernel.rows_at_once)) * kernel.rows_at_once
    most = num_processors * kernel.blocks_per_processor
    return _Blocks(min(-(-n // (tile * kernel.warps)), most), tile)


def _store_bytes(out: Tensor) -> int:
    """The largest power of two, up to a lane's bytes, that divides the address of every row of `out`."""
    bits = out.data_ptr() | out.shape[1] | LANE_BYTES
    return bits & -bits
