"""Edges sampled per second, beside plain random reads of the same edges: lines of tests/bench/bench.py."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from timing import Row, Setting, compare

from gnn_ibp.graph import Graph
from gnn_ibp.samplers import NeighborSampler

FANOUT, BATCH_SIZE = [15, 10, 5], 1024


def random_graph(num_nodes: int, degree: int) -> Graph:
    """Degrees spread around `degree`, neighbors anywhere."""
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.geometric(1 / degree, num_nodes))])
    return Graph(indptr, rng.integers(0, num_nodes, indptr[-1], dtype=np.int32))


def measure_sample(setting: Setting) -> Iterator[Row]:
    """Batches of 1024 seeds, fanout 15,10,5; on two threads every one draws batches of its own."""
    num_nodes, num_batches = (5000, 4) if setting.quick else (2_000_000, 12)
    graph = random_graph(num_nodes, degree=14)
    sampler = NeighborSampler(graph, FANOUT)
    rng = np.random.default_rng(1)
    batches = [rng.choice(num_nodes, BATCH_SIZE, replace=False) for _ in range(num_batches)]
    reads = [sampler.sample(seeds, batch=at).e_id.numpy() for at, seeds in enumerate(batches)]
    num_edges = sum(map(len, reads))
    for number in (1, 2):
        name = f"{num_nodes:,} nodes, {number} thread{'s' * (number > 1)}"
        with ThreadPoolExecutor(number) as pool:
            runs = {
                name: lambda pool=pool: list(
                    pool.map(lambda at: sampler.sample(batches[at], batch=at), range(num_batches))
                ),
                "indices[e_id], numpy": lambda pool=pool: list(
                    pool.map(lambda e_ids: graph.indices[e_ids], reads)
                ),
            }
            yield from compare(num_edges, "edges", runs, "indices[e_id], numpy", setting.num_rounds)
