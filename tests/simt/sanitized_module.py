"""The kernels of one file under a sanitizer, each launch in a process of its own."""

import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from host_build import KERNELS, build
from kernel_launch import Argument, LaunchError, Options, Readable, Undefined, buffer_bytes
from numpy.typing import NDArray

LIMIT_S = 120  # a launch that takes longer does not end

SCALAR, BUFFER, UNDEFINED, NULL_POINTER, SAME_AS = range(5)  # as in simt_main.cpp


class SanitizedModule:
    """As HostModule, but buffers are copied to exact-size heap blocks of a child process, and back.

    sanitizer: a key of host_build.SANITIZERS. A buffer given twice is one buffer in the child; buffers that
    overlap otherwise are refused.
    """

    def __init__(self, source: Path, sanitizer: str, kernels: Path = KERNELS) -> None:
        self._sanitizer = sanitizer
        self._build = build(source, sanitizer, kernels)
        self.kernels = self._build.kernels

    def launch(
        self,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[Argument],
        options: Options = Options(),  # noqa: B008
    ) -> None:
        """Run `grid` blocks of `block` threads. Raises LaunchError with the sanitizer's report."""
        head = struct.pack("=64s2I5i", kernel.encode(), grid, block, *options.words())
        head += struct.pack("=QQ", options.dynamic_shared_bytes, len(arguments))
        with tempfile.TemporaryDirectory() as folder:
            launch, results = Path(folder) / "launch.in", Path(folder) / "launch.out"
            with launch.open("wb") as file:
                file.write(head)
                buffers: dict[int, tuple[int, NDArray[np.uint8]]] = {}
                for i, argument in enumerate(arguments):
                    for part in _encode(i, argument, buffers):
                        file.write(part)
            try:
                done = subprocess.run(
                    [self._build.path, launch, results],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=LIMIT_S,
                    env={**os.environ, **self._build.environment},
                )
            except subprocess.TimeoutExpired:
                raise LaunchError(f"[{self._sanitizer}] {kernel} still runs after {LIMIT_S} s") from None
            if done.returncode:
                raise LaunchError(f"[{self._sanitizer}] exit {done.returncode}\n{done.stderr[:6000]}")
            with results.open("rb") as file:
                for _, buffer in buffers.values():
                    if buffer.flags.writeable:
                        file.readinto(buffer)
                    else:
                        file.seek(buffer.nbytes, os.SEEK_CUR)


def _encode(i: int, argument: Argument, buffers: dict[int, tuple[int, NDArray[np.uint8]]]) -> list[bytes]:
    """The bytes of argument i in the launch file; adds its buffer to `buffers`, keyed by address."""
    if argument is None:
        return [struct.pack("=QQQ", NULL_POINTER, 0, 0)]
    if isinstance(argument, np.generic):
        return [struct.pack("=QQQ", SCALAR, argument.nbytes, 0), argument.tobytes()]
    marked = isinstance(argument, Undefined | Readable)
    buffer = buffer_bytes(argument.array if marked else argument)
    ranges = _checked(argument.ranges, buffer.nbytes) if isinstance(argument, Readable) else []
    address = buffer.ctypes.data
    for start, (number, other) in buffers.items():
        if start == address and other.nbytes == buffer.nbytes and buffer.nbytes:
            return [struct.pack("=QQQ", SAME_AS, number, 0)]
        if start < address + buffer.nbytes and address < start + other.nbytes:
            raise LaunchError(f"argument {i} overlaps argument {number}")
    buffers[address if buffer.nbytes else -i - 1] = i, buffer
    kind = UNDEFINED if isinstance(argument, Undefined) else BUFFER
    flat = [end for pair in ranges for end in pair]
    parts = [struct.pack(f"=QQQ{len(flat)}Q", kind, buffer.nbytes, len(ranges), *flat)]
    return parts if kind == UNDEFINED else [*parts, buffer.data]


def _checked(ranges: Sequence[tuple[int, int]], num_bytes: int) -> list[tuple[int, int]]:
    for begin, end in ranges:
        if begin % 8 or not 0 <= begin <= end <= num_bytes:
            raise ValueError(f"range [{begin}, {end}) of {num_bytes} bytes: it must begin at a multiple of 8")
    return list(ranges) or [(0, 0)]
