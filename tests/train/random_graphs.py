"""Random graphs for the tests of the model, made with NumPy only."""

import numpy as np
import torch
from torch import Tensor

from gnn_ibp.sample import Layer


def random_graph(num_nodes: int, num_edges: int, seed: int) -> tuple[Tensor, Tensor]:
    """indptr, indices of a CSC in which some nodes have no in-neighbors."""
    rng = np.random.default_rng(seed)
    dst = np.sort(rng.integers(0, max(1, num_nodes - 3), num_edges))
    indptr = np.searchsorted(dst, np.arange(num_nodes + 1))
    return torch.from_numpy(indptr), torch.from_numpy(rng.integers(0, num_nodes, num_edges))


def full_layers(indptr: Tensor, indices: Tensor, num_layers: int) -> list[Layer]:
    """The whole graph as every layer."""
    num_nodes = len(indptr) - 1
    return [Layer(indptr, indices, num_nodes, num_nodes)] * num_layers


def edge_index(indptr: Tensor, indices: Tensor) -> Tensor:
    """PyG's [2, num_edges], sources first."""
    return torch.stack([indices, torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())])
