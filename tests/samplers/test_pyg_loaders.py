"""PyG's loaders over our sampler and graph store: in one process, in forked and in spawned workers."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader, NodeLoader
from torch_geometric.nn import GraphSAGE
from torch_geometric.sampler import NegativeSampling, NodeSamplerInput

from gnn_ibp.dataset import Dataset
from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph import Graph, build_csc
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.samplers import NeighborSampler

NUM_NODES = 500


STORES: list[FeatureStore] = []


@pytest.fixture(scope="module", autouse=True)
def features(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Features that tell whose they are: x[i] = (i, 2 i), y[i] = i % 5; half of them cached."""
    ids = torch.arange(NUM_NODES)
    x = torch.stack([ids, 2 * ids], 1).float()
    dataset = Dataset.from_arrays(tmp_path_factory.mktemp("data") / "ids", x=x, y=ids % 5)
    STORES.append(FeatureStore(dataset, cache_bytes="1MiB", hot_set=ids[::2]))
    yield
    STORES.clear()


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_csc(np.random.default_rng(0).integers(0, NUM_NODES, (2, 5000)), NUM_NODES).graph


@pytest.fixture(scope="module")
def folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    np.save(folder / "indptr.npy", graph.indptr)
    np.save(folder / "indices.npy", graph.indices)
    return folder


def node_loader(graph: Graph, **settings: Any) -> NodeLoader:
    store = GraphStore(graph)
    settings = {
        "input_nodes": torch.arange(0, NUM_NODES, 3),
        "batch_size": 16,
        "filter_per_worker": False,
    } | settings
    return NodeLoader((STORES[0], store), node_sampler=NeighborSampler(store, [4, 3]), **settings)


def link_loader(graph: Graph, **settings: Any) -> LinkNeighborLoader:
    store = GraphStore(graph)
    edges = np.random.default_rng(1).integers(0, NUM_NODES, (2, 60))
    settings = {"edge_label_index": (None, torch.from_numpy(edges)), "batch_size": 16} | settings
    return LinkNeighborLoader(
        (STORES[0], store),
        num_neighbors=[4, 3],
        neighbor_sampler=NeighborSampler(store, [4, 3]),
        filter_per_worker=False,
        **settings,
    )


def assert_true_to(graph: Graph, batch: Data) -> None:
    """Every feature, edge and count of the batch is right."""
    assert torch.equal(batch.x[:, 0].long(), batch.n_id)
    assert torch.equal(batch.y, batch.n_id % 5)
    ends = np.repeat(np.arange(graph.num_nodes), graph.in_degree())
    np.testing.assert_array_equal(graph.indices[batch.e_id], batch.n_id[batch.edge_index[0]])
    np.testing.assert_array_equal(ends[batch.e_id], batch.n_id[batch.edge_index[1]])
    assert sum(batch.num_sampled_nodes) == batch.num_nodes == len(batch.n_id)
    assert sum(batch.num_sampled_edges) == batch.num_edges


def assert_same_batches(loader: Any, expected: list[Data]) -> None:
    batches = list(loader)
    assert len(batches) == len(expected) > 1
    for got, wanted in zip(batches, expected, strict=True):
        for name in ("n_id", "e_id", "edge_index", "x", "y"):
            assert torch.equal(got[name], wanted[name]), name
        assert got.num_sampled_nodes == wanted.num_sampled_nodes
        if "edge_label_index" in wanted:
            assert torch.equal(got.edge_label_index, wanted.edge_label_index)


def test_node_loader_gives_true_batches(graph):
    seeds = []
    for batch in node_loader(graph):
        assert_true_to(graph, batch)
        assert torch.equal(batch.n_id[: batch.batch_size], torch.arange(0, NUM_NODES, 3)[batch.input_id])
        assert batch.num_sampled_nodes[0] == batch.batch_size
        assert len(batch.num_sampled_nodes) == 3
        seeds.append(batch.n_id[: batch.batch_size])
    assert torch.equal(torch.cat(seeds), torch.arange(0, NUM_NODES, 3))


