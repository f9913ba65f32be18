"""PyG's loaders over a store on a device: the main process fetches to it, workers leave it alone."""

import pytest
import small_dataset
import torch
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader, NodeLoader
from torch_geometric.nn import GraphSAGE
from watched_cuda import WatchedCuda, address

from gnn_ibp.feature_store import FeatureStore
from gnn_ibp.graph_store import GraphStore
from gnn_ibp.samplers import NeighborSampler


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return small_dataset.make(tmp_path_factory.mktemp("data") / "small")


@pytest.fixture
def cuda():
    return WatchedCuda()


@pytest.fixture
def store(dataset, cuda):
    return FeatureStore(dataset, cuda, cache_bytes="12KiB", host_bytes="8KiB")


def node_loader(store, **settings):
    graph = GraphStore(store.dataset)
    sampler = NeighborSampler(graph, [4, 3], seed=2)
    return NodeLoader((store, graph), sampler, torch.arange(0, 500, 3), batch_size=40, **settings)


def neighbor_loader(store, **settings):
    graph = GraphStore(store.dataset)
    return NeighborLoader(
        (store, graph),
        num_neighbors=[4, 3],
        neighbor_sampler=NeighborSampler(graph, [4, 3], seed=2),
        input_nodes=torch.arange(0, 500, 3),
        batch_size=40,
        **settings,
    )


def link_loader(store, **settings):
    graph = GraphStore(store.dataset)
    edges = torch.randint(499, (2, 60), generator=torch.Generator().manual_seed(1))
    return LinkNeighborLoader(
        (store, graph),
        num_neighbors=[4, 3],
        neighbor_sampler=NeighborSampler(graph, [4, 3], seed=2),
        edge_label_index=(None, edges),
        neg_sampling="binary",
        batch_size=16,
        **settings,
    )


LOADERS = [node_loader, neighbor_loader, link_loader]
FEATURES = ("x", "y", "year", "image", "group", "edge_attr")


def batches_of(make, store, filter_per_worker=False, **settings):
    transform = store.add_edge_features
    return list(make(store, filter_per_worker=filter_per_worker, transform=transform, **settings))


def assert_same(got, want):
    assert len(got) == len(want) > 1
    for one, other in zip(got, want, strict=True):
        assert set(one.keys()) == set(other.keys())
        for name in (*FEATURES, "n_id", "e_id", "edge_index"):
            assert torch.equal(one[name], other[name]), name


@pytest.mark.parametrize("make", LOADERS)
@pytest.mark.parametrize("num_workers", [0, 2])
def test_main_process_fetches_to_the_device(dataset, store, cuda, make, num_workers):
    want = batches_of(make, FeatureStore(dataset))
    workers = {"num_workers": num_workers, "multiprocessing_context": "fork"} if num_workers else {}
    got = batches_of(make, store, **workers)
    assert_same(got, want)
    assert all(address(batch[name]) in cuda.made_on for batch in got for name in FEATURES)
    nodes, edges = sum(len(batch.n_id) for batch in got), sum(len(batch.e_id) for batch in got)
    assert store.stats()["cache"]["lookups"] == 3 * nodes + edges
    assert store.stats()["cache"]["hits"] > 0 and store.stats()["host"]["hits"] > 0


@pytest.mark.parametrize("make", LOADERS)
def test_forked_workers_that_fetch_leave_the_device_alone(dataset, store, make):
    want = batches_of(make, FeatureStore(dataset))
    workers = {"num_workers": 2, "multiprocessing_context": "fork", "filter_per_worker": True}
    assert_same(batches_of(make, store, **workers), want)
    assert store.stats()["cache"]["lookups"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("filter_per_worker", [False, True])
def test_spawned_workers_give_the_same_batches(dataset, store, filter_per_worker):
    want = batches_of(node_loader, FeatureStore(dataset))
    workers = {"num_workers": 2, "multiprocessing_context": "spawn", "filter_per_worker": filter_per_worker}
    assert_same(batches_of(node_loader, store, **workers), want)


def test_pyg_model_trains_on_the_device_to_the_losses_of_the_cpu(dataset, store):
    assert losses(store) == losses(FeatureStore(dataset))


def losses(store):
    torch.manual_seed(0)
    model = GraphSAGE(16, 8, num_layers=2, out_channels=small_dataset.NUM_CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    values = []
    for batch in batches_of(node_loader, store):
        x = batch.x / 500
        scores = model(x, batch.edge_index.to(x.device))[: batch.batch_size]
        loss = torch.nn.functional.cross_entropy(scores, batch.y[: batch.batch_size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def test_bad_seed_is_an_index_error(store):
    graph = GraphStore(store.dataset)
    seeds = torch.tensor([0, 500])
    loader = NodeLoader((store, graph), NeighborSampler(graph, [2]), seeds, batch_size=2)
    with pytest.raises(IndexError, match="500"):
        next(iter(loader))
