"""What the neighbor sampler draws: the same as its definition in Python, uniformly, and reproducibly."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_ibp import ops
from gnn_ibp.errors import FormatError
from gnn_ibp.graph import Graph, build_csc
from gnn_ibp.sample import Sample
from gnn_ibp.samplers import NeighborSampler, reference


def random_graph(num_nodes: int = 200, num_edges: int = 4000, seed: int = 0) -> Graph:
    return build_csc(np.random.default_rng(seed).integers(0, num_nodes, (2, num_edges)), num_nodes).graph


def star(num_leaves: int) -> Graph:
    """Node 0 has the in-neighbours 1, …, num_leaves."""
    return build_csc((np.arange(1, num_leaves + 1), np.zeros(num_leaves, np.int64)), num_leaves + 1).graph


def assert_same(sample: Sample, expected: Sample) -> None:
    for name in ("node_ids", "indptr", "indices", "e_id"):
        got = getattr(sample, name)
        assert got.dtype == torch.int64
        assert torch.equal(got, getattr(expected, name)), name
    assert sample.num_sampled_nodes == expected.num_sampled_nodes
    assert sample.num_sampled_edges == expected.num_sampled_edges


@settings(max_examples=80, deadline=None)
@given(
    num_nodes=st.integers(1, 60),
    num_edges=st.integers(0, 500),
    fanouts=st.lists(st.integers(-1, 6), max_size=3),
    num_seeds=st.integers(0, 12),
    replace=st.booleans(),
    wide=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
def test_kernel_draws_as_defined(num_nodes, num_edges, fanouts, num_seeds, replace, wide, seed):
    rng = np.random.default_rng(seed)
    graph = build_csc(rng.integers(0, num_nodes, (2, num_edges)), num_nodes).graph
    if wide:
        graph = Graph(graph.indptr, graph.indices.astype(np.int64))
    seeds = rng.integers(0, num_nodes, num_seeds)
    sampler = NeighborSampler(graph, fanouts, replace, seed)
    expected = reference.sample(graph, seeds.tolist(), fanouts, replace, reference.mix(seed, 3, 5))
    assert_same(sampler.sample(seeds, epoch=3, batch=5), expected)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("fanouts", [[15, 10, 5], [-1, 3], [0, 4], [100]])
def test_indices_on_the_disk_give_the_same_sample(tmp_path, fanouts, replace):
    graph = random_graph(3000, 60_000)
    np.save(tmp_path / "indptr.npy", graph.indptr)
    np.save(tmp_path / "indices.npy", graph.indices)
    mapped = Graph.open_mapped(tmp_path)
    assert mapped.on_disk and not graph.on_disk
    assert not isinstance(mapped.indptr, np.memmap)
    np.testing.assert_array_equal(mapped.out_degree(), graph.out_degree())
    seeds = np.random.default_rng(0).integers(0, 3000, 400)
    for batch in range(3):
        expected = NeighborSampler(graph, fanouts, replace, seed=7).sample(seeds, epoch=2, batch=batch)
        assert_same(
            NeighborSampler(mapped, fanouts, replace, seed=7).sample(seeds, epoch=2, batch=batch), expected
        )


@pytest.mark.parametrize("fanout", [1, 15, 16, 17, 200, 299])
def test_every_fanout_draws_as_defined(fanout):
    graph = star(fanout + 1 + fanout // 4)  # few enough to be drawn again and again
    expected = reference.sample(graph, [0], [fanout], False, reference.mix(0, 0, 0))
    sample = NeighborSampler(graph, [fanout]).sample([0])
    assert_same(sample, expected)
    assert len(set(sample.e_id.tolist())) == fanout


def test_a_batch_that_outgrows_the_table_of_ids_draws_as_defined():
    graph = random_graph(20_000, 60_000)
    sampler = NeighborSampler(graph, [3, 3, 3])
    for seeds in ([1, 1, 2], list(range(0, 20_000, 7)) * 2, [5], [6], list(range(3000))):
        assert_same(
            sampler.sample(seeds), reference.sample(graph, seeds, [3, 3, 3], False, reference.mix(0, 0, 0))
        )


def test_a_table_that_has_numbered_millions_of_ids_draws_as_defined():
    num_nodes = 1 << 20
    isolated = Graph(np.zeros(num_nodes + 1, np.int64), np.zeros(0, np.int32))
    numbers = NeighborSampler(isolated, [])
    graph = random_graph(3000, 30_000)
    expected = reference.sample(graph, [7, 8], [5, 5], False, reference.mix(0, 0, 0))
    for _ in range(18):  # what tells the batches of a thread apart begins anew after 2^24
        assert numbers.sample(np.arange(num_nodes)).node_ids[-1] == num_nodes - 1
        assert_same(NeighborSampler(graph, [5, 5]).sample([7, 8]), expected)


def test_ids_that_agree_in_32_bits_are_two_nodes(tmp_path):
    # In a table of 1024 entries an id and its twin lie close to each other: they meet where it is crowded.
    ids = 1 + np.random.default_rng(0).choice(10**6, 249, replace=False)
    twins = ids + (2 << 32)
    num_nodes = int(twins.max()) + 1
    indptr = np.memmap(tmp_path / "indptr", np.int64, "w+", shape=num_nodes + 1)  # almost all of it a hole
    indptr[1] = indptr[-1] = 2 * len(ids)
    sample = NeighborSampler(Graph(indptr, np.concatenate([ids, twins])), [-1]).sample([0])
    assert sample.node_ids.tolist() == [0, *ids, *twins]


def test_draws_stay_as_they_are_from_version_to_version():
    assert ops.mix(1, 2, 3) == reference.mix(1, 2, 3) == 0xEE3BB459E9E297B
    ids = np.array([3, 1, 4, 1, 5])
    assert ops.hash_ids(ids) == reference.hash_ids(ids.tolist()) == 0x9F77501124D6736A
    graph = build_csc([[1, 2, 3, 4, 5, 6, 7, 8, 9], [0] * 9], 10).graph
    assert NeighborSampler(graph, [4], seed=7).sample([0], epoch=1, batch=2).e_id.tolist() == [0, 2, 7, 8]
    assert NeighborSampler(graph, [4], True, 7).sample([0], epoch=1, batch=2).e_id.tolist() == [0, 3, 8, 2]


def test_edges_exist_in_the_graph_at_their_e_id():
    graph = random_graph()
    sample = NeighborSampler(graph, [5, 4, 3]).sample(np.arange(20))
    col = torch.repeat_interleave(sample.indptr.diff())
    ends = np.repeat(np.arange(graph.num_nodes), graph.in_degree())
    np.testing.assert_array_equal(graph.indices[sample.e_id], sample.node_ids[sample.indices])
    np.testing.assert_array_equal(ends[sample.e_id], sample.node_ids[col])
    assert len(sample.node_ids.unique()) == len(sample.node_ids) == sum(sample.num_sampled_nodes)
    assert len(sample.e_id) == sum(sample.num_sampled_edges)
    assert len(sample.indptr) == 1 + sum(sample.num_sampled_nodes[:-1])


def test_repeated_and_isolated_seeds_stay_in_place():
    graph = build_csc([[1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 0]], 9).graph
    sample = NeighborSampler(graph, [2, 2]).sample([0, 8, 0, 3, 8])
    assert sample.node_ids[:5].tolist() == [0, 8, 0, 3, 8]
    assert sample.num_sampled_nodes[0] == 5
    first, second = sample.e_id[:2], sample.e_id[2:4]
    assert torch.equal(first, second)
    assert sample.indptr.diff()[:5].tolist() == [2, 0, 2, 0, 0]


def test_a_node_is_expanded_once_at_the_hop_after_its_discovery():
    ring = build_csc([[0, 1, 2], [1, 2, 0]], 3).graph
    sample = NeighborSampler(ring, [-1] * 5).sample([0])
    assert sample.node_ids.tolist() == [0, 2, 1]
    assert sample.num_sampled_nodes == [1, 1, 1, 0, 0, 0]
    assert sample.num_sampled_edges == [1, 1, 1, 0, 0]
    assert sample.indptr.tolist() == [0, 1, 2, 3]
    assert sample.indices.tolist() == [1, 2, 0]


def test_fanout_of_at_least_the_degree_gives_all_neighbours_in_order():
    graph = random_graph(50, 500)
    everything = NeighborSampler(graph, [-1]).sample(np.arange(50))
    assert everything.e_id.tolist() == list(range(500))
    assert_same(NeighborSampler(graph, [500]).sample(np.arange(50)), everything)


def test_layers_are_prefixes_that_hold_every_edge_of_their_destinations():
    sample = NeighborSampler(random_graph(), [5, 4, 3]).sample(np.arange(7))
    for layer, hops in zip(sample.layers, (3, 2, 1), strict=True):
        assert layer.num_dst == sum(sample.num_sampled_nodes[:hops])
        assert layer.num_src == sum(sample.num_sampled_nodes[: hops + 1])
        assert layer.indptr[-1] == len(layer.indices) == sum(sample.num_sampled_edges[:hops])
        assert len(layer.indptr) == layer.num_dst + 1
        assert layer.indices.max() < layer.num_src


def chi_square(counts: np.ndarray, expected: float) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("degree", [7, 100])
def test_every_neighbour_is_equally_likely(degree, replace):
    sampler = NeighborSampler(star(degree), [5], replace, seed=1)
    num_batches = 4000
    counts = np.zeros(degree)
    for batch in range(num_batches):
        np.add.at(counts, sampler.sample([0], batch=batch).e_id.numpy(), 1)
    freedom = degree - 1
    # Without replacement the counts vary less: the statistic shrinks by (degree - 5) / (degree - 1).
    shrink = 1.0 if replace else (degree - 5) / (degree - 1)
    statistic = chi_square(counts, num_batches * 5 / degree) / shrink
    assert abs(statistic - freedom) < 4 * (2 * freedom) ** 0.5


def test_every_pair_of_neighbours_is_equally_likely():
    sampler = NeighborSampler(star(6), [2], seed=2)
    counts = np.zeros((6, 6))
    for epoch in range(6000):
        first, second = sorted(sampler.sample([0], epoch=epoch).e_id.tolist())
        counts[first, second] += 1
    pairs = counts[np.triu_indices(6, 1)]
    assert abs(chi_square(pairs, 6000 / 15) - 14) < 4 * 28**0.5


def test_neighbouring_nodes_draw_independently():
    # 2000 nodes with the same 10 in-neighbours draw one each, all under one batch key.
    src = np.tile(np.arange(10), 2000)
    dst = np.repeat(np.arange(10, 2010), 10)
    sample = NeighborSampler(build_csc((src, dst), 2010).graph, [1]).sample(np.arange(10, 2010))
    places = (sample.e_id % 10).numpy()
    assert abs(chi_square(np.bincount(places, minlength=10), 200) - 9) < 4 * 18**0.5
    pairs = np.bincount(places[:-1] * 10 + places[1:], minlength=100)
    assert abs(chi_square(pairs, 1999 / 100) - 99) < 4 * 198**0.5


def test_seed_epoch_and_batch_each_change_the_draws():
    graph = random_graph()
    drawn = {
        tuple(
            NeighborSampler(graph, [3], seed=seed).sample(range(30), epoch=epoch, batch=batch).e_id.tolist()
        )
        for seed in (0, 1)
        for epoch in (0, 1)
        for batch in (0, 1)
    }
    assert len(drawn) == 8


def test_many_threads_draw_what_one_draws():
    sampler = NeighborSampler(random_graph(2000, 40_000), [6, 5, 4])
    batches = np.random.default_rng(0).permutation(2000).reshape(40, 50)
    alone = [sampler.sample(seeds, batch=i) for i, seeds in enumerate(batches)]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda i: sampler.sample(batches[i], batch=i), range(40))
    for expected, sample in zip(alone, together, strict=True):
        assert_same(sample, expected)


def test_memory_mapped_graph_draws_the_same(tmp_path):
    graph = random_graph()
    np.save(tmp_path / "indptr.npy", graph.indptr)
    np.save(tmp_path / "indices.npy", graph.indices)
    mapped = NeighborSampler(Graph.open(tmp_path, mmap=True), [4, 4])
    assert_same(mapped.sample(range(9)), NeighborSampler(graph, [4, 4]).sample(range(9)))
    assert_same(pickle.loads(pickle.dumps(mapped)).sample(range(9)), mapped.sample(range(9)))


@pytest.mark.parametrize("seeds", [np.array([3, 1], np.int32), torch.tensor([3, 1]), [3, 1], (3, 1)])
def test_seeds_may_be_of_any_integer_kind(seeds):
    sampler = NeighborSampler(random_graph(), [2])
    assert_same(sampler.sample(seeds), sampler.sample(np.array([3, 1])))


@pytest.mark.parametrize("bad", [-1, 200, 2**40])
def test_first_seed_that_is_no_node_is_named(bad):
    with pytest.raises(IndexError, match=f"{bad}"):
        NeighborSampler(random_graph(), [2]).sample([0, 1, bad, -7])


@pytest.mark.parametrize("seeds", [[0.5], [True, False], np.zeros(2)])
def test_seeds_that_are_no_integers_are_refused(seeds):
    with pytest.raises(TypeError):
        NeighborSampler(random_graph(), [2]).sample(seeds)


def test_settings_out_of_range_are_named():
    graph = random_graph()
    with pytest.raises(ValueError, match=r"num_neighbors\[1\] is -2"):
        NeighborSampler(graph, [3, -2])
    with pytest.raises(TypeError, match=r"num_neighbors\[0\] is 2.5"):
        NeighborSampler(graph, [2.5])
    with pytest.raises(ValueError, match="seed is -1"):
        NeighborSampler(graph, [3], seed=-1)
    with pytest.raises(TypeError, match=r"seed is 1\.5"):
        NeighborSampler(graph, [3], seed=1.5)
    with pytest.raises(TypeError, match=r"epoch is 1\.5"):
        NeighborSampler(graph, [3]).set_epoch(1.5)
    with pytest.raises(ValueError, match=r"epoch is 9223372036854775808, .* 2\^63 - 1"):
        NeighborSampler(graph, [3]).set_epoch(2**63)
    assert NeighborSampler(graph, [3], replace=np.True_).sample([0]).num_sampled_edges == [3]
    with pytest.raises(TypeError, match="a str has no graph; give a Dataset"):
        NeighborSampler("path", [3])
    with pytest.raises(ValueError, match="batch is -1"):
        NeighborSampler(graph, [3]).sample([0], batch=-1)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [([0, 9, 2], [0, 1]), ([0, 1, 2], [0, 2]), ([0, 1, 2], [-1, 0]), ([0, -5, 2], [0, 1])],
)
def test_damaged_topology_is_an_error_not_a_crash(indptr, indices):
    sampler = NeighborSampler(Graph(np.array(indptr), np.array(indices)), [2, 2])
    with pytest.raises(FormatError, match="damaged"):
        sampler.sample([0, 1])


WITHOUT_MEMORY = """
import resource, numpy as np
from gnn_ibp import ops

