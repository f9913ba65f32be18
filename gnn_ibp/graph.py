"""The topology of a graph: for every node the nodes that its edges come from (CSC)."""

from collections.abc import Callable
from functools import cached_property
from mmap import MADV_RANDOM, MADV_SEQUENTIAL
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp import ops
from gnn_ibp.edges.edge_sort import build_arrays
from gnn_ibp.edges.edge_sort_plan import UNBOUNDED, EdgeSortPlan
from gnn_ibp.edges.edge_stream import as_edge_stream
from gnn_ibp.errors import FormatError
from gnn_ibp.npy import read_npy

Ids = NDArray[np.int64]
Indices = NDArray[np.int32] | NDArray[np.int64]


class Graph:
    """Directed edges, sorted by destination: the in-neighbours of v are `indices[indptr[v]:indptr[v + 1]]`.

    indptr:  int64 (num_nodes + 1,).
    indices: int32 or int64 (num_edges,). The position of an edge in here is its `e_id`.

    Both are NumPy arrays, in memory or memory-mapped. A graph that was opened from a folder is pickled as the
    folder's path and memory-mapped where it is unpickled, so that worker processes share one copy; any other
    graph is pickled with its arrays.

    Raises TypeError or ValueError where the arrays have another dtype or shape, or `indptr` does not begin
    with 0 and end with num_edges. `check()` looks at everything between.
    """

    def __init__(self, indptr: Ids, indices: Indices, folder: Path | None = None) -> None:
        _check_array("indptr", indptr, (np.int64,))
        _check_array("indices", indices, (np.int32, np.int64))
        if len(indptr) == 0:
            raise ValueError("indptr is empty, a graph without nodes has the indptr [0]")
        if indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError(
                f"indptr goes from {indptr[0]} to {indptr[-1]}, with {len(indices)} indices it must go "
                f"from 0 to {len(indices)}"
            )
        self.indptr = indptr
        self.indices = indices
        self.folder = folder

    @classmethod
    def open(cls, folder: Path | str, mmap: bool = False) -> "Graph":
        """The graph in `folder`: `indptr.npy`, `indices.npy` and, where edges have features, `edge_perm.npy`.

        In memory it is checked whole. With `mmap` only the ends are (a look at every page would defeat the
        mapping): the sampler checks what it reads, `check()` checks all.

        Raises FormatError naming the file and what is wrong with it.
        """
        folder = Path(folder)
        indptr = read_npy(folder / "indptr.npy", (np.int64,), mmap=mmap)
        indices = read_npy(folder / "indices.npy", (np.int32, np.int64), mmap=mmap)
        try:
            graph = cls(indptr, indices, folder.resolve())
        except ValueError as error:
            raise FormatError(f"{folder / 'indptr.npy'} is damaged: {error}") from error
        if not mmap:
            graph.check()
        return graph

    @classmethod
    def open_mapped(cls, folder: Path | str) -> "Graph":
        """The graph in `folder` with `indptr` in memory and `indices` memory-mapped, for reads at random.

        For a graph whose edges do not fit into memory. Checked as `open` does with `mmap`.
        """
        mapped = cls.open(folder, mmap=True)
        indptr = read_npy(Path(folder) / "indptr.npy", (np.int64,))
        graph = cls(indptr, mapped.indices, mapped.folder)
        graph._expect(MADV_RANDOM)
        return graph

    def _expect(self, advice: int) -> None:
        if self.on_disk:
            self.indices._mmap.madvise(advice)  # type: ignore[union-attr]

    def __reduce__(self) -> tuple[Callable[..., "Graph"], tuple[Any, ...]]:
        if self.folder is not None:
            return Graph.open, (self.folder, True)
        return Graph, (self.indptr, self.indices)

    def __repr__(self) -> str:
        place = f", folder='{self.folder}'" if self.folder else ""
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}{place})"

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.indices)

    @property
    def on_disk(self) -> bool:
        """Whether `indices` are memory-mapped."""
        return getattr(self.indices, "_mmap", None) is not None  # a copy is a np.memmap too, without a file

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays, wherever they lie."""
        return self.indptr.nbytes + self.indices.nbytes

    @cached_property
    def edge_perm(self) -> Ids | None:
        """int64 (num_edges,), memory-mapped: where each edge stood in the source, if that was kept.

        An edge that was added as the reverse of another has the position of that one.
        """
        path = self.folder / "edge_perm.npy" if self.folder else None
        if path is None or not path.exists():
            return None
        perm = read_npy(path, (np.int64,), mmap=True)
        if len(perm) != self.num_edges:
            raise FormatError(f"{path} has {len(perm)} entries, the graph has {self.num_edges} edges")
        return perm

    def check(self) -> None:
        """Reads everything; FormatError names the first node whose edges are damaged."""
        bad = ops.first_bad_node(self.indptr, self.indices)
        if bad is not None:
            place = f"{self.folder}: " if self.folder else ""
            raise FormatError(
                f"{place}the edges of node {bad} are damaged: indptr[{bad}:{bad + 2}] is "
                f"{self.indptr[bad : bad + 2].tolist()}, indices must lie between 0 and {self.num_nodes - 1}"
            )

    def in_degree(self) -> Ids:
        """int64 (num_nodes,): how many edges end at each node."""
        return np.diff(self.indptr)

    def out_degree(self) -> Ids:
        """int64 (num_nodes,): how often each node occurs in `indices`: how often it can be sampled.

        Raises FormatError as `check` where `indices` name nodes that do not exist.
        """
        self._expect(MADV_SEQUENTIAL)
        try:
            return ops.count_ids(self.indices, self.num_nodes)
        except IndexError:
            self.check()  # tells which node's edges are damaged
            raise
        finally:
            self._expect(MADV_RANDOM)


def graph_of(source: Any) -> Graph:
    """`source` itself, or that of a `Dataset`, a `GraphStore`, of whatever has one. TypeError for others."""
    graph = source if isinstance(source, Graph) else getattr(source, "graph", None)
    if not isinstance(graph, Graph):
        raise TypeError(f"a {type(source).__name__} has no graph; give a Dataset, a GraphStore or a Graph")
    return graph


class BuiltGraph(NamedTuple):
    """perm: int64 (num_edges,), where each edge of `graph` stood in the edges it was built from."""

    graph: Graph
    perm: Ids


def build_csc(edge_index: Any, num_nodes: int, undirected: bool = False, dedup: bool = False) -> BuiltGraph:
    """Sorts edges by destination, and by source within one destination.

    edge_index: (2, E) or a pair of (E,): sources, destinations; NumPy or torch, int32 or int64, in memory or
        memory-mapped; or an `EdgeStream`, which is read into memory.
    undirected: adds the reverse of every edge and removes duplicates. A reverse edge has the `perm` of the
        edge it reverses.
    dedup: keeps one of several edges with the same ends, the first; a given one before a reverse one.

    Self-loops are kept. Without `dedup` parallel edges are kept too, in the order given. Memory: 14 bytes for
    each edge in each direction beside the result (twice as many above 2^32 nodes or 2^31 edges).

    Raises IndexError naming the first edge with an end outside [0, num_nodes), TypeError and ValueError for
    another dtype or shape.
    """
    if num_nodes < 0:
        raise ValueError(f"num_nodes is {num_nodes}, it must not be negative")
    edges = as_edge_stream(edge_index)
    plan = EdgeSortPlan(num_nodes, edges.num_edges, undirected, dedup or undirected, True, UNBOUNDED)
    arrays = build_arrays(edges, plan)
    return BuiltGraph(Graph(arrays.indptr, arrays.indices), arrays.perm)


def _check_array(name: str, array: NDArray[Any], dtypes: tuple[type, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype not in dtypes or not array.dtype.isnative:
        got = array.dtype.str if isinstance(array, np.ndarray) else type(array).__name__
        wanted = " or ".join(dtype.__name__ for dtype in dtypes)
        raise TypeError(f"{name} is {got}, wanted is a NumPy array of native {wanted}")
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError(f"{name} has shape {array.shape}, wanted are one dimension and contiguous values")
