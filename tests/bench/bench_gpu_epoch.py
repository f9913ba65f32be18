"""An epoch on a GPU, raw rows against compressed ones with the same bytes of cache.

python tests/bench/bench_gpu_epoch.py [--nodes 300000] [--batches 60] [--cache-share 0.2] [--json FILE]

The graph is the built-in synthetic one; all rows fit into page-locked memory, `--cache-share` of the raw
ones into the cache. Seconds: total of the epoch; wait, when the model waited for a minibatch; sample and
fetch, of the threads that prepare them. PCIe: sectors of rows that crossed the bus.
"""

import argparse
import json
import math
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from gnn_ibp import Dataset, FeatureStore, Loader
from gnn_ibp.converters.prepare import prepare
from gnn_ibp.cuda import Cuda
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.tiers import subtract
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize

HIDDEN = 256


@dataclass(frozen=True)
class Workload:
    num_batches: int = 60
    batch_size: int = 1024
    fanout: tuple[int, ...] = (15, 10, 5)
    cache_share: float = 0.2


@dataclass(frozen=True)
class Measured:
    """Of one epoch. loss: the last one. hit_rate: of the cache on the device."""

    rows: str
    total_s: float
    wait_s: float
    sample_s: float
    fetch_s: float
    hit_rate: float
    logical_bytes: int
    pcie_bytes: int
    loss: float


def measure(cuda: Any, dataset: Dataset, work: Workload, raw: bool) -> Measured:
    """The second epoch; the first, of a few minibatches, compiles and warms up."""
    x = dataset.features["x"]
    row_bytes = dataset.feature_file().row_bytes
    cache_bytes = int(work.cache_share * x.num_rows * row_bytes) + 8 * x.num_rows
    host_bytes = 2 * x.num_rows * row_bytes + (1 << 20)
    store = FeatureStore(dataset, cuda, cache_bytes=cache_bytes, host_bytes=host_bytes, raw=raw)
    sampler = NeighborSampler(dataset.graph, list(work.fanout), seed=0)
    torch.manual_seed(0)
    dims = (math.prod(x.row_shape), HIDDEN, len(work.fanout), dataset.num_classes)
    model = GraphSAGE(*dims, dropout=0.5, normalize=Normalize("none")).to(cuda.device)
    optimizer = torch.optim.Adam(model.parameters())

    def epoch(number: int, num_batches: int) -> tuple[Loader, float, float]:
        loader = Loader(
            *(store, sampler, dataset.split["train"], work.batch_size),
            shuffle=True,
            max_batches=num_batches,
        )
        loader.set_epoch(number)
        began = time.perf_counter()
        for at, batch in enumerate(loader):
            keys = [1000 * number + 10 * at + k for k in range(len(work.fanout) - 1)]
            loss = cross_entropy(model(batch.x, batch.layers, keys), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        last = loss.item()  # waits for all of it
        return loader, time.perf_counter() - began, last

    epoch(1, min(3, work.num_batches))
    before = store.stats()
    loader, total_s, loss = epoch(2, work.num_batches)
    tiers = subtract(store.stats(), before)
    return Measured(
        rows="raw" if raw else "compressed",
        total_s=total_s,
        wait_s=loader.seconds["wait"],
        sample_s=loader.seconds["sample"],
        fetch_s=loader.seconds["fetch"],
        hit_rate=float(tiers["cache"]["hit_rate"] or 0),
        logical_bytes=sum(int(tier["logical_bytes"] or 0) for tier in tiers.values()),
        pcie_bytes=sum(int(tier["pcie_bytes"] or 0) for tier in tiers.values()),
        loss=loss,
    )


def table(measured: list[Measured], name: str, work: Workload) -> str:
    """A line per store."""
    head = f"{'epoch':<12}{'total':>8}{'wait':>8}{'sample':>8}{'fetch':>8}   s"
    lines = [
        f"{name}: {work.num_batches} minibatches of {work.batch_size} seeds, fanout {work.fanout}, "
        f"a cache of {work.cache_share:.0%} of the raw rows",
        f"{head}{'hits':>7}{'rows':>9}{'PCIe':>9}   GB",
    ]
    for row in measured:
        seconds = "".join(f"{s:>8.2f}" for s in (row.total_s, row.wait_s, row.sample_s, row.fetch_s))
        moved = f"{row.logical_bytes / 1e9:>9.2f}{row.pcie_bytes / 1e9:>9.2f}"
        lines.append(f"{row.rows:<12}{seconds}    {row.hit_rate:>7.1%}{moved}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--cache-share", type=float, default=0.2)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    args = parser.parse_args()
    cuda = Cuda.open(args.device)
    name = torch.cuda.get_device_name(cuda.device)
    work = Workload(num_batches=args.batches, cache_share=args.cache_share)
    with tempfile.TemporaryDirectory() as folder:
        dataset = prepare(f"synthetic:{args.nodes}", Path(folder), say=print)
        measured = [measure(cuda, dataset, work, raw) for raw in (True, False)]
    print(table(measured, name, work))
    if args.json:
        numbers = {"device": name, "epochs": [asdict(row) for row in measured]}
        args.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
