"""Hot sets: which rows are worth caching, hottest first."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gnn_ibp.progress import progress
from gnn_ibp.rows import AnyIds, Ids
from gnn_ibp.sample import Sample

Heat = NDArray[np.int32]

_HALF = (1 << 30) - 1
_STEP = 1 << 20


class Topology(Protocol):
    """What a hot set needs of a graph in CSC."""

    def out_degree(self) -> Ids:
        """int64 (num_nodes,): how often each node occurs in `indices`."""


class Sampler(Protocol):
    """What presampling needs of a sampler."""

    def sample(self, seeds: torch.Tensor, *, epoch: int = 0, batch: int = 0) -> Sample:
        """The neighborhood of `seeds`, int64 (n,), as the run itself draws it in this minibatch."""


def degree_hot_set(graph: Topology) -> AnyIds:
    """All nodes (num_nodes,), those with most out-edges first; ties by id. int32 where ids fit.

    The out-degree is how often a node occurs in `indices`: how often it can be sampled.
    """
    degrees = graph.out_degree()
    return hottest_first(np.minimum(degrees, np.iinfo(np.int32).max).astype(np.int32))


def presample(
    sampler: Sampler,
    seeds: ArrayLike | torch.Tensor,
    batch_size: int = 1024,
    num_epochs: int = 1,
    max_batches: int | None = None,
) -> Ids:
    """The nodes that `sampler` visits from `seeds`, most often visited first; ties by id. int64.

    Runs `num_epochs` epochs of shuffled batches, the same ones every time, of each at most `max_batches`. A
    node counts once per row that is looked up for it. Nodes never visited are not among the result:
    `RowCache.fill` takes `np.concatenate([presample(…), degree_hot_set(graph)])` where more fits.
    Raises ValueError for batch size, epochs or batches below 1, and what the sampler raises.
    """
    visits = count_visits(sampler, seeds, batch_size, num_epochs, max_batches)
    return hottest_first(visits)[: np.count_nonzero(visits)].astype(np.int64)


def count_visits(
    sampler: Sampler,
    seeds: ArrayLike | torch.Tensor,
    batch_size: int = 1024,
    num_epochs: int = 1,
    max_batches: int | None = None,
    num_nodes: int = 0,
) -> Heat:
    """int32: how often `presample` finds that `sampler` visits each node.

    num_nodes: entries of the result, which has more where higher nodes are visited.
    """
    numbers = {"batch_size": batch_size, "num_epochs": num_epochs, "max_batches": max_batches}
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise ValueError(f"{name} is {number}, it must be at least 1")
    seed_ids = np.asarray(seeds)
    counts = np.zeros(num_nodes, np.int32)
    num_batches = -(-len(seed_ids) // batch_size)
    num_batches = min(num_batches, max_batches or num_batches)
    with progress("presampling", num_batches * num_epochs, "batch") as bar:
        for epoch in range(num_epochs):
            order = np.random.default_rng(epoch).permutation(len(seed_ids))
            for batch in range(num_batches):
                some = torch.from_numpy(seed_ids[order[batch * batch_size : (batch + 1) * batch_size]])
                ids = sampler.sample(some, epoch=epoch, batch=batch).node_ids.numpy()
                if len(ids) and ids.max() >= len(counts):
                    counts.resize(max(int(ids.max()) + 1, 2 * len(counts)), refcheck=False)
                np.add.at(counts, ids, 1)
                bar.update()
    return counts


def visited_then_degree(visits: Heat, graph: Topology) -> AnyIds:
    """All nodes: those that were visited first, most often visited first, then the others by out-degree.

    visits: int32 (num_nodes,), it is overwritten.
    """
    degrees = graph.out_degree()
    top = np.int32(min(int(degrees.max(initial=0)), _HALF))
    for first in range(0, len(visits), _STEP):
        some = slice(first, first + _STEP)
        unvisited = np.minimum(degrees[some], top).astype(np.int32)
        visits[some] = np.where(visits[some] > 0, np.minimum(visits[some], _HALF) + top, unvisited)
    del degrees
    return hottest_first(visits)


def choosing_bytes(num_nodes: int) -> int:
    """What `visited_then_degree` takes: degrees and heat, or heat and two lists of nodes; and for a block."""
    id_bytes = 4 if num_nodes <= 1 << 31 else 8
    return num_nodes * max(12, 4 + 2 * id_bytes) + 80 * min(num_nodes, _STEP)


def hottest_first(heat: Heat) -> AnyIds:
    """The positions in `heat`, int32 (n,) without negative values, the highest first; ties by position.

    A stable radix sort, 16 bits at a time, block by block: int32 ids where they fit, in little memory.
    """
    dtype: type[np.signedinteger[Any]] = np.int32 if len(heat) <= 1 << 31 else np.int64
    top = heat.max(initial=0)
    ids: AnyIds | None = None
    for shift in (0, 16) if top >> 16 else (0,):
        out: AnyIds = np.empty(len(heat), dtype)
        ids = _pass(heat, top, shift, ids, out)
    assert ids is not None, "there is a first pass"
    return ids


def _pass(heat: Heat, top: np.int32, shift: int, ids: AnyIds | None, out: AnyIds) -> AnyIds:
    """`out`: `ids` (None: 0, 1, …) sorted by 16 bits of how far they are below `top`, stably."""
    starts = np.zeros((1 << 16) + 1, np.int64)
    for _, digits in _digits(heat, top, shift, ids):
        starts[1:] += np.bincount(digits, minlength=1 << 16)
    np.cumsum(starts, out=starts)
    for some, digits in _digits(heat, top, shift, ids):
        order = np.argsort(digits, kind="stable")
        counts = np.bincount(digits, minlength=1 << 16)
        firsts = starts[:-1] - (np.cumsum(counts) - counts)
        out[firsts[digits[order]] + np.arange(len(order))] = some[order]
        starts[:-1] += counts
    return out


def _digits(
    heat: Heat, top: np.int32, shift: int, ids: AnyIds | None
) -> Iterator[tuple[AnyIds, NDArray[np.uint16]]]:
    """Block by block the ids and the 16 bits that they are sorted by."""
    for first in range(0, len(heat), _STEP):
        last = min(first + _STEP, len(heat))
        some = np.arange(first, last) if ids is None else ids[first:last]
        yield some, (top - heat[some] >> shift & 0xFFFF).astype(np.uint16)
