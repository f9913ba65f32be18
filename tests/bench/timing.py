"""Timings that can be compared: a candidate and its baseline take turns in one process; medians of rounds."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gnn_ibp import ops

Run = Callable[[], Any]
Clock = Callable[[Run], float]

RATES = {"bytes": (1e9, "GB/s"), "edges": (1e6, "M edges/s"), "batches": (1.0, "batches/s")}
"""By what is moved: how many are one of the unit that a rate is printed in, and its name."""


@dataclass(frozen=True)
class Setting:
    """quick: seconds on small sizes, to see that it runs. data: where synthetic datasets lie or are made."""

    quick: bool = False
    data: Path = Path("data")

    @property
    def num_rounds(self) -> int:
        return 2 if self.quick else 9


@dataclass(frozen=True)
class Row:
    """A line of the table. Both moved `moved` bytes, edges or batches (`unit`), in median seconds.

    note: what else is worth a few words, such as the share of bytes saved.
    """

    name: str
    moved: float
    unit: str
    seconds: float
    baseline: str
    baseline_seconds: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times as fast as the baseline."""
        return self.baseline_seconds / self.seconds


def wall(run: Run) -> float:
    """The seconds that `run` takes by the clock on the wall."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def told(run: Run) -> float:
    """The seconds that `run` returns, for what prepares something first or times itself."""
    return float(run())


def rounds(runs: Mapping[str, Run], num_rounds: int, clock: Clock = wall) -> dict[str, float]:
    """Median seconds of each; a round runs all in turn, and one more round before them warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(num_rounds + 1):
        for name, run in runs.items():
            elapsed = clock(run)
            if round_:
                seconds[name].append(elapsed)
    return {name: statistics.median(times) for name, times in seconds.items()}


def compare(
    moved: float,
    unit: str,
    runs: Mapping[str, Run],
    baseline: str,
    num_rounds: int,
    clock: Clock = wall,
    note: str = "",
) -> Iterator[Row]:
    """A row for each of `runs` but `baseline`, which is one of them; all move the same."""
    seconds = rounds(runs, num_rounds, clock)
    for name in runs:
        if name != baseline:
            yield Row(name, moved, unit, seconds[name], baseline, seconds[baseline], note)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Within it our kernels and torch use `number` threads."""
    before = ops.num_threads(), torch.get_num_threads()
    ops.set_num_threads(number)
    torch.set_num_threads(number)
    try:
        yield
    finally:
        ops.set_num_threads(before[0])
        torch.set_num_threads(before[1])
