"""Edges on their way into a data set: read block by block, in order, from any edge on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

Ends = NDArray[np.signedinteger[Any]]
"""Node ids (n,), int32 or int64, one for each edge of a block."""

BLOCK_EDGES = 1 << 20


@runtime_checkable
class EdgeStream(Protocol):
    """Edges in the order of their source. Edge i leads from its node `src` to its node `dst`.

    num_edges: known before anything is read. dtype: of the ends, int32 or int64.
    """

    @property
    def num_edges(self) -> int: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def blocks(self, first: int = 0) -> Iterator[tuple[Ends, Ends]]:
        """(src, dst) of the edges from number `first` to the last, about `BLOCK_EDGES` at a time.

        Both are contiguous (n,) of `dtype`. May be called again, and again from the start.
        """


@dataclass(frozen=True)
class ArrayEdges:
    """Edges whose ends lie in two arrays (E,) of one dtype, in memory or memory-mapped."""

    src: Ends
    dst: Ends

    @property
    def num_edges(self) -> int:
        return len(self.src)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.src.dtype

    def blocks(self, first: int = 0) -> Iterator[tuple[Ends, Ends]]:
        for at in range(first, self.num_edges, BLOCK_EDGES):
            part = slice(at, at + BLOCK_EDGES)
            yield np.ascontiguousarray(self.src[part]), np.ascontiguousarray(self.dst[part])


def as_edge_stream(edge_index: Any) -> EdgeStream:
    """The stream of a (2, E) array or a pair of (E,), NumPy or torch; streams as they are.

    TypeError for other ends than native int32 and int64, ValueError for other shapes.
    """
    if isinstance(edge_index, EdgeStream):
        return edge_index
    src, dst = (_ends(ends) for ends in both_ends(edge_index))
    if len(src) != len(dst):
        raise ValueError(f"edge_index has {len(src)} sources and {len(dst)} destinations")
    if src.dtype != dst.dtype:
        src, dst = src.astype(np.int64), dst.astype(np.int64)
    return ArrayEdges(src, dst)


def both_ends(edge_index: Any) -> tuple[Any, Any]:
    """Sources and destinations of what is no stream, as they are. ValueError for other shapes."""
    if hasattr(edge_index, "shape") and (len(edge_index.shape) != 2 or edge_index.shape[0] != 2):
        raise ValueError(f"edge_index has shape {tuple(edge_index.shape)}, wanted is (2, num_edges)")
    if len(edge_index) != 2:
        raise ValueError(f"edge_index has {len(edge_index)} parts, wanted are sources and destinations")
    return edge_index[0], edge_index[1]


def check_block(edges: EdgeStream, at: int, src: Ends, dst: Ends) -> None:
    """RuntimeError where the block that begins with edge `at` is not what `edges` announced."""
    if len(src) != len(dst) or src.dtype != edges.dtype or dst.dtype != edges.dtype:
        raise RuntimeError(
            f"a block of edges has sources {src.dtype} {src.shape} and destinations {dst.dtype} {dst.shape}, "
            f"announced were {edges.dtype}"
        )
    if at + len(src) > edges.num_edges:
        raise RuntimeError(f"more edges come than the {edges.num_edges} that were announced")


def check_end(edges: EdgeStream, num_seen: int) -> None:
    """RuntimeError where the edges ended before their announced number."""
    if num_seen != edges.num_edges:
        raise RuntimeError(f"{num_seen} edges came, {edges.num_edges} were announced")


def _ends(ends: ArrayLike | torch.Tensor) -> Ends:
    array = ends.detach().cpu().numpy() if isinstance(ends, torch.Tensor) else np.asarray(ends)
    if array.size == 0 and array.dtype.kind == "f":  # what an empty list becomes
        array = array.astype(np.int64)
    if array.dtype not in (np.int32, np.int64) or not array.dtype.isnative:
        raise TypeError(f"edge_index holds {array.dtype.str} values, wanted are native int32 or int64")
    if array.ndim != 1:
        raise ValueError(f"edge_index holds ends of shape {array.shape}, wanted is (num_edges,)")
    return array
