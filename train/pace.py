"""Pace: keeps the loop from running far ahead of the device."""

from collections import deque

from gnn_ibp.cuda import Cuda, Event

MAX_AHEAD = 3
"""Minibatches whose work is queued on the device: enough to keep it busy."""


class Pace:
    """The loop only queues work; what a minibatch holds on the device is free when that work is done.

    Without a limit, a host that is faster than its device would fill the device's memory with minibatches.
    cuda: None where nothing is queued, on the CPU.
    """

    def __init__(self, cuda: Cuda | None) -> None:
        self._cuda = cuda
        self._queued: deque[Event] = deque()

    def step(self) -> None:
        """Call it after a minibatch's work: waits for that of `MAX_AHEAD` minibatches before."""
        if self._cuda is None:
            return
        self._queued.append(self._cuda.event())
        if len(self._queued) > MAX_AHEAD:
            self._queued.popleft().wait()

    def finish(self) -> None:
        """Waits for all that is queued."""
        if self._queued:
            self._queued[-1].wait()  # the others passed before it
        self._queued.clear()
