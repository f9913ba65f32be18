"""StagingRing: a few buffers of host memory on their way to a device, used in turn by all threads."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor

from gnn_ibp.cuda import Cuda, Event
from gnn_ibp.device.locked_memory import LockedMemory

BUFFER_BYTES = 8 << 20
NUM_BUFFERS = 4
FIRST_DEVICE_BYTES = 64 << 10


@dataclass
class StagingBuffer:
    """host: uint8, the buffer; locked: whether it is page-locked, so that kernels can read it."""

    host: Tensor
    locked: bool
    sent: Event | None = None
    """Passed when the device has read what the buffer held last."""
    _device: Tensor | None = None

    def device(self, cuda: Cuda, num_bytes: int) -> Tensor:
        """uint8 (num_bytes,) device memory that goes with the buffer, for what kernels cannot read in it."""
        held_bytes = 0 if self._device is None else self._device.nbytes
        if self._device is None or held_bytes < num_bytes:
            self._device = cuda.empty(max(num_bytes, 2 * held_bytes, FIRST_DEVICE_BYTES))
        cuda.share(self._device)
        return self._device[:num_bytes]


class StagingRing:
    """Up to `num_buffers` buffers of `buffer_bytes`, made when they are needed."""

    def __init__(
        self, cuda: Cuda, memory: LockedMemory, buffer_bytes: int, num_buffers: int = NUM_BUFFERS
    ) -> None:
        self.buffer_bytes = buffer_bytes
        self._cuda = cuda
        self._memory = memory
        self._num_to_make = num_buffers
        self._free: deque[StagingBuffer] = deque()
        self._kept: list[StagingBuffer] = []  # nobody can tell when the device has read them
        self._changed = threading.Condition()

    @contextmanager
    def buffer(self) -> Iterator[StagingBuffer]:
        """A buffer to fill and to queue work on, on the current stream; others get it when that is done.

        Blocks while all are in use: take one at a time.
        """
        buffer = self._take()
        try:
            yield buffer
        finally:
            self._pass_on(buffer)  # also after a failure: work may be queued

    def _take(self) -> StagingBuffer:
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._num_to_make)
            buffer = self._free.popleft() if self._free else None  # the one whose work was queued first
            self._num_to_make -= buffer is None
        try:
            if buffer is None:
                return StagingBuffer(*self._memory.take(self.buffer_bytes))
            if buffer.sent:
                buffer.sent.wait()
            return buffer
        except BaseException:
            self._give_back(buffer, sent=buffer.sent if buffer else None)
            raise

    def _pass_on(self, buffer: StagingBuffer) -> None:
        """Gives it back, behind what was queued. On a device that is lost another one takes its place: who
        waits for one goes on, and is told the same."""
        try:
            sent = self._cuda.event()
        except BaseException:
            self._kept.append(buffer)
            self._give_back(None, sent=None)
            raise
        self._give_back(buffer, sent)

    def _give_back(self, buffer: StagingBuffer | None, sent: Event | None) -> None:
        with self._changed:
            if buffer is None:
                self._num_to_make += 1
            else:
                buffer.sent = sent
                self._free.append(buffer)
            self._changed.notify()

    def __del__(self) -> None:
        for buffer in self._free:
            if buffer.sent:
                buffer.sent.wait()  # memory that a device reads must not go
