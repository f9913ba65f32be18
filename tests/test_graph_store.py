"""PyG's contract of a graph store, kept by ours."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import EdgeAttr
from torch_geometric.data.graph_store import EdgeLayout

from gnn_ibp.graph import Graph, build_csc
from gnn_ibp.graph_store import GraphStore

EDGES = np.random.default_rng(0).integers(0, 30, (2, 200))


def make_store() -> GraphStore:
    return GraphStore(build_csc(EDGES, 30).graph)


def sorted_edges(row: torch.Tensor, col: torch.Tensor) -> list[tuple[int, int]]:
    return sorted(zip(row.tolist(), col.tolist(), strict=True))


def test_one_edge_attr_without_type_says_its_size_and_layout():
    (attr,) = make_store().get_all_edge_attrs()
    assert attr.edge_type is None
    assert attr.layout == EdgeLayout.CSC
    assert attr.is_sorted
    assert attr.size == (30, 30)


def test_each_call_returns_fresh_attrs():
    store = make_store()
    store.get_all_edge_attrs()[0].size = None
    assert store.get_all_edge_attrs()[0].size == (30, 30)


@pytest.mark.parametrize("layout", ["coo", "csc", "csr"])
def test_every_layout_holds_the_same_edges(layout):
    row, col = make_store().get_edge_index(edge_type=None, layout=layout)
    assert row.dtype == col.dtype == torch.int64
    if layout == "csc":
        assert len(col) == 31
        col = torch.repeat_interleave(col.diff())
    if layout == "csr":
        assert len(row) == 31
        row = torch.repeat_interleave(row.diff())
    assert sorted_edges(row, col) == sorted_edges(*torch.from_numpy(EDGES))
    if layout != "csr":
        assert bool((col.diff() >= 0).all())


def test_pygs_own_conversions_agree():
    store = make_store()
    for layout in ("coo", "csc"):
        row, col, perm = getattr(store, layout)()
        assert perm is None
        assert torch.equal(row, store[EdgeAttr(None, layout)][0])
        assert torch.equal(col, store[EdgeAttr(None, layout)][1])
    pointer, col, perm = store.csr()
    assert torch.equal(pointer, store[EdgeAttr(None, "csr")][0])
    assert torch.equal(col, store[EdgeAttr(None, "coo")][1][perm])


def test_csc_is_the_order_that_e_id_counts_in():
    store = make_store()
    row, col = store.get_edge_index(edge_type=None, layout="csc")
    np.testing.assert_array_equal(row, store.graph.indices)
    np.testing.assert_array_equal(col, store.graph.indptr)


def test_users_may_write_into_what_they_get():
    store = make_store()
    before = store.graph.indices.copy()
    store.get_edge_index(edge_type=None, layout="csc")[0].zero_()
    np.testing.assert_array_equal(store.graph.indices, before)


def test_unknown_edge_type_is_a_key_error():
    with pytest.raises(KeyError, match="paper"):
        make_store().get_edge_index(edge_type=("paper", "cites", "paper"), layout="csc")


def test_store_is_read_only():
    store, attr = make_store(), EdgeAttr(None, "csc")
    with pytest.raises(TypeError, match="read-only"):
        store[attr] = (torch.zeros(1), torch.zeros(1))
    with pytest.raises(TypeError, match="read-only"):
        del store[attr]


def test_a_datasets_graph_is_opened_when_it_is_needed(tmp_path):
    class Lazy(SimpleNamespace):
        opened = 0

        @property
        def graph(self) -> Graph:
            self.opened += 1
            return build_csc(EDGES, 30).graph

    source = Lazy()
    store = GraphStore(source)
    assert source.opened == 0
    assert store.num_nodes == 30
    assert store.num_edges == 200
    assert source.opened == 2


def test_pickled_store_carries_a_path(tmp_path):
    graph = build_csc(np.random.default_rng(1).integers(0, 30, (2, 9000)), 30).graph
    np.save(tmp_path / "indptr.npy", graph.indptr)
    np.save(tmp_path / "indices.npy", graph.indices)
    pickled = pickle.dumps(GraphStore(SimpleNamespace(graph=Graph.open(tmp_path))))
    assert len(pickled) < 2000
    again = pickle.loads(pickled)
    assert isinstance(again.graph.indices, np.memmap)
    np.testing.assert_array_equal(again.graph.indices, graph.indices)


def test_graphs_without_edges_or_nodes_are_legal():
    for num_nodes in (0, 3):
        store = GraphStore(build_csc([[], []], num_nodes).graph)
        for layout in ("coo", "csc", "csr"):
            row, col = store.get_edge_index(edge_type=None, layout=layout)
            assert row.sum() == col.sum() == 0
        assert store.get_all_edge_attrs()[0].size == (num_nodes, num_nodes)
