"""A conversion whose edges alone exceed its memory, in a process that cannot take more than it was given."""

import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gnn_ibp.budget import used_memory
from gnn_ibp.conversion.dataset_parts import ConversionSettings, DatasetParts
from gnn_ibp.conversion.dataset_writer import write_dataset
from gnn_ibp.conversion.need import ConversionNeed
from gnn_ibp.conversion.row_stream import block_rows, sample_by_pass
from gnn_ibp.row_type import RowType

NUM_NODES, NUM_EDGES = 200_000, 9_000_000
THREADS_BYTES = 48 << 20
"""Stacks of threads count in the limit, touched or not."""

SETTINGS = ConversionSettings(undirected=True)


class DrawnEdges:
    """Edges that exist only while they are read."""

    num_edges, dtype = NUM_EDGES, np.dtype(np.int64)

    def blocks(self, first: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for at in range(first, NUM_EDGES, 1 << 20):
            rng = np.random.default_rng(at)
            count = min(1 << 20, NUM_EDGES - at)
            src, dst = (rng.random((2, count)) ** 2 * NUM_NODES).astype(np.int64)
            yield src, dst


class DrawnRows:
    """Rows that exist only while they are read."""

    num_rows, row_type = NUM_NODES, RowType("float32", (128,))

    def blocks(self, first_row: int = 0) -> Iterator[np.ndarray]:
        step = block_rows(self.row_type)
        for at in range(first_row, NUM_NODES, step):
            yield np.random.default_rng(at).random((min(step, NUM_NODES - at), 128), np.float32)

    def sample(self, seed: int) -> np.ndarray:
        return sample_by_pass(self, NUM_NODES, seed)  # type: ignore[return-value]


def limited_parts() -> DatasetParts:
    return DatasetParts(
        name="limited",
        source={"kind": "test"},
        num_nodes=NUM_NODES,
        edge_index=DrawnEdges(),
        labels=np.broadcast_to(np.float32(np.nan), NUM_NODES),
        features={"x": DrawnRows()},
    )


def data_bytes() -> int:
    """What RLIMIT_DATA limits."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


class Peak:
    """The most memory that was held while it was entered, beside what was held before."""

    def __enter__(self) -> "Peak":
        self._before = used_memory()
        self.num_bytes, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.num_bytes = max(self.num_bytes, used_memory() - self._before)
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


if __name__ == "__main__":
    out, memory_bytes = Path(sys.argv[1]), int(sys.argv[2])
    need = ConversionNeed(limited_parts(), SETTINGS, memory_bytes)
    memory_bytes = need.memory_bytes or need.smallest_memory_bytes
    limit = data_bytes() + memory_bytes + THREADS_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    started = time.monotonic()
    with Peak() as peak:
        write_dataset(limited_parts(), out, SETTINGS, memory_bytes)
    print(memory_bytes, peak.num_bytes, time.monotonic() - started)
