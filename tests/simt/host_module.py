"""The kernels of one file, compiled for the CPU and run in this process."""

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from host_build import KERNELS, build
from kernel_launch import Argument, LaunchError, Options, Readable, Reads, Stats, Undefined, buffer_bytes

_TYPES = {"simt_error": ctypes.c_char_p, "simt_num_reads": ctypes.c_uint64}


class HostModule:
    """`HostModule(path).launch("kernel", grid, block, arguments)`, buffers read and written in place.

    Buffers are C-contiguous NumPy arrays or CPU tensors of any size, never copied; None is a null pointer;
    a NumPy scalar is passed by value and must have the width of the parameter. One launch runs at a time.
    """

    def __init__(self, source: Path, kernels: Path = KERNELS) -> None:
        made = build(source, None, kernels)
        self.kernels = made.kernels
        self._library = ctypes.CDLL(str(made.path))
        for name, result in _TYPES.items():
            getattr(self._library, name).restype = result
        self._lock = threading.Lock()

    def launch(
        self,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[Argument],
        options: Options = Options(),  # noqa: B008
        watch: np.ndarray | torch.Tensor | None = None,
    ) -> Stats:
        """Run `grid` blocks of `block` threads. `watch`: a buffer whose reads are recorded (Stats.reads).

        Raises LaunchError: what the harness found, or arguments that are not the kernel's.
        """
        if kernel not in self.kernels:
            raise LaunchError(f"there is no kernel {kernel}, only {', '.join(self.kernels)}")
        values = self._values(kernel, arguments)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        with self._lock:
            watched = buffer_bytes(watch) if watch is not None else np.empty(0, np.uint8)
            self._library.simt_watch(ctypes.c_void_p(watched.ctypes.data), ctypes.c_uint64(watched.nbytes))
            self._library.simt_options((ctypes.c_int * 5)(*options.words()))
            failed = self._library.simt_launch(
                ctypes.cast(getattr(self._library, f"simt_call_{kernel}"), ctypes.c_void_p),
                ctypes.c_uint(grid),
                ctypes.c_uint(block),
                ctypes.c_size_t(options.dynamic_shared_bytes),
                pointers,
            )
            if failed:
                raise LaunchError(self._library.simt_error().decode())
            counts = (ctypes.c_uint64 * 3)()
            self._library.simt_stats(counts)
            return Stats(counts[0], counts[1], counts[2], self._reads() if watch is not None else None)

    def _values(self, kernel: str, arguments: Sequence[Argument]) -> list[ctypes.Array[ctypes.c_char]]:
        """Per argument the bytes the kernel gets: a scalar's own, or a pointer's."""
        sizes = (ctypes.c_int64 * 64)()
        count = getattr(self._library, f"simt_arguments_{kernel}")(sizes)
        if count != len(arguments):
            raise LaunchError(f"{kernel} takes {count} arguments, {len(arguments)} were given")
        values = []
        for i, argument in enumerate(arguments):
            is_scalar = isinstance(argument, np.generic)
            if isinstance(argument, np.generic):
                value = argument.tobytes()
            else:
                value = _address(argument).to_bytes(8, "little")
            if len(value) != abs(sizes[i]) or is_scalar != (sizes[i] > 0):
                wanted = "a pointer" if sizes[i] < 0 else f"a scalar of {sizes[i]} bytes"
                raise LaunchError(f"argument {i} of {kernel} is {type(argument).__name__}, it takes {wanted}")
            values.append(ctypes.create_string_buffer(value, len(value)))
        return values

    def _reads(self) -> Reads:
        pairs = np.empty((self._library.simt_num_reads(), 2), np.uint64)
        self._library.simt_reads(ctypes.c_void_p(pairs.ctypes.data))
        return Reads(pairs[:, 0].copy(), pairs[:, 1].copy())


def _address(argument: Argument) -> int:
    if argument is None:
        return 0
    if isinstance(argument, Undefined | Readable):
        argument = argument.array
    if not isinstance(argument, np.ndarray | torch.Tensor):
        raise LaunchError(f"an argument is {type(argument).__name__}, not a buffer, a NumPy scalar or None")
    return buffer_bytes(argument).ctypes.data
