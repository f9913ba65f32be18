"""Minibatches per second of a training epoch, and where the time goes; beside PyG's model on the same ones.

python tests/bench/bench_epoch.py [--nodes 2000000] [--root data] [--batches 20] [--rounds 3] …
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from timing import Row, Setting, compare, told
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader, NodeLoader
from torch_geometric.nn import GraphSAGE as PyGSAGE
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from gnn_ibp import Dataset, FeatureStore, Loader
from gnn_ibp.converters.prepare import prepare
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.loop import Epoch, train_epoch
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize
from gnn_ibp.train.training import Training

FANOUT, BATCH_SIZE, HIDDEN = [15, 10, 5], 1024, 256


def measure_epoch(setting: Setting) -> Iterator[Row]:
    """The first batches of an epoch, beside PyG's GraphSAGE and loader over Data in memory.

    The same seeds and the same model. A last line sets the time that sampling and fetching a minibatch take
    one thread beside the time that the whole minibatch takes.
    """
    num_nodes, num_batches = (2000, 2) if setting.quick else (2_000_000, 10)
    batch_size, hidden = (16, 16) if setting.quick else (BATCH_SIZE, HIDDEN)
    ds = prepare(f"synthetic:{num_nodes}", setting.data, say=lambda _: None)
    sampler, seeds = NeighborSampler(ds.graph, FANOUT), ds.split["train"]
    seeds = seeds[torch.randperm(len(seeds), generator=torch.Generator().manual_seed(0))]
    loader = Loader(FeatureStore(ds), sampler, seeds, batch_size, max_batches=num_batches)
    stats = ds.statistics("x")
    assert stats is not None
    normalize = Normalize("standard", stats.mean, stats.scale)
    baseline, pyg_loader = loader_of_pyg(ds, sampler, seeds, batch_size)
    epochs: list[Epoch] = []

    def ours(model: GraphSAGE, optimizer: torch.optim.Optimizer) -> float:
        epochs.append(train_epoch(Training(model, optimizer), loader, seed=0))
        return epochs[-1].seconds["total"]

    for dropout in (0.0, 0.5):
        model = GraphSAGE(128, hidden, len(FANOUT), ds.num_classes, dropout, normalize)
        pyg = PyGSAGE(128, hidden, len(FANOUT), ds.num_classes, dropout=dropout)
        runs = {
            f"synthetic:{num_nodes}, dropout {dropout}": partial(
                ours, model, torch.optim.Adam(model.parameters())
            ),
            baseline: partial(pyg_seconds, pyg, pyg_loader, num_batches),
        }
        yield from compare(num_batches, "batches", runs, baseline, min(3, setting.num_rounds), told)
    line = statistics.median(epoch.seconds["sample"] + epoch.seconds["fetch"] for epoch in epochs)
    total = statistics.median(epoch.seconds["total"] for epoch in epochs)
    yield Row("sample and fetch, on one thread", num_batches, "batches", line, "the whole minibatch", total)


def loader_of_pyg(
    ds: Dataset, sampler: NeighborSampler, seeds: Tensor, batch_size: int
) -> tuple[str, NodeLoader]:
    """PyG's NeighborLoader over Data in memory, or, where it cannot sample, its NodeLoader with our sampler.

    The features are normalized here, before any time is taken.
    """
    stats, x = ds.statistics("x"), torch.cat(list(ds.feature_file("x").decoded_blocks()))
    assert stats is not None
    data = Data(x=(x - torch.from_numpy(stats.mean)) / torch.from_numpy(stats.scale), y=ds.y)
    if WITH_PYG_LIB or WITH_TORCH_SPARSE:
        graph = ds.graph
        dst = torch.repeat_interleave(torch.from_numpy(graph.indptr).diff())
        data.edge_index = torch.stack([torch.from_numpy(graph.indices).long(), dst])
        name = "PyG: NeighborLoader, Data"
        return name, NeighborLoader(data, FANOUT, seeds, batch_size=batch_size)
    data.edge_index = torch.empty(2, 0, dtype=torch.int64)  # the sampler has the graph
    name = "PyG: our sampler, Data"
    return name, NodeLoader(data, sampler, seeds, batch_size=batch_size)


def pyg_seconds(model: nn.Module, loader: NodeLoader, num_batches: int) -> float:
    """Seconds of training steps on the first batches of PyG's loader."""
    optimizer = torch.optim.Adam(model.parameters())
    began = time.perf_counter()
    for data in itertools.islice(loader, num_batches):
        scores: Tensor = model(
            data.x,
            data.edge_index,
            num_sampled_nodes_per_hop=data.num_sampled_nodes,
            num_sampled_edges_per_hop=data.num_sampled_edges,
        )
        optimizer.zero_grad()
        cross_entropy(scores[: data.batch_size], data.y[: data.batch_size]).backward()
        optimizer.step()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache-bytes", default="auto")
    args = parser.parse_args()

    ds = prepare(f"synthetic:{args.nodes}", args.root, say=print)
    sampler = NeighborSampler(ds.graph, FANOUT)
    store = FeatureStore(ds, cache_bytes=args.cache_bytes)
    stats = ds.statistics("x")
    assert stats is not None

    def loader() -> Loader:
        train = ds.split["train"]
        return Loader(store, sampler, train, BATCH_SIZE, shuffle=True, max_batches=args.batches)

    def ours(dropout: float) -> Epoch:
        normalize = Normalize("standard", stats.mean, stats.scale)
        model = GraphSAGE(128, HIDDEN, len(FANOUT), ds.num_classes, dropout, normalize)
        return train_epoch(Training(model, torch.optim.Adam(model.parameters())), loader(), seed=0)

    def pygs(dropout: float) -> float:
        model = PyGSAGE(128, HIDDEN, len(FANOUT), ds.num_classes, dropout=dropout)
        optimizer = torch.optim.Adam(model.parameters())
        mean, factor = torch.from_numpy(stats.mean), 1 / torch.from_numpy(stats.scale)
        began = time.perf_counter()
        for batch in itertools.islice(loader(), args.batches):
            data = batch.to_data()
            per_hop = data.num_sampled_nodes, data.num_sampled_edges
            scores = model(
                (data.x - mean) * factor,
                data.edge_index,
                num_sampled_nodes_per_hop=per_hop[0],
                num_sampled_edges_per_hop=per_hop[1],
            )
            optimizer.zero_grad()
            cross_entropy(scores[: data.batch_size], batch.y).backward()
            optimizer.step()
        return time.perf_counter() - began

    measured: dict[str, list[float]] = {}
    for round_ in range(args.rounds + 1):  # the first one warms up
        for dropout in (0.0, 0.5):
            epoch = ours(dropout)
            runs: dict[str, Callable[[], float]] = {
                f"ours, dropout {dropout}": lambda epoch=epoch: epoch.seconds["total"],
                f"PyG's model, dropout {dropout}": lambda dropout=dropout: pygs(dropout),
            }
            for name, seconds in runs.items():
                rate = args.batches / seconds()
                if round_:
                    measured.setdefault(name, []).append(rate)
            if round_:
                parts = {part: f"{value / args.batches:.3f}" for part, value in epoch.seconds.items()}
                rows = epoch.sources["cache"]["lookups"] or 0
                print(f"dropout {dropout}: {rows // args.batches} rows a batch, seconds a batch {parts}")
    for name, rates in measured.items():
        print(f"{name:28} {sorted(rates)[len(rates) // 2]:.2f} minibatches/s (median of {len(rates)})")


if __name__ == "__main__":
    main()
