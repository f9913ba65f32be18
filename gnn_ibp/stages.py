"""Stages: what went through each part of a conversion, and how long it took."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Stage:
    """num_bytes: of what went through, such as raw rows. num_edges: of the source; 0 where there are none.

    cpu_s: of all threads together; as much as `elapsed_s` times the processors where these are the limit.
    """

    name: str
    num_bytes: int = 0
    num_edges: int = 0
    elapsed_s: float = 0.0
    cpu_s: float = 0.0


def processors() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Stages:
    """The stages that had something to do, in their order."""

    def __init__(self) -> None:
        self.done: list[Stage] = []

    @contextmanager
    def measure(self, name: str) -> Iterator[Stage]:
        """Measures the block, which fills in how much it had to do; one without bytes is left out."""
        stage = Stage(name)
        elapsed_s, cpu_s = time.perf_counter(), time.process_time()
        yield stage
        stage.elapsed_s, stage.cpu_s = time.perf_counter() - elapsed_s, time.process_time() - cpu_s
        if stage.num_bytes:
            self.done.append(stage)

    @property
    def elapsed_s(self) -> float:
        return sum(stage.elapsed_s for stage in self.done)
