"""LockedMemory: host memory that a device reads, page-locked where that can be had."""

import threading
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from gnn_ibp.cuda import Cuda, PinError


class HostMemory(NamedTuple):
    """uint8 (num_bytes,) in host memory; where it is page-locked, kernels can read and write it."""

    bytes: Tensor
    locked: bool


class LockedMemory:
    """Gives pageable memory from the first time on that memory cannot be page-locked.

    what: what the memory is for; then there is one warning. None: it makes no difference to anyone.
    """

    def __init__(self, cuda: Cuda, what: str | None) -> None:
        self._cuda = cuda
        self._what = what
        self._refused = False
        self._lock = threading.Lock()

    def take(self, num_bytes: int) -> HostMemory:
        """Memory that is not cleared, on a page boundary where it is page-locked."""
        with self._lock:
            if not self._refused:
                try:
                    return HostMemory(self._cuda.pin(num_bytes), True)
                except PinError as error:
                    self._refused = True
                    if self._what:
                        warnings.warn(
                            f"{num_bytes:,} bytes for {self._what} cannot be page-locked: {error}. Ordinary "
                            "memory is used, which is slower",
                            stacklevel=2,
                        )
            return HostMemory(torch.empty(num_bytes, dtype=torch.uint8), False)
