"""DeviceTiers: rows decoded by a device, out of caches that it can read, then staged by the CPU."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.cache import RowCache
from gnn_ibp.cuda import Cuda
from gnn_ibp.device.device_decoder import DeviceDecoder
from gnn_ibp.device.locked_memory import LockedMemory
from gnn_ibp.device.lookup import Lookup, Lookups
from gnn_ibp.device.staged_rows import StagedRows, buffer_bytes, rows_per_buffer
from gnn_ibp.device.staging import StagingRing
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.host_tiers import Served
from gnn_ibp.ops.device import GatherCounts
from gnn_ibp.read_request import DeviceRequest, Out, bad_places
from gnn_ibp.rows import EncodedRows, Ids, RowIndex

Stage = Callable[[Ids, EncodedRows], None]
"""Puts the rows of some ids into a staging buffer."""


class DeviceTiers:
    """Rows out of `caches`, then of the file, on the device of `cuda`. Any number of threads may read.

    One kernel serves every cache that it can read and lists what is missing. That is gathered by the CPU,
    encoded, from caches in ordinary memory and from the file, into page-locked buffers that the same kernel
    decodes. The calling thread waits for the first kernel, not for the others.
    """

    def __init__(self, caches: Sequence[RowCache], file: FeatureFile, cuda: Cuda) -> None:
        self._caches = tuple(caches)
        self._file = file
        self._cuda = cuda
        self._decoder = DeviceDecoder(cuda, file.codec)
        self._sources = [cache.device_source for cache in caches]
        self._over_bus = any(cache.device_source and cache.over_pcie for cache in caches)
        memory = LockedMemory(cuda, "rows on their way to the device")
        self._lookups = Lookups(cuda, memory)
        self._staging = StagingRing(cuda, memory, buffer_bytes(file.codec))
        self._staged_rows = rows_per_buffer(self._staging.buffer_bytes, file.codec)
        self._numbers = cuda.upload(torch.arange(self._staged_rows))
        cuda.event().wait()  # other streams use this, and what the decoder has there

    def read(
        self, ids: ArrayLike | torch.Tensor, out: Out, at: ArrayLike | torch.Tensor | None
    ) -> list[Served]:
        """See `TieredRows.read`. What each cache gave, and last the file."""
        file = self._file
        request = DeviceRequest.checked(self._cuda, ids, out, at, file.num_rows, file.row_type)
        if not len(request.ids):
            return [Served() for _ in range(len(self._caches) + 1)]
        if request.out.data_ptr() % file.codec.unit:
            return self._read_aligned(request)
        return self._read(request)

    def _read(self, request: DeviceRequest) -> list[Served]:
        served = [Served() for _ in self._caches]
        lookup = self._lookups.take(len(request.ids))
        try:
            missing = self._gather(request, lookup, served)
            for cache, tier in zip(self._caches, served, strict=True):
                if cache.source and len(missing.ids):
                    missing = self._from_host(cache.source, missing, request.out, tier)
            return [*served, self._from_disk(missing, request.out)]
        finally:
            self._lookups.give_back(lookup)

    def _read_aligned(self, request: DeviceRequest) -> list[Served]:
        """For an `out` that begins inside of a chunk: a part of a tensor whose dtype is narrower."""
        num_ids, row_bytes, num_out = len(request.ids), self._file.row_bytes, len(request.out)
        if request.at is not None and not bool(((request.at >= 0) & (request.at < num_out)).all()):
            raise _bad_places(request.at, num_out)
        rows = self._cuda.empty(num_ids * row_bytes).view(num_ids, row_bytes)
        served = self._read(DeviceRequest(request.ids, rows, None))
        if request.at is None:
            request.out.copy_(rows)
        else:
            request.out.index_copy_(0, request.at, rows)
        return served

    def _gather(self, request: DeviceRequest, lookup: Lookup, served: Sequence[Served]) -> ops.Missing:
        """The rows of all caches that the device can read, in one launch."""
        begin = self._cuda.event()
        self._decoder.gather(
            request.ids,
            self._file.num_rows,
            self._sources,
            request.out,
            request.at,
            lookup.missing_ids,
            lookup.missing_at,
            lookup.counts,
            over_bus=self._over_bus,
        )
        end = lookup.fetch()
        end.wait()
        found = lookup.found()
        _refuse_what_is_bad(request, found, self._file.num_rows)
        for k, (cache, tier) in enumerate(zip(self._caches, served, strict=True)):
            tier.num_rows, tier.encoded_bytes = found.hits[k], found.encoded_bytes[k]
            tier.pcie_bytes = found.sector_bytes[k] if cache.over_pcie else 0
            tier.physical_bytes = tier.pcie_bytes or tier.encoded_bytes
        if served:
            served[0].seconds = end.seconds_since(begin)
        return lookup.missing(found.num_missing)

    def _from_host(self, source: ops.Source, missing: ops.Missing, out: Tensor, tier: Served) -> ops.Missing:
        """The rows of a cache in ordinary memory."""
        start = time.perf_counter()
        assert source.slot_of is not None, "the CPU fills caches with slot tables"
        slots = source.slot_of[missing.ids]
        here = slots >= 0
        put = partial(_copy_checked, source)
        self._stage(slots[here].astype(np.int64), missing.at[here], out, put, tier)
        tier.physical_bytes = tier.pcie_bytes
        tier.seconds = time.perf_counter() - start
        return ops.Missing(missing.ids[~here], missing.at[~here])

    def _from_disk(self, missing: ops.Missing, out: Tensor) -> Served:
        tier = Served()
        start = time.perf_counter()

        def put(some: Ids, rows: EncodedRows) -> None:
            tier.physical_bytes += self._file.read_stored(some, rows).physical_bytes

        self._stage(missing.ids, missing.at, out, put, tier)
        tier.seconds = time.perf_counter() - start
        return tier

    def _stage(self, ids: Ids, at: Ids, out: Tensor, put: Stage, tier: Served) -> None:
        """Brings the rows to the device that `put` writes for `ids`, a buffer at a time, to out[at[i]]."""
        for first in range(0, len(ids), self._staged_rows):
            some = ids[first : first + self._staged_rows]
            with self._staging.buffer() as buffer:
                staged = StagedRows(buffer, len(some), self._file.codec)
                put(some, staged.rows)
                staged.at[:] = at[first : first + len(some)]
                tier.pcie_bytes += staged.decode(self._decoder, self._numbers, out)
                tier.encoded_bytes += staged.encoded_bytes
            tier.num_rows += len(some)


def _refuse_what_is_bad(request: DeviceRequest, found: GatherCounts, num_rows: int) -> None:
    if found.bad_at >= 0:
        raise ops.bad_id(found.bad_at, int(request.ids[found.bad_at]), num_rows)
    if found.bad_target_at >= 0:
        assert request.at is not None, "rows of their own numbers have places"
        raise _bad_places(request.at, len(request.out))
    if found.damaged_at >= 0:
        raise ops.damaged_row(int(request.ids[found.damaged_at]))


def _bad_places(at: Tensor, num_out: int) -> IndexError:
    return bad_places(int(at.min()), int(at.max()), num_out)


def _copy_checked(source: ops.Source, slots: Ids, rows: EncodedRows) -> None:
    """Makes slot slots[i] of `source` row i of `rows`, index and bitmask included."""
    numbers = np.arange(len(slots))
    from_index, to_index = source.rows.index, rows.index
    assert from_index and to_index, "both are condensed"
    plan = RowIndex.from_sizes(from_index.size_bytes(slots), to_index.unit, to_index.align, rows.row_bytes)
    to_index.bases[:], to_index.sizes[:] = plan.bases, plan.sizes
    rows.bitmask[:] = np.packbits(source.rows.encoded(slots), bitorder="little")
    ops.copy_rows(source.rows, slots, rows, numbers)
    well = ops.measure_rows(source.codec, rows, numbers) >= 0
    if not well.all():
        assert source.slot_of is not None
        raise ops.damaged_row(int(np.flatnonzero(source.slot_of == slots[well.argmin()])[0]))
