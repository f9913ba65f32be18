"""One launch of a kernel on the CPU: its options, its arguments, what it did."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

ORDERS = ("forward", "reverse", "random")
SECTOR_BYTES = 32


class LaunchError(RuntimeError):
    """The harness or a sanitizer found a fault in the kernel; the message names thread and line."""


class UnfinishedError(LaunchError):
    """A launch did not end in time: the kernel does not end, or the machine is slow, nobody can tell."""


@dataclass(frozen=True)
class Options:
    """How threads are scheduled and memory is made.

    order: "forward", "reverse" or "random" (with `seed`), of lanes, warps and blocks.
    fill: the byte that fills shared memory and undefined buffers before the launch.
    eager_copies: cp.async copies at once; otherwise as late as its waits allow.
    strict: lanes that meet in a shuffle, vote or barrier must be at the same line.
    """

    order: str = "forward"
    seed: int = 1
    fill: int = 0xA5
    eager_copies: bool = False
    strict: bool = True
    dynamic_shared_bytes: int = 0

    def words(self) -> list[int]:
        return [ORDERS.index(self.order), self.seed, self.fill, int(self.eager_copies), int(self.strict)]


@dataclass(frozen=True)
class Undefined:
    """A buffer whose contents the kernel may not read before it has written them."""

    array: np.ndarray | torch.Tensor


@dataclass(frozen=True)
class Readable:
    """A buffer of which only the bytes in `ranges` ([begin, end), begin a multiple of 8) may be touched.

    Any other access is an error under sanitizer "address", whether the kernel reads by cp.async, by __ldg
    or by a plain load. Without a sanitizer it is not checked. No range at all: nothing may be touched.
    """

    array: np.ndarray | torch.Tensor
    ranges: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Reads:
    """What cp.async and __ldg and the like read of the watched buffer: offset, length in bytes."""

    at: NDArray[np.uint64]
    num_bytes: NDArray[np.uint64]

    def sectors(self) -> NDArray[np.int64]:
        """The 32-byte sectors touched, ascending, counted from the start of the buffer."""
        first = self.at // SECTOR_BYTES
        last = (self.at + self.num_bytes - np.uint64(1)) // SECTOR_BYTES
        return np.unique(np.concatenate([first, last])).astype(np.int64)  # a read is at most 16 bytes

    def bytes_read(self) -> NDArray[np.int64]:
        """The offsets of all bytes read, ascending."""
        longest = int(self.num_bytes.max()) if len(self.num_bytes) else 0
        offsets = self.at[:, None] + np.arange(longest, dtype=np.uint64)
        return np.unique(offsets[np.arange(longest) < self.num_bytes[:, None]]).astype(np.int64)


@dataclass(frozen=True)
class Stats:
    """What a launch without a sanitizer did."""

    num_collectives: int
    num_switches: int
    static_shared_bytes: int
    reads: Reads | None


Argument = np.ndarray | torch.Tensor | np.generic | Undefined | Readable | None


def buffer_bytes(array: np.ndarray | torch.Tensor) -> NDArray[np.uint8]:
    """The bytes of a C-contiguous CPU tensor or array, uint8 (num_bytes,), sharing its memory."""
    if isinstance(array, torch.Tensor):
        if not array.is_contiguous():
            raise LaunchError(f"a tensor of shape {tuple(array.shape)} is not contiguous")
        return array.detach().reshape(-1).view(torch.uint8).numpy()
    if not array.flags.c_contiguous:
        raise LaunchError(f"an array of shape {array.shape} is not contiguous")
    return array.reshape(-1).view(np.uint8)
