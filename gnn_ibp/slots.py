"""Slots: which rows get a place in a slab, the first asked for first, while they fit into a budget."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.feature_file import FeatureFile
from gnn_ibp.format import IN_PLACE
from gnn_ibp.rows import GROUP, PAD_BYTES, AnyIds, Ids

NONE = -1
KEPT_OUT = -2
"""Marks in a slot table while slots are given: no slot yet, and none to be given."""

MAX_SLOTS = 2**31 - 1
_FIRST_STEP, _LARGEST_STEP = 1 << 20, 1 << 28

BytesBeside = Callable[[Ids], Ids]
"""Bytes that so many rows take in the budget besides the slab; of several numbers of rows."""


class Slots:
    """Gives slots 0, 1, … to the first rows that fit.

    slot_of:    int32 (rows of the file,), for the slots given; only ids marked `NONE` get one, at first all.
    room_bytes: for the slab, each row at a multiple of `align` bytes, and for what is `beside` it.
    """

    def __init__(
        self,
        file: FeatureFile,
        slot_of: NDArray[np.int32],
        room_bytes: int,
        align: int,
        beside: BytesBeside,
        max_rows: int = MAX_SLOTS,
    ) -> None:
        self.slot_of = slot_of
        self._file = file
        self._room_bytes, self._align, self._beside = room_bytes, align, beside
        self.start_anew(max_rows)

    def start_anew(self, max_rows: int) -> None:
        """Takes all slots back; from now on there are `max_rows` at most."""
        self.slot_of[:] = NONE
        self.num_rows = 0
        self._sizes: list[NDArray[np.uint32]] = []
        self._max_rows = min(max_rows, MAX_SLOTS)
        self._rows_bytes = 0

    @property
    def sizes(self) -> NDArray[np.uint32]:
        """(num_rows,), the stored bytes of the rows by slot."""
        return np.concatenate([np.empty(0, np.uint32), *self._sizes])

    def give(self, ids: AnyIds) -> bool:
        """Slots to the first of `ids`, repeats passed over; False when one did not fit."""
        at, step = 0, _FIRST_STEP
        while at < len(ids):
            if not self._give(ids[at : at + step].astype(np.int64, copy=False)):
                return False
            at += step
            if self._file.layout == IN_PLACE:  # sizes have to be read: only a few passes over the file
                step = min(2 * step, _LARGEST_STEP)
        return True

    def sort(self) -> Ids:
        """Numbers the slots anew, in the order of the ids, which are returned, ascending."""
        ids = np.flatnonzero(self.slot_of >= 0)
        self._sizes = [self.sizes[self.slot_of[ids]]]
        self.slot_of[ids] = np.arange(len(ids))
        return ids

    def _give(self, ids: Ids) -> bool:
        some = self._new_ones(ids)
        sizes = self._file.stored_sizes(some)
        ends = self._rows_bytes + np.cumsum(-(-sizes // self._align) * self._align)
        num_rows = self.num_rows + np.arange(1, len(some) + 1)
        needed = 2 * PAD_BYTES + ends + self._beside(num_rows)
        fit = int(np.searchsorted(needed, self._room_bytes, side="right"))
        fit = min(fit, self._max_rows - self.num_rows)
        self.slot_of[some[:fit]] = np.arange(self.num_rows, self.num_rows + fit)
        self._sizes.append(sizes[:fit].astype(np.uint32))
        self.num_rows += fit
        self._rows_bytes = int(ends[fit - 1]) if fit else self._rows_bytes
        return fit == len(some)

    def _new_ones(self, ids: Ids) -> Ids:
        """Those without a slot that may have one, in the same order, each once."""
        some = ids[self.slot_of[ids] == NONE]
        numbers = np.arange(len(some), dtype=np.int32)
        self.slot_of[some[::-1]] = numbers[::-1]  # of several assignments the last one counts
        first: Ids = some[self.slot_of[some] == numbers]
        self.slot_of[some] = NONE
        return first


def index_bytes(num_rows: Ids, file: FeatureFile) -> Ids:
    """Of bitmask and index of so many condensed rows."""
    size_bytes = 2 if file.row_bytes // file.codec.unit <= 0xFFFF else 4
    total: Ids = -(-num_rows // 8) + -(-num_rows // GROUP) * 8 + num_rows * size_bytes
    return total


def no_bytes(num_rows: Ids) -> Ids:
    """Where the slab has a budget for itself."""
    return np.zeros_like(num_rows)