def test_neighbor_loader_gives_the_same_without_pygs_sampler(graph):
    store = GraphStore(graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = NeighborLoader(
            (STORES[0], store),
            num_neighbors=[4, 3],
            neighbor_sampler=NeighborSampler(store, [4, 3]),
            input_nodes=torch.arange(0, NUM_NODES, 3),
            batch_size=16,
            filter_per_worker=False,
        )
    assert_same_batches(loader, list(node_loader(graph)))


def test_repeated_and_isolated_seeds_stay_in_place_through_pyg():
    graph = build_csc([[1, 2], [0, 0]], NUM_NODES).graph
    (batch,) = node_loader(graph, input_nodes=torch.tensor([9, 0, 9, 0]))
    assert batch.n_id[:4].tolist() == [9, 0, 9, 0]
    assert_true_to(graph, batch)


def test_mask_of_seeds_is_taken_as_pyg_takes_it(graph):
    mask = torch.zeros(NUM_NODES, dtype=torch.bool)
    mask[::3] = True
    assert_same_batches(node_loader(graph, input_nodes=mask), list(node_loader(graph)))


def test_pyg_model_trains_on_a_batch(graph):
    batch = next(iter(node_loader(graph)))
    model = GraphSAGE(2, 8, num_layers=2, out_channels=5)
    out = model(
        batch.x,
        batch.edge_index,
        num_sampled_nodes_per_hop=batch.num_sampled_nodes,
        num_sampled_edges_per_hop=batch.num_sampled_edges,
    )
    whole = model(batch.x, batch.edge_index)
    torch.testing.assert_close(out[: batch.batch_size], whole[: batch.batch_size])


@pytest.mark.parametrize("negatives", [None, "binary", NegativeSampling("binary", 2)])
def test_link_loader_gives_true_batches(graph, negatives):
    loader = link_loader(graph, neg_sampling=negatives)
    positives = []
    for batch in loader:
        assert_true_to(graph, batch)
        ends = batch.n_id[batch.edge_label_index]
        num_positive = len(batch.input_id)
        positives.append(ends[:, :num_positive])
        amount = 0 if negatives is None else NegativeSampling.cast(negatives).amount
        assert ends.shape[1] == num_positive * (1 + amount)
        if negatives is not None:
            assert batch.edge_label.tolist() == [1.0] * num_positive + [0.0] * (num_positive * amount)
    assert torch.equal(torch.cat(positives, 1), loader.edge_label_index[1])


def test_link_loader_gives_triplets(graph):
    for batch in link_loader(graph, neg_sampling=NegativeSampling("triplet", 3)):
        assert_true_to(graph, batch)
        assert batch.dst_neg_index.shape == (len(batch.input_id), 3)
        assert batch.src_index.shape == batch.dst_pos_index.shape == batch.input_id.shape


def test_negative_edges_follow_from_the_seed_and_their_weights(graph):
    weight = torch.zeros(NUM_NODES)
    weight[7:9] = 1
    negatives = NegativeSampling("binary", 1, src_weight=weight)
    expected = list(link_loader(graph, neg_sampling=negatives))
    torch.manual_seed(123)
    assert_same_batches(link_loader(graph, neg_sampling=negatives), expected)
    for batch in expected:
        sources = batch.n_id[batch.edge_label_index[0, len(batch.input_id) :]]
        assert set(sources.tolist()) <= {7, 8}


@pytest.mark.parametrize("make", [node_loader, link_loader])
@pytest.mark.parametrize("mmap", [False, True])
def test_forked_workers_give_the_same_batches(graph, folder, make, mmap):
    settings = {} if make is node_loader else {"neg_sampling": "binary"}
    expected = list(make(graph, **settings))
    loader = make(
        Graph.open(folder, mmap),
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=True,
        **settings,
    )
    assert_same_batches(loader, expected)
    assert_same_batches(loader, expected)


@pytest.mark.parametrize(
    ("from_folder", "num_workers"), [pytest.param(False, 2, marks=pytest.mark.slow), (True, 1)]
)
def test_spawned_workers_give_the_same_batches(graph, folder, from_folder, num_workers):
    given = Graph.open(folder) if from_folder else graph
    loader = node_loader(given, num_workers=num_workers, multiprocessing_context="spawn")
    assert_same_batches(loader, list(node_loader(graph)))


def test_features_may_be_fetched_in_the_workers_too(graph):
    loader = node_loader(graph, num_workers=2, multiprocessing_context="fork", filter_per_worker=True)
    assert_same_batches(loader, list(node_loader(graph)))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_set_epoch_reaches_workers_that_live_on(graph, num_workers):
    living = {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True}
    loader = node_loader(graph, **(living if num_workers else {}))
    epochs = []
    for epoch in (0, 1, 0):
        loader.node_sampler.set_epoch(epoch)
        epochs.append(torch.cat([batch.e_id for batch in loader]))
    assert torch.equal(epochs[0], epochs[2])
    assert not torch.equal(epochs[0], epochs[1])


def test_sampling_leaves_torchs_generator_alone(graph):
    loader = link_loader(graph, neg_sampling="binary")
    state = torch.get_rng_state()
    loader.link_sampler.sample_from_edges(loader.input_data, loader.neg_sampling)
    assert torch.equal(torch.get_rng_state(), state)


def test_bad_seed_is_an_index_error_through_the_loader(graph):
    with pytest.raises(IndexError, match=str(NUM_NODES)):
        next(iter(node_loader(graph, input_nodes=torch.tensor([0, NUM_NODES]))))
    edges = torch.tensor([[0, -3], [1, 2]])
    with pytest.raises(IndexError, match="-3"):
        next(iter(link_loader(graph, edge_label_index=(None, edges), neg_sampling="binary")))


def test_types_and_times_are_refused(graph):
    sampler = NeighborSampler(graph, [2])
    with pytest.raises(ValueError, match="no types"):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([0]), input_type="paper"))
    with pytest.raises(ValueError, match="times"):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([0]), time=torch.tensor([0])))
