"""The caches of a device: rows in its own memory, and rows in host memory that it reads."""

import warnings

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.cache import CACHE_ALIGN, RowCache
from gnn_ibp.cache_plan import CachePlan, CachePlans, plan_caches
from gnn_ibp.cuda import Cuda, PinError
from gnn_ibp.device.device_decoder import decodes
from gnn_ibp.device.device_slab import DeviceSlab
from gnn_ibp.device.locked_memory import LockedMemory
from gnn_ibp.device.staged_rows import buffer_bytes, signed
from gnn_ibp.device.staging import StagingRing
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.ops.device import SECTOR_BYTES, DeviceSource
from gnn_ibp.rows import AnyIds, EncodedRows
from gnn_ibp.slabs import HostSlab, InPlaceSlab, Slab, fill

FILL_DEVICE_ROW_BYTES = 48
"""Host memory that `device_caches` takes for each row while it works: its tables on their way, and lists."""


def device_caches(
    cuda: Cuda,
    file: FeatureFile,
    hot_ids: ArrayLike | torch.Tensor,
    cache_bytes: int,
    host_bytes: int,
    *,
    progress: str | None = "filling the caches",
) -> list[RowCache]:
    """The "cache" in device memory and the "host" rows in page-locked memory, for `TieredRows`.

    hot_ids: integers, hottest first; repeats are passed over.
    cache_bytes: of device memory. The tables of both caches (bitmask, index, and slot table: 4 bytes per row
        of the file) count in it, those of the host rows first.
    host_bytes: of page-locked memory, for the host rows.

    The cache holds the hottest rows, as many as fit. Host memory holds all rows if they fit, then without a
    slot table; else the next hot ones, and then others as long as there is room. Neither budget is exceeded;
    where one is too small for a row there is a warning, and the cache is empty. Where memory cannot be
    page-locked the host rows lie in ordinary memory, tables included, and the CPU hands them on; so they do
    where no kernel decodes them. The file is read in sequence, its checksums compared.

    Raises IndexError, TypeError, ValueError for ids and budgets; MemoryError where the device has less memory
    than was asked for; FormatError for a damaged file.
    """
    for name, budget in (("cache_bytes", cache_bytes), ("host_bytes", host_bytes)):
        if budget < 0:
            raise ValueError(f"{name} is {budget}, it must not be negative")
    ids = ops.check_narrow_ids(hot_ids, file.num_rows)
    if not decodes(file.codec):
        host = _in_ordinary_memory(file, ids, None, host_bytes, progress)
        return [RowCache.empty(file.codec), host]
    plans = plan_caches(file, ids, cache_bytes, host_bytes)
    host_slab = _page_locked(cuda, plans.host.slab_bytes) if plans.host else None
    hands_on = plans.host is not None and host_slab is None
    if hands_on:
        plans = plan_caches(file, ids, cache_bytes, 0)
    _warn_of_empty(file, plans, cache_bytes if len(ids) else 0, 0 if hands_on else host_bytes)
    try:
        caches = _fill(cuda, file, plans, host_slab, progress)
    except MemoryError as error:
        raise MemoryError(f"{error}: give the cache less, cache_bytes is {cache_bytes:,}") from error
    if hands_on:
        caches[1] = _in_ordinary_memory(file, ids, plans.cache, host_bytes, progress)
    return caches


def _page_locked(cuda: Cuda, num_bytes: int) -> Tensor | None:
    try:
        return cuda.pin(num_bytes)
    except PinError as error:
        warnings.warn(
            f"{num_bytes:,} bytes for host rows cannot be page-locked: {error}. They lie in ordinary memory, "
            "and the CPU hands them on to the device, which is slower",
            stacklevel=3,
        )
        return None


def _in_ordinary_memory(
    file: FeatureFile, hot_ids: AnyIds, cache: CachePlan | None, host_bytes: int, progress: str | None
) -> RowCache:
    """The hot rows that are not in `cache`, then others, within `host_bytes`, tables included."""
    ids = np.concatenate([hot_ids, np.arange(file.num_rows)]) if host_bytes else hot_ids
    if cache and cache.slot_of is not None:
        ids = ids[cache.slot_of[ids] < 0]
    return RowCache.fill(file, ids, host_bytes, progress=progress)


def _fill(
    cuda: Cuda, file: FeatureFile, plans: CachePlans, host_slab: Tensor | None, progress: str | None
) -> list[RowCache]:
    """Takes the memory and reads the file, once for both."""
    codec = file.codec
    slabs: list[Slab] = []
    cache, host = RowCache.empty(codec), RowCache.empty(codec)
    if plans.host and host_slab is not None:
        plan = plans.host
        rows = EncodedRows(host_slab.numpy(), plan.bitmask, plan.index, plan.num_rows, plan.row_bytes)
        slabs.append(HostSlab(rows, plan.ids, None) if plan.index else InPlaceSlab(rows))
        host = RowCache(codec, device_source=_source(cuda, plan, host_slab, SECTOR_BYTES), over_pcie=True)
    if plans.cache:
        plan = plans.cache
        assert plan.index and plan.ids is not None, "only host memory holds all rows, or rows in place"
        data = cuda.empty(plan.slab_bytes)
        cache = RowCache(codec, device_source=_source(cuda, plan, data, CACHE_ALIGN))
        ring = StagingRing(cuda, LockedMemory(cuda, None), buffer_bytes(codec), num_buffers=2)
        slabs.append(DeviceSlab(cuda, data, plan.index, plan.ids, ring))
    fill(file, slabs, progress)
    cuda.event().wait()  # other streams read them
    return [cache, host]


def _source(cuda: Cuda, plan: CachePlan, data: Tensor, align: int) -> DeviceSource:
    """The tables of a plan, brought to the device, and its slab."""
    index = plan.index
    return DeviceSource(
        data=data,
        bitmask=_table(cuda, plan.bitmask),
        bases=signed(_table(cuda, index.bases), 8) if index else None,
        sizes=signed(_table(cuda, index.sizes), index.sizes.itemsize) if index else None,
        num_rows=plan.num_rows,
        align=align,
        slot_of=None if plan.slot_of is None else signed(_table(cuda, plan.slot_of), 4),
    )


def _table(cuda: Cuda, values: NDArray[np.generic]) -> Tensor:
    """uint8 device memory with the bytes of a table, and no more."""
    table = cuda.empty(values.nbytes)
    cuda.copy(table, torch.from_numpy(values.view(np.uint8)))
    return table


def _warn_of_empty(file: FeatureFile, plans: CachePlans, cache_bytes: int, host_bytes: int) -> None:
    """Where memory was asked for and no row fits."""
    num_rows, tables_bytes = file.num_rows, plans.host.tables_bytes if plans.host else 0
    others = num_rows - (plans.cache.num_rows if plans.cache else 0)
    if others and host_bytes and not plans.host:
        warnings.warn(
            f"host_bytes={host_bytes:,} hold no row of {file.path}: the tables of host rows take "
            f"{4 * num_rows:,} bytes, 4 for each of {num_rows:,} rows, and some for every row held, of the "
            f"device's memory, of which cache_bytes={cache_bytes:,} may be used. There are no host rows",
            stacklevel=3,
        )
    if num_rows and cache_bytes and not plans.cache:
        beside = f" beside {tables_bytes:,} for the tables of host rows" if tables_bytes else ""
        warnings.warn(
            f"cache_bytes={cache_bytes:,} hold no row of {file.path}: a slot table takes {4 * num_rows:,} "
            f"bytes, 4 for each of {num_rows:,} rows{beside}. The cache stays empty",
            stacklevel=3,
        )
