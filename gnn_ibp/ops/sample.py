"""The sampling kernel, and the keys that its draws come from."""

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp.errors import FormatError
from gnn_ibp.sample import Sample

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


def sample_neighbors(
    indptr: Ids, indices: Indices, seeds: Ids, fanouts: list[int], replace: bool, key: int
) -> Sample:
    """Draws the neighbourhood of `seeds`, which have been checked, on the calling thread.

    Raises FormatError where what is read of `indptr` or `indices` is damaged.
    """
    try:
        *arrays, num_nodes, num_edges = _kernels.sample_neighbors(
            indptr, indices, seeds, fanouts, replace, key
        )
    except ValueError as error:
        raise FormatError(f"the graph's {error}; convert the dataset again") from error
    node_ids, starts, local, edge_ids = (torch.from_numpy(array) for array in arrays)
    return Sample(node_ids, starts, local, edge_ids, num_nodes, num_edges)


def mix(key: int, *values: int) -> int:
    """A 64-bit key made of `key` and `values`, all between 0 and 2^64 - 1, in this order."""
    for value in values:
        key = _kernels.mix(key, value)
    return key


def hash_ids(ids: Ids) -> int:
    """A 64-bit number made of `ids` in their order."""
    return _kernels.mix_all(len(ids), ids)
