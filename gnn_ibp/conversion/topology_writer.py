"""Writes the topology of a data set: sorted, or taken as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gnn_ibp.conversion.dataset_parts import DatasetParts
from gnn_ibp.edges.csc_output import CscPaths
from gnn_ibp.edges.edge_sort import write_csc
from gnn_ibp.edges.edge_sort_plan import EdgeSortPlan
from gnn_ibp.edges.edge_stream import as_edge_stream
from gnn_ibp.edges.run_files import remove_runs
from gnn_ibp.graph import Graph
from gnn_ibp.journal import Journal
from gnn_ibp.npy import read_npy, write_npy, write_npy_blocks
from gnn_ibp.stages import Stages

Ids = NDArray[np.int64]

STAGE = "topology"
_BLOCK_EDGES = 1 << 20
_NO_EDGES = np.empty((2, 0), np.int64)


class Topology(NamedTuple):
    """perm: memory-mapped, where each edge stood in `DatasetParts.edge_index`; None for "where it stands"."""

    num_edges: int
    perm: Ids | None


class TopologyWriter:
    """Writes indptr.npy, indices.npy and, for edges with attributes, edge_perm.npy into `folder`."""

    def __init__(
        self, parts: DatasetParts, folder: Path, work: Path, journal: Journal, stages: Stages
    ) -> None:
        self._parts, self._stages = parts, stages
        self._paths = CscPaths(folder / "indptr.npy", folder / "indices.npy", self._perm_path(folder, work))
        self._edge_perm = folder / "edge_perm.npy"
        self._work, self._journal = work, journal

    def write(self, plan: EdgeSortPlan) -> Topology:
        """Writes what the journal does not tell is there. plan: how edges are sorted that are not.

        Raises IndexError naming the first edge with an end that does not exist.
        """
        state = self._journal.get(STAGE)
        if state is None:
            num_edges = self._write(plan)
            self._write_edge_perm(num_edges)
            self._journal.put(STAGE, num_edges=num_edges)
        else:
            num_edges = state["num_edges"]
        remove_runs(self._work)
        return Topology(num_edges, self._perm())

    def _perm_path(self, folder: Path, work: Path) -> Path | None:
        """Where the permutation goes: it is edge_perm.npy itself where the source had none of its own."""
        parts = self._parts
        if parts.graph is not None or not (parts.edge_features or parts.edge_arrays):
            return None
        return folder / "edge_perm.npy" if parts.edge_perm is None else work / "perm.npy"

    def _write(self, plan: EdgeSortPlan) -> int:
        if self._parts.graph is not None:
            return self._copy(self._parts.graph)
        edges = as_edge_stream(_NO_EDGES if self._parts.edge_index is None else self._parts.edge_index)
        return write_csc(edges, plan, self._paths, self._work, self._journal, self._stages)

    def _copy(self, graph: Graph) -> int:
        with self._stages.measure("copy edges") as stage:
            write_npy(self._paths.indptr, graph.indptr)
            write_npy(self._paths.indices, graph.indices)
            stage.num_bytes, stage.num_edges = self._paths.indices.stat().st_size, graph.num_edges
        return graph.num_edges

    def _write_edge_perm(self, num_edges: int) -> None:
        parts = self._parts
        if not (parts.edge_features or parts.edge_arrays) or self._paths.perm == self._edge_perm:
            return
        original = parts.edge_perm
        dtype = np.dtype(np.int64) if original is None else original.dtype
        write_npy_blocks(self._edge_perm, dtype, (num_edges,), self._edge_perm_blocks(num_edges))

    def _edge_perm_blocks(self, num_edges: int) -> Iterator[NDArray[Any]]:
        original, perm = self._parts.edge_perm, self._perm()
        for first in range(0, num_edges, _BLOCK_EDGES):
            last = min(first + _BLOCK_EDGES, num_edges)
            at = np.arange(first, last) if perm is None else perm[first:last]
            yield at if original is None else original[at]

    def _perm(self) -> Ids | None:
        if self._paths.perm is None:
            return None
        perm: Ids = read_npy(self._paths.perm, (np.int64,), mmap=True)
        return perm


def permuted_blocks(array: NDArray[Any], perm: Ids | None) -> Iterator[NDArray[Any]]:
    """The rows of `array` in the order of `perm`, None for their own, some at a time."""
    step = max(1, (8 << 20) // max(1, array[:1].nbytes))
    for first in range(0, len(array) if perm is None else len(perm), step):
        part = slice(first, first + step)
        yield array[part] if perm is None else array[perm[part]]
