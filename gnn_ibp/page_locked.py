"""Page-locked host memory: ordinary memory, registered in place so that kernels read it over PCIe."""

import contextlib
import mmap
import os
import resource
import sys
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

PAGE_BYTES = mmap.PAGESIZE

# cudaHostRegister's flags; CuPy has no names for them
_REGISTER_PORTABLE, _REGISTER_MAPPED = 0x01, 0x02

# Linux's MADV_WIPEONFORK; Python has no name for it
_WIPE_ON_FORK = 18


class PinError(RuntimeError):
    """Host memory that cannot be page-locked; the message says how much was asked for and what limits it."""


class PageLockedMemory:
    """Allocates page-locked memory, and knows where the device sees it.

    runtime: `cupy.cuda.runtime`. It is used rather than torch's functions, as a refused registration leaves
    no error behind there that the next kernel of torch would stumble over.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._device_starts: dict[tuple[int, int], int] = {}  # of each registered [start, end)

    def allocate(self, num_bytes: int) -> Tensor:
        """uint8 (num_bytes,) host memory on a page boundary; unlocked when the last tensor over it is gone.

        A forked process finds zeros there, on some systems what is in it, and must not write to it.
        Raises PinError where it cannot be locked, MemoryError where there is none.
        """
        if num_bytes == 0:
            return torch.empty(0, dtype=torch.uint8)
        pages = _map(-(-num_bytes // PAGE_BYTES) * PAGE_BYTES)
        memory = np.frombuffer(pages, np.uint8)
        start = memory.ctypes.data
        try:
            self._runtime.hostRegister(start, memory.nbytes, _REGISTER_PORTABLE | _REGISTER_MAPPED)
        except RuntimeError as error:
            raise PinError(_refusal(memory.nbytes, error)) from error
        self._device_starts[start, start + memory.nbytes] = int(
            self._runtime.pointerGetAttributes(start).devicePointer
        )
        unlock = weakref.finalize(memory, self._unlock, start, start + memory.nbytes, os.getpid(), pages)
        unlock.atexit = False  # the end of the process unlocks; CUDA may be gone by then
        return torch.from_numpy(memory)[:num_bytes]

    def device_pointer(self, address: int) -> int | None:
        """Where kernels find the byte at the host address `address`; None where it is not locked by us."""
        for (start, end), device_start in self._device_starts.copy().items():  # others add and remove
            if start <= address < end:
                return device_start + address - start
        return None

    def _unlock(self, start: int, end: int, owner: int, pages: mmap.mmap) -> None:
        """`pages` come along so that they are unmapped after this, though their last user is gone."""
        if os.getpid() != owner:  # a forked child has neither what is in the memory nor CUDA
            return
        self._device_starts.pop((start, end), None)
        with contextlib.suppress(RuntimeError):
            self._runtime.hostUnregister(start)


def _map(num_bytes: int) -> mmap.mmap:
    """Fresh pages, on huge ones where the system has them; zeros in a forked process.

    A child must not get a copy: at a fork Linux before 5.9, and gVisor, would mark the pages to be copied
    when they are written, and the parent would then write to others than those that the device reads. Where
    memory is not wiped in children (gVisor), they share it. They keep the addresses, as with MADV_DONTFORK
    they would not: something else of a child's own may lie at them by the time it unmaps them.
    """
    pages = _fresh(num_bytes, mmap.MAP_PRIVATE)
    if sys.platform == "linux":
        try:
            pages.madvise(_WIPE_ON_FORK)
        except OSError:
            pages = _fresh(num_bytes, mmap.MAP_SHARED)
        with contextlib.suppress(OSError):  # advice that this system does not know
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _fresh(num_bytes: int, flags: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, num_bytes, flags=flags | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{num_bytes:,} bytes of host memory cannot be had: {error}") from error


def _refusal(num_bytes: int, error: RuntimeError) -> str:
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    limit_text = "unlimited" if limit == resource.RLIM_INFINITY else f"{limit:,} bytes"
    return (
        f"{num_bytes:,} bytes of host memory cannot be page-locked: {error}. The limit of locked memory "
        f"(ulimit -l) is {limit_text}. Raise it (a container: --ulimit memlock=-1), free memory, or ask for "
        "less (host_bytes); Windows' WSL locks only a part of its memory, whatever the limit"
    )
