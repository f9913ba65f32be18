"""SimtCuda: gnn_ibp.cuda.Cuda for tests, over CPU tensors; its kernels run on the CPU."""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from host_build import KERNELS
from host_module import HostModule
from kernel_launch import Argument, Options, Reads
from sanitized_module import SanitizedModule

from gnn_ibp.cuda import PinError

PAGE_BYTES = 4096
UNDEFINED_BYTE = 0xA5  # what fresh memory holds, up to UNDEFINED_BYTES of it; memory beyond is lazily zeroed
UNDEFINED_BYTES = 16 << 20


@dataclass(frozen=True)
class Launched:
    """One launch: its kernel, blocks, threads a block, and the stream it was on."""

    module: str
    kernel: str
    grid: int
    block: int
    stream: "SimtStream | None"


class SimtCuda:
    """The methods of Cuda, synchronous, over CPU tensors.

    options: the schedule of the threads, kernel_launch.Options(order="random", seed=3) for example.
    device_bytes: empty() raises MemoryError when more than that is held; None for no limit.
    pin_bytes: pin() raises PinError when more than that is held; None for no limit.
    sanitizer: run every launch in a child process under "address", "thread" or "memory".
    kernels: the folder whose cuda/MODULE.cu are run.

    launches: what was launched so far, in order.
    prepare: if set, maps (kernel, arguments) to the arguments passed, to mark buffers Undefined or Readable.
    watch: if set, a tensor whose reads by cp.async and __ldg are added to `reads` at every launch.
    """

    def __init__(
        self,
        options: Options = Options(),  # noqa: B008
        device_bytes: int | None = None,
        pin_bytes: int | None = None,
        sanitizer: str | None = None,
        kernels: Path = KERNELS,
    ) -> None:
        self.device = torch.device("cpu")
        self.name = "kernels on the CPU"
        self.num_processors = 2
        self.options = options
        self.launches: list[Launched] = []
        self.reads: list[Reads] = []
        self.watch: torch.Tensor | None = None
        self.prepare: Callable[[str, Sequence[Argument]], Sequence[Argument]] | None = None
        self._sanitizer, self._kernels = sanitizer, kernels
        self._device_memory = _Memory(device_bytes)
        self._pinned_memory = _Memory(pin_bytes)
        self._lock = threading.Lock()
        self._streams = threading.local()

    @classmethod
    def open(cls, device: str | torch.device = "cuda") -> "SimtCuda":
        return cls()

    @classmethod
    def available(cls) -> str | None:
        return None

    def free_bytes(self) -> int:
        return self._device_memory.free_bytes()

    def peak_bytes(self) -> int:
        return self._device_memory.peak_bytes

    def empty(self, num_bytes: int) -> torch.Tensor:
        memory = self._device_memory.take(num_bytes)
        if memory is None:
            raise MemoryError(f"{num_bytes} bytes of device memory wanted, {self.free_bytes()} are free")
        return memory

    def pin(self, num_bytes: int) -> torch.Tensor:
        memory = self._pinned_memory.take(num_bytes)
        if memory is None:
            raise PinError(f"{num_bytes} bytes cannot be page-locked")
        return memory

    def stream(self) -> "SimtStream":
        return SimtStream(self._streams)

    @property
    def current_stream(self) -> "SimtStream | None":
        """The side stream this thread is on, or None."""
        stack = getattr(self._streams, "stack", [])
        return stack[-1] if stack else None

    def event(self) -> "SimtEvent":
        return SimtEvent()

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        if target.nbytes != source.nbytes:
            raise ValueError(f"target has {target.nbytes} bytes, source has {source.nbytes}")
        target.reshape(-1).view(torch.uint8).copy_(source.reshape(-1).view(torch.uint8))

    def upload(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def share(self, *tensors: torch.Tensor) -> None:
        pass

    def compile(self, module: str, kernel: str) -> None:
        """Nothing: it is compiled when it is launched."""

    def launch(
        self,
        module: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[torch.Tensor | np.generic | None],
    ) -> None:
        """Run a kernel of kernels/cuda/MODULE.cu to its end. Raises kernel_launch.LaunchError."""
        passed = self.prepare(kernel, arguments) if self.prepare else arguments
        source = self._kernels / "cuda" / f"{module}.cu"
        with self._lock:
            self.launches.append(Launched(module, kernel, grid, block, self.current_stream))
            if self._sanitizer is None:
                loaded = _host_module(source, self._kernels)
                stats = loaded.launch(kernel, grid, block, passed, self.options, self.watch)
                if stats.reads is not None:
                    self.reads.append(stats.reads)
            else:
                child = _sanitized_module(source, self._sanitizer, self._kernels)
                child.launch(kernel, grid, block, passed, self.options)


class SimtStream:
    """A side stream; everything on it has happened when the call returns."""

    def __init__(self, streams: threading.local) -> None:
        self._streams = streams

    def __enter__(self) -> "SimtStream":
        if not hasattr(self._streams, "stack"):
            self._streams.stack = []
        self._streams.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._streams.stack.pop()


class SimtEvent:
    """A moment that has passed."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def wait(self) -> None:
        pass

    def join(self) -> None:
        pass

    def seconds_since(self, earlier: "SimtEvent") -> float:
        return self._at - earlier._at


class _Memory:
    """Page-aligned tensors, counted as long as they live, up to a limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._held = limit, 0
        self.peak_bytes = 0
        self._lock = threading.Lock()

    def free_bytes(self) -> int:
        return (1 << 40 if self._limit is None else self._limit) - self._held

    def take(self, num_bytes: int) -> torch.Tensor | None:
        """uint8 (num_bytes,), not defined; None where the limit does not allow it."""
        with self._lock:
            if num_bytes > self.free_bytes():
                return None
            self._held += num_bytes
            self.peak_bytes = max(self.peak_bytes, self._held)
        memory = np.zeros(num_bytes + PAGE_BYTES, np.uint8)  # large ones lazily
        start = -memory.ctypes.data % PAGE_BYTES
        memory = memory[start : start + num_bytes]
        memory[:UNDEFINED_BYTES] = UNDEFINED_BYTE
        weakref.finalize(memory, self._give_back, num_bytes)  # torch keeps the array as long as the storage
        return torch.from_numpy(memory)

    def _give_back(self, num_bytes: int) -> None:
        with self._lock:
            self._held -= num_bytes


@cache
def _host_module(source: Path, kernels: Path) -> HostModule:
    return HostModule(source, kernels)


@cache
def _sanitized_module(source: Path, sanitizer: str, kernels: Path) -> SanitizedModule:
    return SanitizedModule(source, sanitizer, kernels)
