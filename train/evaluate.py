"""Evaluation: the share of nodes whose label the model finds, by sampling or exactly."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_ibp import ops
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph import Graph
from gnn_ibp.loader import Loader
from gnn_ibp.progress import progress
from gnn_ibp.train.model import GraphSAGE, has_kernels
from gnn_ibp.train.pace import Pace
from gnn_ibp.train.plain_layer import neighbor_mean
from gnn_ibp.train.precision import OPERAND_BYTES

BLOCK_ROWS = 8192

ROW_COPIES = 6
"""Rows that a block holds for each of its nodes: features, normalized, given, kept, means, and their sum."""

EDGE_BYTES = 40
"""What a block holds for each edge: where it stands, in two steps, and its source."""


def sampled_accuracy(model: GraphSAGE, loader: Loader, title: str) -> float:
    """Accuracy on the loader's seeds; every call draws the same neighborhoods."""
    model.eval()
    loader.set_epoch(0)  # training begins at 1
    num_right, num_seeds = torch.zeros((), dtype=torch.int64, device=loader.store.device), 0
    pace = Pace(loader.store.cuda)
    with torch.no_grad(), progress(title, len(loader)) as bar:
        for batch in loader:
            scores = model(batch.x, batch.layers)
            num_right += (scores.argmax(1) == batch.y).sum()
            num_seeds += batch.batch_size
            pace.step()
            bar.update()
    return int(num_right) / num_seeds


def exact_accuracy(model: GraphSAGE, store: FeatureStore, graph: Graph, nodes: Tensor, y: Tensor) -> float:
    """Accuracy on `nodes` by `exact_scores`; y: int64 (num_nodes,), the labels."""
    found = exact_scores(model, store, graph, nodes).argmax(1).cpu()
    return int((found == y[nodes]).sum()) / len(nodes)


def hidden_bytes(model: GraphSAGE, num_nodes: int) -> int:
    """Bytes that `exact_scores` holds for the hidden states of all nodes."""
    hidden, classes = model.shape["hidden"], model.shape["num_classes"]
    widest = max(2 * hidden, hidden + classes) if len(model.convs) > 1 else classes
    return 4 * num_nodes * widest


def exact_bytes(model: GraphSAGE, graph: Graph, nodes: Tensor) -> int:
    """Memory that `exact_scores` takes, at most: hidden states, a block of them on its way, the scores."""
    every = range(0, graph.num_nodes, BLOCK_ROWS)
    ends = [*every, graph.num_nodes]
    of_all = np.diff(graph.indptr[ends]).max(initial=0)
    ids = nodes.numpy()
    degrees = graph.indptr[ids + 1] - graph.indptr[ids]
    of_nodes = np.add.reduceat(degrees, range(0, len(ids), BLOCK_ROWS)).max(initial=0) if len(ids) else 0
    widest = max(model.shape.values())
    row_bytes = (4 * ROW_COPIES + 2 * OPERAND_BYTES[model.precision]) * widest
    block = min(BLOCK_ROWS, graph.num_nodes) * row_bytes + EDGE_BYTES * int(max(of_all, of_nodes))
    scores = 3 * 4 * len(nodes) * model.shape["num_classes"]
    return hidden_bytes(model, graph.num_nodes) + block + scores + 24 * len(nodes)


@torch.no_grad()
def exact_scores(model: GraphSAGE, store: FeatureStore, graph: Graph, nodes: Tensor) -> Tensor:
    """Scores (len(nodes), num_classes) from full neighborhoods, computed layer by layer for the whole graph.

    Mean and product commute: a layer first multiplies every row, then takes the means of the products. So the
    features are read once, from first to last, and little is held beside `hidden_bytes`. All of it, and the
    model, lies on the store's device.
    """
    model.eval()
    num_nodes, device = store.num_nodes, store.device
    *inner, last = model.sage_convs
    states: Tensor | None = None  # (num_nodes, hidden); None: the features

    def rows_of(ids: Tensor) -> Tensor:
        return model.normalize(store.read("x", ids)) if states is None else states[ids.to(device)]

    with progress("test", (2 * len(inner) + 1) * num_nodes + len(nodes)) as bar:
        for conv in inner:
            given = torch.empty(num_nodes, conv.out_dim, device=device)
            kept = torch.empty_like(given) if states is None else states  # overwritten block by block
            for ids in _all_blocks(num_nodes, bar):
                rows, at = rows_of(ids), ids.to(device)
                given[at], kept[at] = conv.give(rows), conv.keep(rows)
            for ids in _all_blocks(num_nodes, bar):
                at = ids.to(device)
                kept[at] = (kept[at] + _mean_of(given, graph, ids)).relu_()
            states = kept
        given = torch.empty(num_nodes, last.out_dim, device=device)
        for ids in _all_blocks(num_nodes, bar):
            given[ids.to(device)] = last.give(rows_of(ids))
        scores = [last.keep(rows_of(ids)) + _mean_of(given, graph, ids) for ids in _blocks(nodes, bar)]
    return torch.cat(scores)


def _blocks(ids: Tensor, bar: Any) -> Iterator[Tensor]:
    for block in torch.split(ids, BLOCK_ROWS):
        yield block
        bar.update(len(block))


def _all_blocks(num_nodes: int, bar: Any) -> Iterator[Tensor]:
    for first in range(0, num_nodes, BLOCK_ROWS):
        block = torch.arange(first, min(first + BLOCK_ROWS, num_nodes))
        yield block
        bar.update(len(block))


def _mean_of(given: Tensor, graph: Graph, ids: Tensor) -> Tensor:
    """(len(ids), dim): the mean of `given` over the in-neighbors of each node."""
    nodes = ids.numpy()
    starts = graph.indptr[nodes]
    degrees = graph.indptr[nodes + 1] - starts
    indptr: NDArray[np.int64] = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    indices = graph.indices[np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], degrees)]
    if has_kernels(given):
        out = torch.empty(len(nodes), given.shape[1])
        ops.neighbor_mean(given, indptr, indices, out)
        return out
    there = [torch.from_numpy(array).to(given.device) for array in (indptr, indices)]
    return neighbor_mean(given, there[0], there[1].long())
