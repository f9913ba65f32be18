"""Memory for minibatches that is reused: fresh pages cost more than the gather that fills them."""

import weakref

import numpy as np
from torch import Tensor

from gnn_ibp.fork_lock import ForkLock
from gnn_ibp.row_type import RowType
from gnn_ibp.rows import Bytes


class BufferPool:
    """Hands out tensors over a few kept buffers; a buffer comes back when its last tensor is gone.

    A tensor that somebody still holds, or a view of it, keeps its buffer: `list(loader)` is right. At most
    `num_kept` buffers wait for reuse, the others are given back to the system.
    """

    def __init__(self, num_kept: int) -> None:
        self._num_kept = num_kept
        self._free: list[Bytes] = []
        self._lock = ForkLock()  # a finalizer may run while the same thread holds it

    def empty(self, row_type: RowType, num_rows: int) -> Tensor:
        """An uninitialised tensor (num_rows, *row_type.shape)."""
        nbytes = num_rows * row_type.row_bytes
        if nbytes == 0:
            return row_type.empty(num_rows)
        buffer = self._take(nbytes)
        # Over a memoryview, because views of an array refer to the array's own base, and would skip `view`.
        view = np.frombuffer(buffer[:nbytes].data, np.uint8)
        weakref.finalize(view, self._give_back, buffer).atexit = False
        return row_type.from_bytes(view.reshape(num_rows, row_type.row_bytes))

    def clear(self) -> None:
        """Gives the buffers that wait for reuse back to the system."""
        with self._lock:
            self._free.clear()

    def _take(self, nbytes: int) -> Bytes:
        with self._lock:
            for i in reversed(range(len(self._free))):  # the last one used is the warmest
                if self._free[i].nbytes >= nbytes:
                    return self._free.pop(i)
            if self._free:
                self._free.pop()  # too small: a larger one takes its place
        # minibatches differ in size; NumPy asks for huge pages
        return np.empty(nbytes + nbytes // 8, np.uint8)

    def _give_back(self, buffer: Bytes) -> None:
        with self._lock:
            if len(self._free) < self._num_kept:
                self._free.append(buffer)


def buffer_bytes(row_type: RowType, num_rows: int) -> int:
    """Of the buffer that a pool takes for so many rows."""
    nbytes = num_rows * row_type.row_bytes
    return nbytes + nbytes // 8
