"""SideStreams: the streams on which threads prepare minibatches beside the one that trains."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gnn_ibp.cuda import Cuda, Stream


class SideStreams:
    """As many streams of a device as were ever in use at once; they live on from epoch to epoch."""

    def __init__(self) -> None:
        self._idle: list[Stream] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self, cuda: Cuda) -> Iterator[None]:
        """Makes a stream current on this thread that nobody else uses meanwhile."""
        with self._lock:
            stream = self._idle.pop() if self._idle else cuda.stream()
        try:
            with stream:
                yield
        finally:
            with self._lock:
                self._idle.append(stream)

    def wait(self, cuda: Cuda) -> None:
        """Blocks until the device has done all that was put on streams that are not in use."""
        with self._lock:
            for stream in self._idle:
                with stream:
                    cuda.event().wait()
