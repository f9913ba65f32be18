"""Edges sampled per second of one thread's CPU time, beside plain random reads of the graph; run by hand.

python tests/bench/bench_sampler.py [--nodes 2000000] [--edges 20000000] [--fanout 15,10,5]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from gnn_ibp.graph import build_csc
from gnn_ibp.samplers import NeighborSampler


def best_cpu_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.thread_time()
        run()
        seconds.append(time.thread_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--fanout", default="15,10,5")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=10)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    edges = rng.integers(0, args.nodes, (2, args.edges), dtype=np.int32)
    start = time.perf_counter()
    graph = build_csc(edges, args.nodes).graph
    seconds = time.perf_counter() - start
    print(f"build_csc      {args.edges / seconds / 1e6:8.1f} M edges/s   ({seconds:.2f} s, all threads)")

    sampler = NeighborSampler(graph, [int(fanout) for fanout in args.fanout.split(",")])
    seeds = rng.permutation(args.nodes)[: args.batches * args.batch_size].reshape(args.batches, -1)
    samples = [sampler.sample(batch, batch=i) for i, batch in enumerate(seeds)]
    num_edges = sum(len(sample.e_id) for sample in samples)
    num_nodes = sum(len(sample.node_ids) for sample in samples)
    e_ids = [sample.e_id.numpy() for sample in samples]

    reads = best_cpu_seconds(lambda: [graph.indices[e_id] for e_id in e_ids])
    sampling = best_cpu_seconds(lambda: [sampler.sample(batch, batch=i) for i, batch in enumerate(seeds)])
    print(f"one batch      {num_nodes // args.batches} nodes, {num_edges // args.batches} edges")
    print(f"indices[e_id]  {num_edges / reads / 1e6:8.1f} M edges/s   (the reads alone, NumPy)")
    per_batch = f"{1e3 * sampling / args.batches:.1f} ms a batch"
    print(f"sample         {num_edges / sampling / 1e6:8.1f} M edges/s   ({per_batch})")


if __name__ == "__main__":
    main()
