"""Memory for minibatches that is reused: fresh pages cost more than the gather that fills them."""

import threading
import weakref

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.rows import Bytes


class BufferPool:
    """Hands out tensors over a few kept buffers; a buffer comes back when its last tensor is gone.

    A tensor that somebody still holds, or a view of it, keeps its buffer: `list(loader)` is right. At most
    `num_kept` buffers wait for reuse, the others are given back to the system.
    """

    def __init__(self, num_kept: int) -> None:
        self._num_kept = num_kept
        self._free: list[Bytes] = []
        self._lock = threading.RLock()  # a finalizer may run while the same thread holds it

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An uninitialised contiguous CPU tensor."""
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if nbytes == 0:
            return torch.empty(shape, dtype=dtype)
        buffer = self._take(nbytes)
        view = buffer[:nbytes]
        weakref.finalize(view, self._give_back, buffer).atexit = False  # torch holds `view`, not `buffer`
        return torch.from_numpy(view).view(dtype).view(shape)

    def _take(self, nbytes: int) -> Bytes:
        with self._lock:
            for i in reversed(range(len(self._free))):  # the last one used is the warmest
                if self._free[i].nbytes >= nbytes:
                    return self._free.pop(i)
            if self._free:
                self._free.pop()  # too small: a larger one takes its place
        return np.empty(nbytes + nbytes // 8, np.uint8)  # minibatches differ in size; NumPy asks for huge pages

    def _give_back(self, buffer: Bytes) -> None:
        with self._lock:
            if len(self._free) < self._num_kept:
                self._free.append(buffer)


def empty_rows(num_rows: int, row_shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """An uninitialised tensor of rows for the caller to keep (NumPy asks for huge pages, torch does not)."""
    nbytes = dtype.itemsize * num_rows * int(np.prod(row_shape, dtype=np.int64))
    if nbytes == 0:
        return torch.empty((num_rows, *row_shape), dtype=dtype)
    return torch.from_numpy(np.empty(nbytes, np.uint8)).view(dtype).view(num_rows, *row_shape)
