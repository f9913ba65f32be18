"""How long a training step takes, and which operators take it; beside a copy of the same bytes.

python tests/bench/bench_step.py [--nodes 2000000] [--degree 14] [--batch 1024] [--hidden 256] [--dim 128] …
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import get_args

import numpy as np
import torch
from timing import Row, Setting, compare
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile
from torch_geometric.nn import SAGEConv

from gnn_ibp.graph import Graph
from gnn_ibp.sample import Layer, Sample
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.memory import PeakMemory
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize
from gnn_ibp.train.precision import Precision

NUM_CLASSES = 40
FANOUT = [15, 10, 5]


def draw_sample(num_nodes: int, degree: int, batch_size: int) -> Sample:
    """A minibatch of a random graph: degrees spread around `degree`, popularity by a power law."""
    rng = np.random.default_rng(0)
    degrees = rng.geometric(1 / degree, num_nodes)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = (rng.random(indptr[-1]) ** 3 * num_nodes).astype(np.int32)
    sampler = NeighborSampler(Graph(indptr, indices), FANOUT, seed=0)
    return sampler.sample(torch.from_numpy(rng.choice(num_nodes, batch_size, replace=False)))


def best_ms(run: Callable[[], object], repeats: int = 9) -> float:
    """The shortest of some runs: on a shared machine the others measure the neighbors."""
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return 1e3 * min(times)


class PlainSAGE(nn.Module):
    """The same bipartite model from PyG's layers."""

    def __init__(self, dims: Sequence[int], dropout: float) -> None:
        super().__init__()
        self.convs = nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(dims))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, layers: Sequence[Layer]) -> Tensor:
        for k, (conv, layer) in enumerate(zip(self.convs, layers, strict=True)):
            dst = torch.repeat_interleave(layer.indptr.diff(), output_size=len(layer.indices))
            edges = torch.stack([layer.indices, dst])
            x = conv((x, x[: layer.num_dst]), edges, size=(len(x), layer.num_dst))
            if k < len(self.convs) - 1:
                x = self.dropout(x.relu())
        return x


def train_step(model: nn.Module, y: Tensor, *inputs: object) -> Callable[[], None]:
    """Forward, backward and Adam on one minibatch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        loss = cross_entropy(model(*inputs), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def measure_step(setting: Setting) -> Iterator[Row]:
    """Three layers of 256, fanout 15,10,5, 128 columns; beside PyG's SAGEConv in float32 on these layers."""
    num_nodes, batch_size, hidden = (2000, 32, 32) if setting.quick else (2_000_000, 1024, 256)
    sample = draw_sample(num_nodes, 14, batch_size)
    x, y = torch.randn(len(sample.node_ids), 128), torch.randint(0, NUM_CLASSES, (batch_size,))
    for dropout in (0.0, 0.5):
        plain = PlainSAGE([128, hidden, hidden, NUM_CLASSES], dropout)
        runs = {"PyG's SAGEConv": train_step(plain, y, x, sample.layers)}
        for precision in get_args(Precision):
            model = GraphSAGE(128, hidden, len(FANOUT), NUM_CLASSES, dropout, precision=precision)
            runs[f"{precision}, dropout {dropout}"] = train_step(model, y, x, sample.layers, [1, 2])
        yield from compare(1, "batches", runs, "PyG's SAGEConv", setting.num_rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("nodes", 2_000_000), ("degree", 14), ("batch", 1024), ("hidden", 256), ("dim", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=get_args(Precision), default="float32")
    parser.add_argument("--profile", action="store_true", help="time by operator")
    args = parser.parse_args()

    sample = draw_sample(args.nodes, args.degree, args.batch)
    x = torch.randn(len(sample.node_ids), args.dim)
    y = torch.randint(0, NUM_CLASSES, (sample.num_seeds,))
    print(f"nodes per hop {sample.num_sampled_nodes}, edges per hop {sample.num_sampled_edges}")
    copy = torch.empty_like(x)
    copy_ms = best_ms(lambda: copy.copy_(x))
    print(f"copy of x ({x.nbytes / 1e6:.0f} MB): {copy_ms:.1f} ms, {2 * x.nbytes / copy_ms / 1e6:.1f} GB/s")

    with PeakMemory() as memory:
        for dropout in (0.0, 0.5):
            normalize = Normalize("standard", torch.zeros(args.dim), torch.ones(args.dim))
            dims = args.dim, args.hidden, len(FANOUT), NUM_CLASSES
            model = GraphSAGE(*dims, dropout, normalize, args.precision)
            step = train_step(model, y, x, sample.layers, [1, 2])
            print(f"step with dropout {dropout}: {best_ms(step):.0f} ms")
            if args.profile:
                print(by_operator(step))
    print(f"peak memory without pages of files: {(memory.anon_bytes or 0) / 1e6:.0f} MB")


def by_operator(step: Callable[[], None]) -> str:
    """A table of torch's operators; our kernels are in SageLayer and SageLayerBackward themselves."""
    with profile(activities=[ProfilerActivity.CPU]) as operators:
        step()
    return str(operators.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))


if __name__ == "__main__":
    main()
