"""Topology kernels: checks, degrees."""

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


def bad_edge(position: int, src: object, dst: object, num_nodes: int) -> IndexError:
    """The error about an edge with an end that does not exist."""
    return IndexError(
        f"edge_index names a node that does not exist: edge {position} is ({src}, {dst}), "
        f"the {num_nodes} nodes have ids from 0 to {num_nodes - 1}"
    )


def first_bad_node(indptr: Ids, indices: Indices) -> int | None:
    """The first node whose range in `indptr` is none, or whose `indices` leave [0, num_nodes)."""
    bad = _kernels.first_bad_node(indptr, indices)
    return bad if bad >= 0 else None


def count_ids(ids: Indices, num_ids: int) -> Ids:
    """int64 (num_ids,): how often each of 0, …, num_ids - 1 occurs in `ids`; IndexError at any other id."""
    counts = np.zeros(num_ids, np.int64)
    if not _kernels.count_ids(ids, counts):
        raise IndexError(f"ids hold one that is not between 0 and {num_ids - 1}")
    return counts
