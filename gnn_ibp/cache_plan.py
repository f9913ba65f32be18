"""CachePlan: which rows lie in the caches of a device, decided before any memory is taken."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.cache import CACHE_ALIGN
from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.format import IN_PLACE
from gnn_ibp.ops.device import SECTOR_BYTES
from gnn_ibp.rows import GROUP, PAD_BYTES, AnyIds, Bytes, Ids, RowIndex
from gnn_ibp.slots import KEPT_OUT, NONE, Slots, index_bytes, no_bytes

_STEP = 1 << 20
"""Rows whose sizes are looked at together: whole groups of the index."""


@dataclass(frozen=True)
class CachePlan:
    """The rows of one cache, in the order of their ids.

    ids:     int64, ascending; None: all rows of the file.
    slot_of: int32 (rows of the file,), -1 where a row is out; None: slot = id.
    bitmask: uint8. index: None: in place.
    """

    ids: Ids | None
    slot_of: NDArray[np.int32] | None
    bitmask: Bytes
    index: RowIndex | None
    num_rows: int
    row_bytes: int

    @property
    def slab_bytes(self) -> int:
        rows_bytes = self.index.rows_bytes if self.index else self.num_rows * self.row_bytes
        return PAD_BYTES + rows_bytes + PAD_BYTES

    @property
    def tables_bytes(self) -> int:
        slots_bytes = 0 if self.slot_of is None else self.slot_of.nbytes
        return self.bitmask.nbytes + (self.index.nbytes if self.index else 0) + slots_bytes


class CachePlans(NamedTuple):
    """Of the cache in device memory and of the one in host memory; None where it is empty."""

    cache: CachePlan | None
    host: CachePlan | None


def plan_caches(file: FeatureFile, hot_ids: AnyIds, cache_bytes: int, host_bytes: int) -> CachePlans:
    """See `gnn_ibp.device.device_cache.device_caches` for who lies where and what counts in which budget."""
    everything = _plan_all(file, cache_bytes, host_bytes) if host_bytes and file.num_rows else None
    if everything:
        cache = _choose_cache(file, hot_ids, cache_bytes - everything.tables_bytes)
        return CachePlans(_plan(file, cache, CACHE_ALIGN), everything)
    host = _choose_host(file, hot_ids, cache_bytes, host_bytes)
    if host is None:
        return CachePlans(_plan(file, _choose_cache(file, hot_ids, cache_bytes), CACHE_ALIGN), None)
    tables_bytes = host.slot_of.nbytes + _tables_bytes(host.num_rows, file)
    cache = _choose_cache(file, hot_ids, cache_bytes - tables_bytes)
    if cache and cache.num_rows:  # these lie on the device: others take their places, as many at most
        host.start_anew(max_rows=host.num_rows)
        host.slot_of[cache.slot_of >= 0] = KEPT_OUT
        _give_all(host, hot_ids, file.num_rows)
        host.slot_of[host.slot_of == KEPT_OUT] = NONE
    return CachePlans(_plan(file, cache, CACHE_ALIGN), _plan(file, host, SECTOR_BYTES))


def _plan_all(file: FeatureFile, tables_room: int, slab_room: int) -> CachePlan | None:
    """All rows of the file, where they and their tables fit."""
    num_rows, bitmask = file.num_rows, file.bitmask
    if file.layout == IN_PLACE:
        in_place = CachePlan(None, None, bitmask, None, num_rows, file.row_bytes)
        if in_place.slab_bytes <= slab_room:
            return in_place if in_place.tables_bytes <= tables_room else None
    if _tables_bytes(num_rows, file) > tables_room:
        return None
    index = RowIndex.unwritten(num_rows, file.codec.unit, SECTOR_BYTES, file.row_bytes)
    rows_bytes = 0
    for first in range(0, num_rows, _STEP):
        last = min(first + _STEP, num_rows)
        sizes = file.stored_sizes(np.arange(first, last))
        part = RowIndex.from_sizes(sizes, index.unit, SECTOR_BYTES, file.row_bytes)
        index.bases[first // GROUP : -(-last // GROUP)] = part.bases + np.uint64(rows_bytes)
        index.sizes[first:last] = part.sizes
        rows_bytes += part.rows_bytes
        if 2 * PAD_BYTES + rows_bytes > slab_room:
            return None
    return CachePlan(None, None, bitmask, index, num_rows, file.row_bytes)


def _choose_cache(file: FeatureFile, hot_ids: AnyIds, room_bytes: int) -> Slots | None:
    """The hottest rows that fit, slot table and index included."""
    room_bytes -= 4 * file.num_rows
    if room_bytes < 2 * PAD_BYTES or not len(hot_ids):
        return None
    slot_of = np.empty(file.num_rows, np.int32)
    slots = Slots(file, slot_of, room_bytes, CACHE_ALIGN, lambda num_rows: index_bytes(num_rows, file))
    slots.give(hot_ids)
    return slots


def _choose_host(file: FeatureFile, hot_ids: AnyIds, tables_room: int, slab_room: int) -> Slots | None:
    """The hottest rows that fit, and others; their slot table and index fit into `tables_room`."""
    index_room = tables_room - 4 * file.num_rows
    most = bisect_right(range(file.num_rows + 1), index_room, key=lambda n: _tables_bytes(n, file)) - 1
    if most < 1:
        return None
    slot_of = np.empty(file.num_rows, np.int32)
    slots = Slots(file, slot_of, slab_room, SECTOR_BYTES, no_bytes, most)
    _give_all(slots, hot_ids, file.num_rows)
    return slots if slots.num_rows else None


def _tables_bytes(num_rows: int, file: FeatureFile) -> int:
    """Of bitmask and index of so many rows."""
    return int(index_bytes(np.array(num_rows), file))


def _give_all(slots: Slots, hot_ids: AnyIds, num_rows: int) -> None:
    """Slots to the hot rows, then to all others in the order of their ids, as long as there is room."""
    goes_on = slots.give(hot_ids)
    for first in range(0, num_rows, _STEP):
        goes_on = goes_on and slots.give(np.arange(first, min(first + _STEP, num_rows)))


def _plan(file: FeatureFile, slots: Slots | None, align: int) -> CachePlan | None:
    if slots is None or not slots.num_rows:
        return None
    ids = slots.sort()
    bitmask = np.packbits(file.encoded(ids), bitorder="little")
    index = RowIndex.from_sizes(slots.sizes, file.codec.unit, align, file.row_bytes)
    return CachePlan(ids, slots.slot_of, bitmask, index, len(ids), file.row_bytes)
