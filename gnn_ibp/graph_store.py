"""GraphStore: PyG's face of a graph's topology."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr
from torch_geometric.data import GraphStore as PyGGraphStore
from torch_geometric.data.graph_store import EdgeLayout

from gnn_ibp.graph import Graph, build_csc, graph_of


class GraphStore(PyGGraphStore):  # type: ignore[misc]
    """A `torch_geometric.data.GraphStore` over the CSC of a graph without types (`edge_type` is None).

    source: a `Dataset` (anything with a `graph`) or a `Graph`.

    It is read only. A pickled store carries a path where the graph came from a folder (see `Graph`). With a
    sampler of ours PyG never asks it for edges; one of PyG's gets them all in memory, as int64.
    """

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_source": self.graph}

    def __repr__(self) -> str:
        return f"GraphStore({self.graph!r})"

    @property
    def graph(self) -> Graph:
        return graph_of(self._source)

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_edges(self) -> int:
        return self.graph.num_edges

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """The one edge type there is, in the layout that it is stored in."""
        size = (self.num_nodes, self.num_nodes)
        return [EdgeAttr(edge_type=None, layout=EdgeLayout.CSC, size=size)]

    def _get_edge_index(self, edge_attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        """int64 (row, col) as PyG lays them out: one of them is the pointer in CSC and CSR."""
        if edge_attr.edge_type is not None:
            return None
        return LAYOUTS[edge_attr.layout](self.graph)

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise TypeError("the store is read-only: make a data set of the edges (Dataset.from_arrays)")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise TypeError("the store is read-only: make a data set of the edges (Dataset.from_arrays)")


def _int64(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.int64))  # a copy: users may write, a mapping must not be


def _csc(graph: Graph) -> tuple[Tensor, Tensor]:
    return _int64(graph.indices), _int64(graph.indptr)


def _coo(graph: Graph) -> tuple[Tensor, Tensor]:
    return _int64(graph.indices), torch.repeat_interleave(_int64(graph.in_degree()))


def _csr(graph: Graph) -> tuple[Tensor, Tensor]:
    src, dst = _coo(graph)
    reverse = build_csc((dst, src), graph.num_nodes).graph
    return _int64(reverse.indptr), _int64(reverse.indices)


LAYOUTS = {EdgeLayout.CSC: _csc, EdgeLayout.COO: _coo, EdgeLayout.CSR: _csr}
