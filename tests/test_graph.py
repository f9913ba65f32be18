"""Building, opening, checking and pickling the CSC of a graph."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_ibp import ops
from gnn_ibp.errors import FormatError
from gnn_ibp.graph import Graph, build_csc
from gnn_ibp.npy import npy_header


def random_edges(num_nodes: int, num_edges: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, num_nodes, (2, num_edges))


def save(graph: Graph, folder: Path) -> Path:
    np.save(folder / "indptr.npy", graph.indptr)
    np.save(folder / "indices.npy", graph.indices)
    return folder


def expected_edges(src, dst, undirected: bool, dedup: bool) -> list[tuple[int, int, int]]:
    """(dst, src, position) of the edges that stay, sorted; given edges go before reverse ones."""
    edges = [(int(d), int(s), rank) for rank, (s, d) in enumerate(zip(src, dst, strict=True))]
    if undirected:
        edges += [(s, d, rank + len(edges)) for d, s, rank in edges]
    edges.sort()
    if dedup or undirected:
        edges = [edge for i, edge in enumerate(edges) if i == 0 or edge[:2] != edges[i - 1][:2]]
    return [(d, s, rank % len(src)) for d, s, rank in edges]


@settings(max_examples=60, deadline=None)
@given(
    num_nodes=st.integers(1, 40),
    num_edges=st.integers(0, 200),
    seed=st.integers(0, 2**32),
    undirected=st.booleans(),
    dedup=st.booleans(),
    dtype=st.sampled_from([np.int32, np.int64]),
)
def test_built_graph_holds_each_edge_in_order(num_nodes, num_edges, seed, undirected, dedup, dtype):
    src, dst = random_edges(num_nodes, num_edges, seed).astype(dtype)
    graph, perm = build_csc((src, dst), num_nodes, undirected=undirected, dedup=dedup)
    ends = np.repeat(np.arange(num_nodes), graph.in_degree())
    got = list(zip(ends.tolist(), graph.indices.tolist(), perm.tolist(), strict=True))
    assert got == expected_edges(src, dst, undirected, dedup)
    assert graph.indices.dtype == np.int32
    graph.check()


def test_many_edges_are_sorted_the_same_on_any_number_of_threads():
    edges = random_edges(5000, 700_000)
    edges[1, ::3] = 17  # a hub
    threads = ops.num_threads()
    try:
        built = []
        for num_threads in (1, 4):
            ops.set_num_threads(num_threads)
            built.append(build_csc(edges, 5000))
    finally:
        ops.set_num_threads(threads)
    order = np.lexsort((edges[0], edges[1]))
    for graph, perm in built:
        np.testing.assert_array_equal(perm, order)
        np.testing.assert_array_equal(graph.indices, edges[0][order])
        np.testing.assert_array_equal(graph.in_degree(), np.bincount(edges[1], minlength=5000))


def test_edges_may_be_torch_or_memory_mapped(tmp_path):
    edges = random_edges(30, 100)
    np.save(tmp_path / "edges.npy", edges)
    plain = build_csc(edges, 30)
    for given_as in (
        torch.from_numpy(edges),
        torch.from_numpy(edges.astype(np.int32)),
        np.load(tmp_path / "edges.npy", mmap_mode="r"),
        np.asfortranarray(edges),
        (edges[0].astype(np.int32), edges[1]),
        edges.tolist(),
    ):
        built = build_csc(given_as, 30)
        np.testing.assert_array_equal(built.graph.indptr, plain.graph.indptr)
        np.testing.assert_array_equal(built.graph.indices, plain.graph.indices)
        np.testing.assert_array_equal(built.perm, plain.perm)


def test_self_loops_are_kept_once_when_undirected():
    graph, perm = build_csc([[1, 0, 1], [1, 1, 1]], 2, undirected=True)
    assert graph.indptr.tolist() == [0, 1, 3]
    assert graph.indices.tolist() == [1, 0, 1]
    assert perm.tolist() == [1, 1, 0]


def test_graphs_without_edges_or_nodes_are_legal():
    for num_nodes in (0, 3):
        graph, perm = build_csc([[], []], num_nodes, undirected=True)
        assert (graph.num_nodes, graph.num_edges, len(perm)) == (num_nodes, 0, 0)
        assert graph.out_degree().tolist() == [0] * num_nodes
        graph.check()


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("bad", [-1, 10, 2**40])
def test_first_edge_that_names_no_node_is_named(end, bad):
    edges = random_edges(10, 300_000)
    edges[end, 270_123:] = bad
    with pytest.raises(IndexError, match=rf"edge 270123 is .*{bad}.*from 0 to 9"):
        build_csc(edges, 10)


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        (np.zeros((3, 4), np.int64), ValueError, r"shape \(3, 4\), wanted is \(2, num_edges\)"),
        (np.zeros((4, 2), np.int64), ValueError, r"shape \(4, 2\)"),
        (np.zeros((2, 4)), TypeError, "<f8"),
        (np.zeros((2, 4), bool), TypeError, "b1"),
        (np.zeros((2, 4), ">i8"), TypeError, ">i8"),
        ((np.zeros(3, np.int64), np.zeros(4, np.int64)), ValueError, "3 sources and 4 destinations"),
    ],
)
def test_edges_of_another_kind_are_refused(edges, error, message):
    with pytest.raises(error, match=message):
        build_csc(edges, 5)


def test_out_degree_counts_how_often_a_node_can_be_sampled(tmp_path):
    edges = random_edges(50, 400)
    folder = save(build_csc(edges, 50).graph, tmp_path)
    for mmap in (False, True):
        degrees = Graph.open(folder, mmap).out_degree()
        np.testing.assert_array_equal(degrees, np.bincount(edges[0], minlength=50))


def test_indices_copied_from_a_mapping_are_in_memory(tmp_path):
    folder = save(build_csc(random_edges(50, 400), 50).graph, tmp_path)
    mapped = Graph.open(folder, mmap=True)
    copied = Graph(np.array(mapped.indptr), mapped.indices.astype(np.int64))
    assert isinstance(copied.indices, np.memmap)
    assert (mapped.on_disk, copied.on_disk) == (True, False)
    np.testing.assert_array_equal(copied.out_degree(), mapped.out_degree())


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_graph_opens_from_a_folder(tmp_path, mmap, dtype):
    built, perm = build_csc(random_edges(50, 400), 50)
    folder = save(Graph(built.indptr, built.indices.astype(dtype)), tmp_path)
    graph = Graph.open(folder, mmap)
    assert isinstance(graph.indices, np.memmap) == mmap
    assert graph.indices.dtype == dtype
    assert graph.nbytes == 51 * 8 + 400 * np.dtype(dtype).itemsize
    np.testing.assert_array_equal(graph.indices, built.indices)
    assert graph.edge_perm is None
    np.save(folder / "edge_perm.npy", perm)
    np.testing.assert_array_equal(Graph.open(folder, mmap).edge_perm, perm)


def test_graph_from_a_folder_is_pickled_as_its_path(tmp_path):
    edges = random_edges(50, 4000)
    folder = save(build_csc(edges, 50).graph, tmp_path)
    for mmap in (False, True):
        pickled = pickle.dumps(Graph.open(folder, mmap))
        assert len(pickled) < 1000
        again = pickle.loads(pickled)
        assert isinstance(again.indices, np.memmap)
        np.testing.assert_array_equal(again.out_degree(), np.bincount(edges[0], minlength=50))


def test_graph_without_a_folder_is_pickled_with_its_arrays():
    graph = build_csc(random_edges(50, 400), 50).graph
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.indptr, graph.indptr)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0, 3, 2, 4], [0, 1, 2, 0]),
        ([0, 2, 2, 4], [0, 1, 2, 3]),
        ([0, 2, 2, 4], [0, 1, -1, 2]),
        ([0, -1, 2, 4], [0] * 4),
    ],
)
def test_damaged_graph_is_refused_in_memory_and_found_by_check(tmp_path, indptr, indices):
    np.save(tmp_path / "indptr.npy", np.array(indptr))
    np.save(tmp_path / "indices.npy", np.array(indices))
    with pytest.raises(FormatError, match=r"edges of node \d"):
        Graph.open(tmp_path)
    mapped = Graph.open(tmp_path, mmap=True)
    with pytest.raises(FormatError, match=r"edges of node \d"):
        mapped.check()


def announce(num_values):
    """Damages an array: its header announces this length."""

    def damage(path):
        header = npy_header(np.dtype(np.int32), (num_values,))
        path.write_bytes(header + path.read_bytes()[len(header) :])

    return damage


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("indices.npy", lambda path: path.write_bytes(path.read_bytes()[:-5]), "cut short"),
        ("indices.npy", lambda path: path.write_bytes(b""), "does not begin like"),
        ("indices.npy", lambda path: path.write_bytes(path.read_bytes()[128:]), "does not begin like"),
        ("indices.npy", lambda path: path.write_bytes(b"\x93NUMPY\x01\0\x76\0" + b"{(\0" * 50), "begin like"),
        ("indices.npy", announce(2**70), r"announces \d{22}"),
        ("indices.npy", lambda path: np.save(path, np.load(path).astype(">i8")), "big-endian int64"),
        ("indices.npy", lambda path: np.save(path, np.load(path).astype(float)), "float64.*int32 or int64"),
        ("indptr.npy", lambda path: np.save(path, np.load(path)[:-3]), "indptr goes from 0 to"),
        ("indptr.npy", lambda path: np.save(path, np.load(path)[:0]), "indptr is empty"),
        ("indptr.npy", lambda path: np.save(path, np.load(path).reshape(1, -1)), r"shape \(1, 51\)"),
    ],
)
def test_damaged_file_is_named(tmp_path, mmap, name, damage, message):
    save(build_csc(random_edges(50, 400), 50).graph, tmp_path)
    damage(tmp_path / name)
    with pytest.raises(FormatError, match=rf"{name}.*{message}"):
        Graph.open(tmp_path, mmap)


def test_arrays_of_another_kind_are_refused():
    indptr, indices = np.array([0, 1]), np.array([0])
    with pytest.raises(TypeError, match="indptr is <i4"):
        Graph(indptr.astype(np.int32), indices)
    with pytest.raises(TypeError, match="indices is Tensor"):
        Graph(indptr, torch.from_numpy(indices))
    with pytest.raises(ValueError, match=r"from 0 to 1, with 2 indices it must go from 0 to 2"):
        Graph(indptr, np.array([0, 0]))
