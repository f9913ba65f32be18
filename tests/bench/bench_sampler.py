"""Edges sampled per second, beside the random cache lines that the same threads read: lines of bench.py."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from papers_shape import BLOCK, PapersShape
from timing import Row, Setting, compare

from gnn_ibp.graph import Graph
from gnn_ibp.samplers import NeighborSampler

FANOUT, BATCH_SIZE = [15, 10, 5], 1024
LINES = "random 64-byte lines, numpy"


def papers_graph(shape: PapersShape) -> Graph:
    """A graph with the degrees of `shape` at both ends, in memory; which ends meet is left to chance."""
    degrees = np.zeros(shape.num_nodes, np.int64)
    indices = np.empty(shape.num_edges, np.int32)

    def draw(block: int) -> NDArray[np.int64]:
        sources = shape.sources(block)
        indices[block * BLOCK : block * BLOCK + len(sources)] = sources
        return shape.targets(block)

    with ThreadPoolExecutor(2) as pool:
        for targets in pool.map(draw, range(shape.num_blocks)):
            degrees += np.bincount(targets, minlength=shape.num_nodes)
    return Graph(np.concatenate([[0], np.cumsum(degrees)]), indices)


def read_lines(indices: NDArray[np.int32], at: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    """Reads positions that no cache holds, many at a time; `clip` because other modes check them first."""
    np.take(indices, at, out=out, mode="clip")


def measure_sample(setting: Setting) -> Iterator[Row]:
    """A tenth of papers100M's shape; every thread draws batches of its own.

    A baseline reads as many lines at random as the candidate samples edges: the ratio is edges a line.
    """
    shape = PapersShape(5000, 70_000) if setting.quick else PapersShape(11_000_000, 161_000_000)
    num_batches = 4 if setting.quick else 16
    graph, rng = papers_graph(shape), np.random.default_rng(1)
    sampler = NeighborSampler(graph, FANOUT)
    batches = [rng.choice(shape.num_nodes, BATCH_SIZE, replace=False) for _ in range(num_batches)]
    shapes = [sampler.sample(seeds, batch=at).shape for at, seeds in enumerate(batches)]
    num_edges = sum(sample.num_edges for sample in shapes)
    lines = [rng.integers(0, shape.num_edges, sample.num_edges) for sample in shapes]
    outs = [np.empty(len(at), np.int32) for at in lines]

    def sample_all(pool: ThreadPoolExecutor) -> None:
        list(pool.map(lambda at: sampler.sample(batches[at], batch=at).shape, range(num_batches)))

    def read_all(pool: ThreadPoolExecutor) -> None:
        list(pool.map(partial(read_lines, graph.indices), lines, outs))

    note = f"{num_edges // num_batches:,} edges a batch; {pyg_lib()}"
    for number in (1, 2):
        name = f"{shape.num_nodes:,} nodes, {number} thread{'s' * (number > 1)}"
        with ThreadPoolExecutor(number) as pool:
            runs: dict[str, Callable[[], None]] = {
                name: partial(sample_all, pool),
                LINES: partial(read_all, pool),
            }
            yield from compare(num_edges, "edges", runs, LINES, setting.num_rounds, note=note)


def pyg_lib() -> str:
    return "pyg-lib is installed, not compared" if find_spec("pyg_lib") else "pyg-lib: not installed"
