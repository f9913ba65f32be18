"""NeighborSampler: draws the in-neighbourhood of seed nodes, for our loader and for PyG's."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample

from gnn_ibp import ops
from gnn_ibp.graph import Graph, graph_of
from gnn_ibp.sample import Sample
from gnn_ibp.samplers.negatives import keyed_negatives


class NeighborSampler(BaseSampler):  # type: ignore[misc]
    """Draws up to `num_neighbors[hop]` in-neighbours of every node found in the hop before, uniformly.

    graph:         a `GraphStore`, a `Dataset` (anything with a `graph`) or a `Graph`.
    num_neighbors: per hop, from the seeds outward; -1 draws all.
    replace:       draw with replacement; a node without neighbours still draws none.
    seed:          between 0 and 2^64 - 1.

    A node is expanded once a batch, in the hop after the one that found it. Repeated seeds stay where they
    are, and all draw the same neighbours. Where a node has no more neighbours than are asked for (without
    replacement), it gets all, in the graph's order.

    **What is drawn** depends on (seed, epoch, batch number) in `sample`, on (seed, epoch, the batch's seed
    ids) through PyG's loaders, on nothing else: not on the number of threads or worker processes. PyG's
    loaders do not count epochs: call `set_epoch(n)` before each one, or batches with the same seeds (every
    batch of a loader that does not shuffle) draw the same neighbours again. Workers that live on see it too.

    The draws, which will stay as they are (`samplers/reference.py` is the same in plain Python):

        mix(key, value)  output number value + 1 of SplitMix64 seeded with key
        batch key        mix(mix(mix(seed, epoch), batch number)), PyG: a hash of the seed ids for the number
        node key         mix(batch key, node id)
        draw k below n   high 64 bits of mix(node key, k) * n

    With replacement draw k gives the neighbour at that place. Without, it is Floyd's: draw k is below
    degree - fanout + k + 1, and a place taken before stands for the last possible one.

    Through PyG's loaders pass `filter_per_worker=False`, so that workers sample only and no feature crosses
    a process border. `batch.e_id` is the position of an edge in the graph's `indices`. Given a sampler,
    `NeighborLoader` and `LinkNeighborLoader` do nothing with their own num_neighbors, replace, subgraph_type,
    disjoint and weight_attr: what is drawn is told here. Types and times are refused with a ValueError.
    """

    def __init__(
        self, graph: Any, num_neighbors: Sequence[int], replace: bool = False, seed: int = 0
    ) -> None:
        super().__init__()
        self.graph: Graph = graph_of(graph)
        self.num_neighbors = [_fanout(hop, fanout) for hop, fanout in enumerate(num_neighbors)]
        self.replace = bool(replace)
        self.seed = _counter("seed", seed)
        # Shared memory: worker processes that live on through several epochs read it too.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:
        return f"NeighborSampler({self.num_neighbors}, replace={self.replace}, seed={self.seed})"

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def edge_permutation(self) -> None:
        """None: PyG's loaders report `e_id` as it is, the position in the graph's `indices`."""
        return None

    @property
    def epoch(self) -> int:
        """The epoch that batches drawn through PyG's loaders belong to."""
        return int(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Makes PyG's loaders draw anew; our own loader passes the epoch to `sample` by itself."""
        self._epoch[0] = _counter("epoch", epoch, bits=63)

    def sample(self, seeds: ArrayLike | Tensor, *, epoch: int = 0, batch: int = 0) -> Sample:
        """The neighbourhood of `seeds` in batch number `batch` of `epoch`; from many threads at once.

        seeds: int64 or int32 (batch_size,), NumPy, torch or a list; repeats are allowed.
        Raises IndexError naming the first seed that is no node, TypeError and ValueError as `ops.check_ids`.
        """
        ids = ops.check_ids(seeds, self.num_nodes)
        return self._draw(ids, _counter("epoch", epoch), _counter("batch", batch))

    def sample_from_nodes(self, inputs: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's face for node loaders."""
        _check_homogeneous(inputs)
        return node_sample(inputs, self._sample_for_pyg)

    def sample_from_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None
    ) -> SamplerOutput:
        """PyG's face for link loaders; negative edges follow from seed, epoch and the batch's edges, too."""
        _check_homogeneous(inputs)
        src, dst = (ops.check_ids(ends, self.num_nodes) for ends in (inputs.row, inputs.col))
        if neg_sampling is not None:
            key = ops.mix(self.seed, self.epoch, ops.hash_ids(src), ops.hash_ids(dst))
            neg_sampling = keyed_negatives(neg_sampling, key)
        return edge_sample(
            inputs, self._sample_for_pyg, self.num_nodes, disjoint=False, neg_sampling=neg_sampling
        )

    def _draw(self, ids: NDArray[np.int64], epoch: int, batch: int) -> Sample:
        key = ops.mix(self.seed, epoch, batch)
        return ops.sample_neighbors(
            self.graph.indptr,
            self.graph.indices,
            ids,
            self.num_neighbors,
            self.replace,
            key,
            by_node=self.graph.on_disk,
        )

    def _sample_for_pyg(self, seeds: Tensor, seed_time: Tensor | None) -> SamplerOutput:
        ids = ops.check_ids(seeds, self.num_nodes)
        sample = self._draw(ids, self.epoch, ops.hash_ids(ids))
        degrees = sample.indptr.diff()
        return SamplerOutput(
            node=sample.node_ids,
            row=sample.indices,
            col=torch.repeat_interleave(degrees, output_size=len(sample.indices)),
            edge=sample.e_id,
            batch=None,
            num_sampled_nodes=sample.num_sampled_nodes,
            num_sampled_edges=sample.num_sampled_edges,
        )


def _fanout(hop: int, fanout: Any) -> int:
    count = _integer(f"num_neighbors[{hop}]", fanout)
    if not -1 <= count < 2**63:
        raise ValueError(f"num_neighbors[{hop}] is {count}, wanted is a count, or -1 for all neighbours")
    return count


def _counter(name: str, value: Any, bits: int = 64) -> int:
    number = _integer(name, value)
    if not 0 <= number < 2**bits:
        raise ValueError(f"{name} is {number}, it must lie between 0 and 2^{bits} - 1")
    return number


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}, wanted is an int")
    return index(value)


def _check_homogeneous(inputs: NodeSamplerInput | EdgeSamplerInput) -> None:
    if inputs.input_type is not None:
        raise ValueError(f"the input type is {inputs.input_type!r}, this graph has no types: wanted is None")
    if inputs.time is not None:
        raise ValueError("the input has times, this sampler does not sample by time: wanted is None")
