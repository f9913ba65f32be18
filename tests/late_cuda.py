"""LateCuda: a SimtCuda that does nothing until somebody waits for it, as a device does that is busy."""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import torch
from simt_cuda import SimtCuda, SimtEvent, SimtStream


class LateCuda(SimtCuda):
    """Copies and launches happen, stream by stream, when an event behind them is waited for or joined."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.queued: defaultdict[SimtStream | None, list[Callable[[], None]]] = defaultdict(list)
        self.queue_lock = threading.RLock()

    def later(self, work: Callable[[], None]) -> None:
        with self.queue_lock:
            self.queued[self.current_stream].append(work)

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        self.later(lambda: super(LateCuda, self).copy(target, source))

    def upload(self, tensor: torch.Tensor) -> torch.Tensor:
        staged, target = tensor.clone(), torch.empty_like(tensor)
        self.later(lambda: super(LateCuda, self).copy(target, staged))
        return target

    def launch(
        self,
        module: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: Sequence[torch.Tensor | np.generic | None],
    ) -> None:
        self.later(lambda: super(LateCuda, self).launch(module, kernel, grid, block, arguments))

    def event(self) -> "LateEvent":
        return LateEvent(self)


class LateEvent(SimtEvent):
    """Passes when what was queued before it is done, which is when somebody waits."""

    def __init__(self, cuda: LateCuda) -> None:
        super().__init__()
        self.cuda, self.stream = cuda, cuda.current_stream
        self.passed = False
        cuda.later(self._pass)

    def wait(self) -> None:
        with self.cuda.queue_lock:
            queue = self.cuda.queued[self.stream]
            while not self.passed:
                queue.pop(0)()

    def join(self) -> None:
        self.wait()

    def _pass(self) -> None:
        self.passed = True
