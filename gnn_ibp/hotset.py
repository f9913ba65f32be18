"""Hot sets: which rows are worth caching, hottest first."""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike

from gnn_ibp.progress import progress
from gnn_ibp.rows import Ids
from gnn_ibp.sample import Sample


class Topology(Protocol):
    """What a hot set needs of a graph in CSC."""

    def out_degree(self) -> Ids: ...


class Sampler(Protocol):
    """What presampling needs of a sampler."""

    def sample(self, seeds: torch.Tensor, *, epoch: int = 0, batch: int = 0) -> Sample: ...


def degree_hot_set(graph: Topology) -> Ids:
    """All nodes, those with most out-edges first; ties by id.

    The out-degree is how often a node occurs in `indices`: how often it can be sampled. int64 (num_nodes,).
    """
    return np.argsort(-graph.out_degree(), kind="stable")


def presample(
    sampler: Sampler, seeds: ArrayLike | torch.Tensor, batch_size: int = 1024, num_epochs: int = 1
) -> Ids:
    """The nodes that `sampler` visits from `seeds`, most often visited first; ties by id. int64.

    Runs `num_epochs` epochs of shuffled batches, the same ones every time. A node counts once per row that is
    looked up for it. Nodes never visited are not among the result: `RowCache.fill` takes
    `np.concatenate([presample(…), degree_hot_set(graph)])` where there is room for more.
    Raises ValueError for a batch size or a number of epochs below 1, and what the sampler raises.
    """
    if batch_size < 1 or num_epochs < 1:
        raise ValueError(f"batch_size is {batch_size}, num_epochs is {num_epochs}: both must be at least 1")
    seed_ids = torch.as_tensor(seeds)
    counts = np.zeros(0, np.int64)
    num_batches = -(-len(seed_ids) // batch_size)
    with progress("presampling", num_batches * num_epochs, "batch") as bar:
        for epoch in range(num_epochs):
            order = torch.from_numpy(np.random.default_rng(epoch).permutation(len(seed_ids)))
            for batch in range(num_batches):
                some = seed_ids[order[batch * batch_size : (batch + 1) * batch_size]]
                ids = sampler.sample(some, epoch=epoch, batch=batch).node_ids.numpy()
                if len(ids) and ids.max() >= len(counts):
                    counts.resize(max(int(ids.max()) + 1, 2 * len(counts)), refcheck=False)
                np.add.at(counts, ids, 1)
                bar.update()
    visited = np.flatnonzero(counts)
    return visited[np.argsort(-counts[visited], kind="stable")]
