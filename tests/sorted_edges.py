"""What sorting edges by their destinations must give, in NumPy."""

import numpy as np

from gnn_ibp.edges.edge_stream import ArrayEdges


def sorted_edges(edges: ArrayEdges, num_nodes: int, undirected: bool, dedup: bool) -> dict[str, np.ndarray]:
    """indptr, indices and perm: by destination, source, and rank, reverse edges behind all given ones."""
    src, dst, position = edges.src, edges.dst, np.arange(edges.num_edges)
    if undirected:
        src, dst, position = np.r_[src, dst], np.r_[dst, src], np.r_[position, position]
    order = np.lexsort((src, dst))  # stable
    src, dst, position = src[order], dst[order], position[order]
    if dedup and len(src):
        first = np.r_[True, (src[1:] != src[:-1]) | (dst[1:] != dst[:-1])]
        src, dst, position = src[first], dst[first], position[first]
    indptr = np.r_[0, np.cumsum(np.bincount(dst, minlength=num_nodes))]
    return {"indptr": indptr, "indices": src.astype(np.int32), "perm": position}
