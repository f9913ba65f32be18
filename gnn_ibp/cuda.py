"""All that is known of CUDA: device memory, page-locked memory, streams, events, launching kernels.

Nothing here runs at import: torch's CUDA and CuPy are asked when a `Cuda` is opened.
"""

import importlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Union

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.cuda_kernels import kernel_of
from gnn_ibp.page_locked import PageLockedMemory, PinError

__all__ = ["Argument", "Cuda", "Event", "PinError", "Stream"]

Argument = Union[Tensor, "np.generic[Any]", None]
"""Of a kernel: a tensor gives its address, None a null pointer, a NumPy scalar its value."""

MIN_CAPABILITY = (8, 0)
"""Compute capability of the oldest devices that run the kernels: Ampere, for its asynchronous copies."""


class Stream:
    """A queue of work beside torch's default stream; `with stream:` makes it the current one."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream
        self._entered: list[Any] = []

    def __enter__(self) -> "Stream":
        entered = torch.cuda.stream(self._stream)
        entered.__enter__()  # type: ignore[no-untyped-call]
        self._entered.append(entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)


class Event:
    """A mark in a stream, passed when all work before it is done."""

    def __init__(self, device: torch.device) -> None:
        # blocking: a thread that waits sleeps, and leaves its processor to those that sample
        self._event = torch.cuda.Event(enable_timing=True, blocking=True)  # type: ignore[no-untyped-call]
        self._device = device
        self._event.record(torch.cuda.current_stream(device))

    def wait(self) -> None:
        """Blocks the calling thread until the event has passed; other threads run on."""
        self._event.synchronize()

    def join(self) -> None:
        """What is queued on the current stream from now on waits for the event; the thread does not."""
        torch.cuda.current_stream(self._device).wait_event(self._event)

    def seconds_since(self, earlier: "Event") -> float:
        """The device's time between two events; both must have passed."""
        return float(earlier._event.elapsed_time(self._event)) / 1e3


class Cuda:
    """One CUDA device. Work is queued on torch's current stream of the calling thread.

    device:         what torch calls it, with its index.
    name:           what its maker calls it.
    num_processors: streaming multiprocessors.
    """

    def __init__(self, device: torch.device, cupy: Any) -> None:
        self.device = device
        self.name = torch.cuda.get_device_name(device)
        self.num_processors = int(torch.cuda.get_device_properties(device).multi_processor_count)
        self._cupy = cupy
        self._page_locked = PageLockedMemory(cupy.cuda.runtime)
        self._uploads_refused = False

    @classmethod
    def open(cls, device: str | torch.device = "cuda") -> "Cuda":
        """The device "cuda" (torch's current one) or "cuda:N".

        Raises RuntimeError, with cause and remedy, where there is no such device or it cannot be used.
        """
        wanted = torch.device(device)
        if wanted.type != "cuda":
            raise ValueError(f"device is {str(device)!r}, want cuda or cuda:N")
        problem = _problem(wanted)
        if problem:
            raise RuntimeError(f"device {str(device)!r} cannot be used: {problem}")
        return cls(torch.device("cuda", _index_of(wanted)), importlib.import_module("cupy"))

    @classmethod
    def available(cls) -> str | None:
        """None where `open()` works in this process; else the reason, with a remedy."""
        return _problem(torch.device("cuda"))

    def free_bytes(self) -> int:
        """Device memory that is free now, what torch's allocator keeps without using it included."""
        kept = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(torch.cuda.mem_get_info(self.device)[0]) + kept

    def peak_bytes(self) -> int:
        """The most device memory that torch's allocator took so far."""
        return torch.cuda.max_memory_reserved(self.device)

    def empty(self, num_bytes: int) -> Tensor:
        """uint8 (num_bytes,) device memory, not cleared, its address a multiple of 256 or more.

        Raises MemoryError with the bytes wanted and free.
        """
        try:
            return torch.empty(num_bytes, dtype=torch.uint8, device=self.device)
        except torch.cuda.OutOfMemoryError as error:
            raise MemoryError(
                f"{num_bytes:,} bytes of {self.device}'s memory cannot be had, {self.free_bytes():,} are free"
            ) from error

    def pin(self, num_bytes: int) -> Tensor:
        """uint8 (num_bytes,) page-locked host memory on a page boundary, which kernels read over PCIe.

        It stays locked as long as a tensor over it lives. Raises PinError where it cannot be locked,
        MemoryError where there is none.
        """
        with self._current():
            return self._page_locked.allocate(num_bytes)

    def stream(self) -> Stream:
        """A new stream beside the default one, which does not wait for it."""
        return Stream(torch.cuda.Stream(self.device))  # type: ignore[no-untyped-call]

    def event(self) -> Event:
        """An event, recorded on the current stream now."""
        return Event(self.device)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copies the bytes of `source` into `target`: contiguous tensors of as many bytes, of any dtype.

        Asynchronous on the current stream where host memory is page-locked, which must not change until then.
        """
        if target.nbytes != source.nbytes:
            raise ValueError(f"target has {target.nbytes:,} bytes, source has {source.nbytes:,}")
        _bytes_of(target).copy_(_bytes_of(source), non_blocking=True)

    def upload(self, tensor: Tensor) -> Tensor:
        """A copy of a CPU tensor on the device, made on the current stream; `tensor` may change at once."""
        if self._uploads_refused:
            return tensor.to(self.device)
        try:
            staged = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        except RuntimeError as error:
            self._uploads_refused = True  # asking takes long, and one warning is enough
            warnings.warn(
                f"{tensor.nbytes:,} bytes of page-locked memory cannot be had ({_first_line(error)}); "
                "uploads wait for the device instead",
                stacklevel=2,
            )
            return tensor.to(self.device)
        return staged.copy_(tensor).to(self.device, non_blocking=True)

    def share(self, *tensors: Tensor) -> None:
        """Tensors made on another stream will be used on the current one.

        When they end, torch gives their memory away only after what is queued on this stream by then.
        """
        stream = torch.cuda.current_stream(self.device)
        for tensor in tensors:
            if tensor.device == self.device:
                tensor.record_stream(stream)

    def compile(self, module: str, kernel: str) -> None:
        """Makes function `kernel` of kernels/cuda/MODULE.cu ready: the first `launch` would wait for it.

        Raises RuntimeError where it does not compile.
        """
        with self._current():
            kernel_of(self._cupy, self.device.index, module, kernel)

    def launch(self, module: str, kernel: str, grid: int, block: int, arguments: Sequence[Argument]) -> None:
        """Queues function `kernel` of kernels/cuda/MODULE.cu on the current stream.

        grid blocks of `block` threads; tensors among the arguments are contiguous, on the device or in memory
        of `pin`. Raises RuntimeError where the kernel does not compile, ValueError and TypeError for
        arguments that no kernel can take.
        """
        if grid < 1 or not 1 <= block <= 1024:
            raise ValueError(f"grid is {grid}, block is {block}; want at least 1, and 1 to 1024")
        values = tuple(self._value(at, argument) for at, argument in enumerate(arguments))
        with self._current():
            function = kernel_of(self._cupy, self.device.index, module, kernel)
            with self._cupy.cuda.Stream.from_external(_CurrentStream(self.device)):
                function((grid,), (block,), values)

    def _value(self, at: int, argument: Argument) -> "np.generic[Any]":
        if argument is None:
            return np.uint64(0)
        if isinstance(argument, np.generic):
            return argument
        if not isinstance(argument, Tensor):
            raise TypeError(f"argument {at} is a {type(argument).__name__}, want a tensor or a NumPy scalar")
        if not argument.is_contiguous():
            raise ValueError(f"argument {at} is not contiguous")
        address: int | None = argument.data_ptr()
        if argument.device != self.device and argument.numel():
            address = self._page_locked.device_pointer(argument.data_ptr())
            if address is None:
                raise ValueError(
                    f"argument {at} is on {argument.device}, want it on {self.device} or page-locked"
                )
        return np.uint64(address or 0)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Makes this the calling thread's device, for torch and for CuPy, each of which keeps its own."""
        with torch.cuda.device(self.device), self._cupy.cuda.Device(self.device.index):
            yield

    def __repr__(self) -> str:
        return f"Cuda({str(self.device)!r})"


