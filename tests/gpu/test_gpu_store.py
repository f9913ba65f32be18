"""A store on a GPU, our loader and PyG's give what they give on the CPU, on the device, in order."""

from typing import Any

import pytest
import torch
from device_rows import same_bits
from torch_geometric.loader import NodeLoader

from gnn_ibp import Dataset, FeatureStore, GraphStore, Loader
from gnn_ibp.samplers import NeighborSampler

NUM_NODES, NUM_EDGES = 2000, 20_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(NUM_NODES, 100, generator=generator) * 0.1
    x[:, 0] = torch.arange(NUM_NODES)
    return Dataset.from_arrays(
        tmp_path_factory.mktemp("data") / "some",
        edge_index=torch.randint(NUM_NODES, (2, NUM_EDGES), generator=generator),
        x=x,
        y=torch.randint(5, (NUM_NODES,), generator=generator),
        split={"train": torch.arange(600), "val": torch.arange(600, 700), "test": torch.arange(700, 800)},
        features={"year": torch.arange(NUM_NODES, dtype=torch.int16)},
        edge_features={"edge_attr": torch.arange(NUM_EDGES, dtype=torch.float64).view(-1, 1)},
        arrays={"group": torch.arange(NUM_NODES) % 3},
    )


@pytest.fixture
def store(dataset: Dataset, cuda: Any) -> FeatureStore:
    """A third of the rows in either tier, so that all three are used."""
    third = dataset.feature_file().num_rows * 400 // 3
    return FeatureStore(dataset, cuda, cache_bytes=third + 8 * NUM_NODES, host_bytes=third)


def test_store_serves_everything_on_its_device(dataset: Dataset, store: FeatureStore, cuda: Any):
    on_cpu = FeatureStore(dataset, "cpu", cache_bytes=0)
    ids = torch.tensor([5, 1999, 5, 0, 77])
    for name in ("x", "y", "year", "group", "edge_attr"):
        for index in (ids, cuda.upload(ids), None, slice(10, 30, 3), 4):
            index_on_cpu = index.cpu() if isinstance(index, torch.Tensor) else index
            found = store.get_tensor(group_name=None, attr_name=name, index=index)
            assert found.device == store.device == cuda.device
            assert same_bits(found, on_cpu.get_tensor(group_name=None, attr_name=name, index=index_on_cpu))


@pytest.mark.parametrize("prefetch", [0, 4])
def test_loader_hands_over_the_batches_of_the_cpu_in_order(
    dataset: Dataset, store: FeatureStore, simulated: bool, prefetch: int
):
    def batches(served: FeatureStore) -> Loader:
        sampler = NeighborSampler(dataset.graph, [5, 3], seed=1)
        num_batches = 2 if simulated else None
        train = dataset.split["train"]
        return Loader(served, sampler, train, 64, shuffle=True, prefetch=prefetch, max_batches=num_batches)

    loader, on_cpu = batches(store), batches(FeatureStore(dataset, "cpu"))
    for _ in range(1 if simulated else 3):
        seen = 0
        for found, wanted in zip(list(loader), on_cpu, strict=True):  # a list: batches outlive their turn
            assert found.x.device == found.y.device == store.device
            assert same_bits(found.x, wanted.x)
            assert same_bits(found.y, wanted.y)
            assert same_bits(found.n_id, wanted.n_id)
            assert same_bits(found.e_id, wanted.e_id)
            assert torch.equal(found.x[:, 0].cpu().long(), wanted.n_id)
            seen += 1
        assert seen == len(loader)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_pygs_node_loader_fetches_on_the_device(
    dataset: Dataset, store: FeatureStore, simulated: bool, num_workers: int
):
    """Workers are forked while the device is in use: they sample, and leave it alone."""
    sampler = NeighborSampler(GraphStore(dataset), [4, 2], seed=0)
    seeds = dataset.split["train"][: 100 if simulated else 600]
    loader = NodeLoader(
        (store, GraphStore(dataset)),
        node_sampler=sampler,
        input_nodes=seeds,
        batch_size=50,
        filter_per_worker=False,
        num_workers=num_workers,
        multiprocessing_context="fork" if num_workers else None,
    )
    on_cpu = FeatureStore(dataset, "cpu", cache_bytes=0)
    for batch in loader:
        assert batch.x.device == store.device
        assert same_bits(batch.x, on_cpu.read("x", batch.n_id.cpu()))
        assert same_bits(batch.year, on_cpu.read("year", batch.n_id.cpu()))


@pytest.mark.slow
def test_device_memory_is_flat_over_many_epochs(dataset: Dataset, store: FeatureStore, big: Any):
    sampler = NeighborSampler(dataset.graph, [5, 3], seed=1)
    loader = Loader(store, sampler, dataset.split["train"], 64, shuffle=True)
    used = []
    for _ in range(50):
        for batch in loader:
            batch.x.sum()
        big.event().wait()
        used.append(torch.cuda.memory_allocated(big.device))
    assert max(used[10:]) <= max(used[:10])
