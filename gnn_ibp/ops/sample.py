"""The sampling kernel, and the keys that its draws come from."""

import numpy as np
import torch
from numpy.typing import NDArray

from gnn_ibp import _kernels
from gnn_ibp.errors import FormatError
from gnn_ibp.sample import Sample, SampleShape

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


def sample_neighbors(
    indptr: Ids,
    indices: Indices,
    seeds: Ids,
    fanouts: list[int],
    replace: bool,
    key: int,
    by_node: bool = False,
) -> Sample:
    """Draws the neighbourhood of `seeds`, which have been checked, on the calling thread.

    by_node: reads `indices` ascending from node to node in each hop, for a file; it changes nothing else.
    Raises FormatError where what is read of `indptr` or `indices` is damaged, MemoryError for a sample that
    does not fit.
    """
    try:
        *arrays, num_nodes, num_edges = _kernels.sample_neighbors(
            indptr, indices, seeds, fanouts, replace, key, by_node
        )
    except ValueError as error:
        raise FormatError(f"the graph's {error}; convert the dataset again") from error
    except (MemoryError, OverflowError) as error:
        raise MemoryError(
            f"the neighbourhood of {len(seeds)} seeds with num_neighbors {fanouts} does not fit into memory; "
            "take smaller batches or fewer neighbours"
        ) from error
    node_ids, starts, local, edge_ids = (torch.from_numpy(array) for array in arrays)
    return Sample(node_ids, starts, local, edge_ids, num_nodes, num_edges)


def sampling_bytes(shape: SampleShape) -> int:
    """What a thread keeps to draw samples of this shape: lists that grow by half, and a table of ids.

    The room for new nodes is that for as many as there are edges; of the table an eighth is used, at least.
    """
    last_hop = max(shape.edges_per_hop, default=0)
    lists = 8 * (shape.num_nodes + last_hop) + 8 * shape.num_dst + 16 * shape.num_edges
    per_hop = (16 + 8) * max(shape.nodes_per_hop[:-1], default=0)
    return 3 * (lists + per_hop) // 2 + 64 * shape.num_nodes


def mix(key: int, *values: int) -> int:
    """A 64-bit key made of `key` and `values`, all between 0 and 2^64 - 1, in this order."""
    for value in values:
        key = _kernels.mix(key, value)
    return key


def hash_ids(ids: Ids) -> int:
    """A 64-bit number made of `ids` in their order."""
    return _kernels.mix_all(len(ids), ids)
