"""A minibatch: a sampled neighbourhood with the features and labels of its nodes."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn_ibp.sample import Layer, Sample


@dataclass(frozen=True)
class MiniBatch:
    """What `Loader` yields; all tensors are on the store's device.

    x:      (num_nodes, *row_shape), row i belongs to node `n_id[i]`; None where the data set has no `x`.
    labels: int64 (num_nodes,), -1 = no label; None where the data set has no labels.
    sample: the neighbourhood, seeds first.
    """

    x: Tensor | None
    labels: Tensor | None
    sample: Sample

    @property
    def n_id(self) -> Tensor:
        """int64 (num_nodes,): the graph's ids of the nodes, seeds first."""
        return self.sample.node_ids

    @property
    def e_id(self) -> Tensor:
        """int64 (num_edges,): the positions of the edges in the graph's `indices`."""
        return self.sample.e_id

    @property
    def batch_size(self) -> int:
        """How many seeds there are."""
        return self.sample.num_seeds

    @property
    def y(self) -> Tensor | None:
        """int64 (batch_size,): the labels of the seeds."""
        return None if self.labels is None else self.labels[: self.batch_size]

    @property
    def tensors(self) -> list[Tensor]:
        """All there are."""
        sample = self.sample
        given = [self.x, self.labels, sample.node_ids, sample.indptr, sample.indices, sample.e_id]
        return [tensor for tensor in given if tensor is not None]

    @property
    def layers(self) -> list[Layer]:
        """Bipartite layers, the one that reads all nodes first."""
        return self.sample.layers

    def to_data(self) -> Data:
        """The same as a PyG `Data`, as `torch_geometric.loader.NodeLoader` yields it: for any PyG model.

        `y` holds the labels of all nodes there; use `y[:batch_size]`.
        """
        sample = self.sample
        num_dst = sample.indptr.numel() - 1
        dst = torch.repeat_interleave(
            torch.arange(num_dst, device=sample.indptr.device),
            sample.indptr.diff(),
            output_size=sample.indices.numel(),  # known here: a device need not be waited for
        )
        data = Data(edge_index=torch.stack([sample.indices, dst]), n_id=self.n_id, e_id=self.e_id)
        data.num_nodes = self.n_id.numel()
        if self.x is not None:
            data.x = self.x
        if self.labels is not None:
            data.y = self.labels
        data.batch_size = self.batch_size
        data.num_sampled_nodes = sample.num_sampled_nodes
        data.num_sampled_edges = sample.num_sampled_edges
        return data