class _CurrentStream:
    """torch's current stream as other libraries take it (the CUDA stream protocol)."""

    def __init__(self, device: torch.device) -> None:
        self._pointer = torch.cuda.current_stream(device).cuda_stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._pointer


def _problem(device: torch.device) -> str | None:
    """Why `device` cannot be used, and what to do; None where it can."""
    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} is built without CUDA; install a build with it "
            "(https://pytorch.org/get-started/locally)"
        )
    try:
        # says what is wrong, which is_available() does not
        torch.cuda.init()  # type: ignore[no-untyped-call]
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:  # no driver, an old one, no GPU, a forked process
        return f"torch finds no usable GPU: {_first_line(error)}"
    if not count:
        return "torch sees no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES"
    index = _index_of(device)
    if index >= count:
        return f"torch sees {count} GPU{'s' if count > 1 else ''}, the last is cuda:{count - 1}"
    capability = torch.cuda.get_device_capability(index)
    if capability < MIN_CAPABILITY:
        return (
            f"{torch.cuda.get_device_name(index)} has compute capability {_dotted(capability)}, the kernels "
            f'need {_dotted(MIN_CAPABILITY)} or later; use device="cpu"'
        )
    return _cupy_problem(torch.version.cuda)


def _cupy_problem(torch_cuda: str) -> str | None:
    """The same of CuPy, beside a torch for CUDA version `torch_cuda`."""
    major = torch_cuda.split(".")[0]
    remedy = f"pip install 'gnn-ibp[cuda{major}]'"
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        return f"CuPy, which compiles the kernels, cannot be imported ({_first_line(error)}); {remedy}"
    except OSError as error:
        return (
            f"CuPy keeps compiled kernels in a folder that cannot be made ({error.strerror}: "
            f"{error.filename!r}); set CUPY_CACHE_DIR to one that can be written to"
        )
    cupy_major = str(cupy.cuda.runtime.runtimeGetVersion() // 1000)
    if cupy_major != major:
        return (
            f"CuPy {cupy.__version__} is for CUDA {cupy_major}, torch {torch.__version__} for CUDA "
            f"{torch_cuda}; pip uninstall cupy-cuda{cupy_major}x, then {remedy}"
        )
    if not hasattr(cupy.cuda.Stream, "from_external"):
        return f"CuPy {cupy.__version__} is too old, want 14 or later; {remedy}"
    return None


def _index_of(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _bytes_of(tensor: Tensor) -> Tensor:
    return tensor.view(-1).view(torch.uint8)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
