"""The kernels of one file under a sanitizer, which must own its process: launches go to a child."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from host_build import KERNELS, build
from kernel_launch import Argument, LaunchError, Options, Readable, Undefined, buffer_bytes
from launch_child import LaunchChild
from numpy.typing import NDArray

SCALAR, BUFFER, UNDEFINED, NULL_POINTER, SAME_AS = range(5)  # as in simt_main.cpp


class SanitizedModule:
    """As HostModule, but buffers are copied to heap blocks of exactly their size in a child, and back.

    sanitizer: a key of host_build.SANITIZERS. A buffer given twice is one buffer in the child; buffers that
    overlap otherwise are refused.
    """

    def __init__(self, source: Path, sanitizer: str, kernels: Path = KERNELS) -> None:
        self._sanitizer = sanitizer
        made = build(source, sanitizer, kernels)
        self.kernels = made.kernels
        self._child = LaunchChild(made.path, made.environment)

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
        buffers: dict[int, tuple[int, NDArray[np.uint8]]] = {}
        parts = [part for i, argument in enumerate(arguments) for part in _encode(i, argument, buffers)]
        try:
            self._child.run([head, *parts], [buffer for _, buffer in buffers.values()])
        except LaunchError as error:
            raise type(error)(f"{kernel} under sanitizer {self._sanitizer}: {error}") from None


def _encode(
    i: int, argument: Argument, buffers: dict[int, tuple[int, NDArray[np.uint8]]]
) -> list[bytes | memoryview]:
    """The bytes of argument i in the request; adds its buffer to `buffers`, keyed by address."""
    if argument is None:
        return [struct.pack("=QQQ", NULL_POINTER, 0, 0)]
    if isinstance(argument, np.generic):
        return [struct.pack("=QQQ", SCALAR, argument.nbytes, 0), argument.tobytes()]
    buffer = buffer_bytes(argument.array if isinstance(argument, Undefined | Readable) else argument)
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
    parts: list[bytes | memoryview] = [
        struct.pack(f"=QQQ{len(flat)}Q", kind, buffer.nbytes, len(ranges), *flat)
    ]
    return parts if kind == UNDEFINED else [*parts, buffer.data]


def _checked(ranges: Sequence[tuple[int, int]], num_bytes: int) -> list[tuple[int, int]]:
    for begin, end in ranges:
        if begin % 8 or not 0 <= begin <= end <= num_bytes:
            raise ValueError(f"range [{begin}, {end}) of {num_bytes} bytes: it must begin at a multiple of 8")
    return list(ranges) or [(0, 0)]
