"""A SimtCuda that notes who waits, what is made on which stream, and how it is handed over."""

import os
import threading
from collections import Counter

import torch
from simt_cuda import SimtCuda, SimtEvent, SimtStream

Stream = SimtStream | None


class WatchedCuda(SimtCuda):
    """waits: waits for events per thread, by the thread's id.

    made_on: the stream that every uploaded or allocated piece of memory was made on, by its address.
    joined:  (stream, event) of every stream that was told to wait for an event.
    shared:  (address, stream) of all memory that was shared with a stream.

    In a process other than the one that made it, every use is an error, as it is with CUDA after a fork.
    """

    def __init__(self, **settings: object) -> None:
        self.process = os.getpid()
        self.waits: Counter[int] = Counter()
        self.made_on: dict[int, Stream] = {}
        self.joined: list[tuple[Stream, WatchedEvent]] = []
        self.shared: list[tuple[int, Stream]] = []
        super().__init__(**settings)

    def __getattribute__(self, name: str) -> object:
        process = object.__getattribute__(self, "__dict__").get("process", os.getpid())
        if process != os.getpid():
            raise AssertionError(f"the device is used ({name}) by a process that did not open it")
        return object.__getattribute__(self, name)

    def empty(self, num_bytes: int) -> torch.Tensor:
        return self._made(super().empty(num_bytes))

    def upload(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._made(super().upload(tensor))

    def event(self) -> "WatchedEvent":
        return WatchedEvent(self, self.current_stream)

    def share(self, *tensors: torch.Tensor) -> None:
        self.shared += [(address(tensor), self.current_stream) for tensor in tensors]

    def _made(self, tensor: torch.Tensor) -> torch.Tensor:
        self.made_on[address(tensor)] = self.current_stream
        return tensor


class WatchedEvent(SimtEvent):
    """stream: the one it was recorded on."""

    def __init__(self, cuda: WatchedCuda, stream: Stream) -> None:
        super().__init__()
        self.cuda, self.stream = cuda, stream

    def wait(self) -> None:
        self.cuda.waits[threading.get_ident()] += 1
        super().wait()

    def join(self) -> None:
        self.cuda.joined.append((self.cuda.current_stream, self))
        super().join()


def address(tensor: torch.Tensor) -> int:
    """Of the memory under a tensor; views have that of what they look at."""
    return tensor.untyped_storage().data_ptr()