ids = np.arange((1 << 22) + 1)
graph = np.zeros(len(ids) + 1, np.int64), np.empty(0, np.int32)
ops.sample_neighbors(*graph, ids[:1], [2], False, 0)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (held + (80 << 20), most))  # for the nodes, not for the table of ids
try:
    ops.sample_neighbors(*graph, ids, [2], False, 0)
except MemoryError as error:
    assert "smaller batches" in str(error), error
else:
    raise SystemExit("there was memory")
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for _ in range(2):
    assert (ops.sample_neighbors(*graph, ids, [2], False, 0).node_ids.numpy() == ids).all()
"""


def test_a_sample_without_memory_is_an_error_and_the_next_one_is_right():
    subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], check=True)


@pytest.mark.parametrize("num_seeds", [1, 4])
def test_more_draws_than_can_be_counted_are_an_error_not_a_crash(num_seeds):
    sampler = NeighborSampler(build_csc([range(4), [1, 2, 3, 0]], 4).graph, [2**62], replace=True)
    with pytest.raises(MemoryError, match="num_neighbors"):
        sampler.sample(range(num_seeds))
    assert NeighborSampler(sampler.graph, [2**62]).sample([0]).node_ids.tolist() == [0, 3]


def test_graphs_without_edges_or_nodes_can_be_sampled():
    sample = NeighborSampler(build_csc([[], []], 3).graph, [2, 2]).sample([2, 0])
    assert sample.node_ids.tolist() == [2, 0]
    assert sample.indptr.tolist() == [0, 0, 0]
    assert sample.num_sampled_edges == [0, 0]
    assert NeighborSampler(build_csc([[], []], 0).graph, [2]).sample([]).node_ids.tolist() == []


def test_neither_pyg_lib_nor_torch_sparse_is_needed():
    code = (
        "import sys; sys.modules['pyg_lib'] = sys.modules['torch_sparse'] = None\n"
        "import gnn_ibp.samplers as samplers, gnn_ibp.graph as graph\n"
        "built = graph.build_csc([[1], [0]], 2).graph\n"
        "assert samplers.NeighborSampler(built, [1]).sample([0]).node_ids.tolist() == [0, 1]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
