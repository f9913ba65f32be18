"""A SimtCuda that does nothing before somebody waits for it, as a device does that is busy."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from simt_cuda import UNDEFINED_BYTE, SimtCuda, SimtEvent, SimtStream


class LazyCuda(SimtCuda):
    """Copies and kernels are done when an event behind them on their stream is waited for or joined.

    Until then memory that they write holds garbage, and they see what has become of memory that they read.
    main_stream: whether this goes for what is on no side stream, too; otherwise that happens at once.
    """

    def __init__(self, *, main_stream: bool = False, **settings: object) -> None:
        super().__init__(**settings)
        self._main_stream = main_stream
        self.num_put_off = 0
        self._queues: dict[SimtStream | None, list[Callable[[], None]]] = {}
        self._running = threading.RLock()

    def upload(self, tensor: torch.Tensor) -> torch.Tensor:
        on_device, staged = torch.empty_like(tensor), tensor.clone()
        on_device.view(-1).view(torch.uint8).fill_(UNDEFINED_BYTE)
        self._later(lambda: on_device.copy_(staged))
        return on_device

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        super_copy = super().copy
        self._later(lambda: super_copy(target, source))

    def launch(
        self,
        module: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[torch.Tensor | np.generic | None],
    ) -> None:
        super_launch = super().launch
        self._later(lambda: super_launch(module, kernel, grid, block, arguments))

    def event(self) -> "LazyEvent":
        with self._running:
            stream = self.current_stream
            return LazyEvent(self, stream, len(self._queues.get(stream, [])))

    def catch_up(self, stream: SimtStream | None, num_done: int) -> None:
        """Does the work of a stream until so much is done in all."""
        with self._running:
            queue = self._queues.get(stream, [])
            for at, work in enumerate(queue[:num_done]):
                queue[at] = _nothing
                work()

    def num_left(self, stream: SimtStream | None = None) -> int:
        """How much work of a stream is not done."""
        with self._running:
            return sum(work is not _nothing for work in self._queues.get(stream, []))

    def after(self, event: "LazyEvent") -> None:
        """What comes on the current stream is done after the event."""
        self._later(lambda: self.catch_up(event.stream, event.num_before))

    def _later(self, work: Callable[[], object]) -> None:
        with self._running:
            if self.current_stream is None and not self._main_stream:
                work()
            else:
                self.num_put_off += 1
                self._queues.setdefault(self.current_stream, []).append(work)


class LazyEvent(SimtEvent):
    """num_before: how much work was put on the stream before the event."""

    def __init__(self, cuda: LazyCuda, stream: SimtStream | None, num_before: int) -> None:
        super().__init__()
        self.cuda, self.stream, self.num_before = cuda, stream, num_before

    def wait(self) -> None:
        self.cuda.catch_up(self.stream, self.num_before)

    def join(self) -> None:
        self.cuda.after(self)


def _nothing() -> None:
    """Work that is done."""
