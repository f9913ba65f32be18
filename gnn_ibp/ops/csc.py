"""Topology kernels: edges to CSC, checks, degrees."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import _kernels

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


class CscArrays(NamedTuple):
    """indptr: int64 (num_nodes + 1,); indices: int32 or int64 (num_edges,); perm: int64 (num_edges,)."""

    indptr: Ids
    indices: Indices
    perm: Ids


def build_csc(
    src: NDArray[Any], dst: NDArray[Any], num_nodes: int, undirected: bool, dedup: bool
) -> CscArrays:
    """Edges sorted by destination, source and position; `src`, `dst`: int32 or int64, the same, contiguous.

    Raises IndexError naming the first edge that leaves [0, num_nodes).
    """
    bad = _kernels.first_bad_edge(src, dst, num_nodes)
    if bad >= 0:
        raise bad_edge(bad, src[bad], dst[bad], num_nodes)
    return CscArrays(*_kernels.build_csc(src, dst, num_nodes, undirected, dedup))


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
