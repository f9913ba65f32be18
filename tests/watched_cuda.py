"""A SimtCuda that notes who waits, what is made on which stream, and how it is handed over."""

import itertools
import os
import threading
from collections import Counter

import torch
from simt_cuda import SimtCuda, SimtEvent, SimtStream

Stream = SimtStream | None


class WatchedCuda(SimtCuda):
    """waited: events that were waited for. waits: how many by each thread, by the thread's id.

    made_on: the stream that every uploaded or allocated piece of memory was made on, by its address.
    made_at: when that was; counts up, with `WatchedEvent.number`.
    joined:  (stream, event) of every stream that was told to wait for an event.
    shared:  (address, stream) of all memory that was shared with a stream.

    In a process other than the one that made it, every use is an error, as it is with CUDA after a fork.
    """

    def __init__(self, **settings: object) -> None:
        self.process = os.getpid()
        self.numbers = itertools.count()
        self.waited: list[WatchedEvent] = []
        self.made_on: dict[int, Stream] = {}
        self.made_at: dict[int, int] = {}
        self.joined: list[tuple[Stream, WatchedEvent]] = []
        self.shared: list[tuple[int, Stream]] = []
        super().__init__(**settings)

    def __getattribute__(self, name: str) -> object:
        process = object.__getattribute__(self, "__dict__").get("process", os.getpid())
        if process != os.getpid():
            raise AssertionError(f"the device is used ({name}) by a process that did not open it")
        return object.__getattribute__(self, name)

    @property
    def waits(self) -> Counter[int]:
        return Counter(event.waited_by for event in self.waited)

    def free_pinned_bytes(self) -> int:
        return self._pinned_memory.free_bytes()

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
        self.made_at[address(tensor)] = next(self.numbers)
        return tensor


class WatchedEvent(SimtEvent):
    """stream: the one it was recorded on. waited_by: the thread that waited for it."""

    def __init__(self, cuda: WatchedCuda, stream: Stream) -> None:
        super().__init__()
        self.cuda, self.stream = cuda, stream
        self.number = next(cuda.numbers)
        self.waited_by: int | None = None

    def wait(self) -> None:
        self.waited_by = threading.get_ident()
        self.cuda.waited.append(self)
        super().wait()

    def join(self) -> None:
        self.cuda.joined.append((self.cuda.current_stream, self))
        super().join()


def address(tensor: torch.Tensor) -> int:
    """Of the memory under a tensor; views have that of what they look at."""
    return tensor.untyped_storage().data_ptr()
