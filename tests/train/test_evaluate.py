"""Evaluation: exact inference is PyG's model on the whole graph, in blocks."""

import numpy as np
import pytest
import torch
from random_graphs import edge_index, random_graph
from torch_geometric.nn.models import GraphSAGE as PyGGraphSAGE

from gnn_ibp import Dataset, FeatureStore, Loader
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train import evaluate
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize

NUM_NODES = 500


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    indptr, indices = random_graph(NUM_NODES, 4000, seed=0)
    rng = np.random.default_rng(0)
    return Dataset.from_arrays(
        tmp_path_factory.mktemp("data") / "ds",
        edge_index=edge_index(indptr, indices),
        x=rng.standard_normal((NUM_NODES, 2, 5)).astype(np.float32) + 3,
        y=rng.integers(0, 4, NUM_NODES),
        split={"test": rng.permutation(NUM_NODES)[:200]},
    )


def make_model(num_layers: int) -> GraphSAGE:
    torch.manual_seed(0)
    normalize = Normalize("standard", torch.full((2, 5), 3.0), torch.full((2, 5), 0.5))
    return GraphSAGE(10, 16, num_layers, 4, dropout=0.5, normalize=normalize)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_exact_scores_are_pygs_on_the_whole_graph(
    dataset: Dataset, num_layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "BLOCK_ROWS", 64)
    model, nodes = make_model(num_layers), dataset.split["test"]
    scores = evaluate.exact_scores(model, FeatureStore(dataset), dataset.graph, nodes)
    theirs = PyGGraphSAGE(10, 16, num_layers, 4).eval()
    theirs.load_state_dict(model.state_dict())
    x = (FeatureStore(dataset)[None, "x", None].flatten(1) - 3) / 0.5
    edges = edge_index(torch.from_numpy(dataset.graph.indptr), torch.from_numpy(dataset.graph.indices).long())
    with torch.no_grad():
        torch.testing.assert_close(scores, theirs(x, edges)[nodes], rtol=1e-4, atol=1e-5)


def test_exact_inference_reads_every_row_once(dataset: Dataset) -> None:
    store = FeatureStore(dataset, cache_bytes=0)
    evaluate.exact_scores(make_model(3), store, dataset.graph, dataset.split["test"])
    assert store.stats()["disk"]["lookups"] == NUM_NODES


def test_sampling_all_neighbors_gives_the_exact_accuracy(dataset: Dataset) -> None:
    model, store, nodes = make_model(2), FeatureStore(dataset), dataset.split["test"]
    assert dataset.y is not None
    exact = evaluate.exact_accuracy(model, store, dataset.graph, nodes, dataset.y)
    loader = Loader(store, NeighborSampler(dataset.graph, [-1, -1]), nodes, batch_size=64)
    assert evaluate.sampled_accuracy(model, loader, "test") == exact
    assert 0 < exact < 1


def test_sampled_accuracy_is_the_same_every_time(dataset: Dataset) -> None:
    sampler = NeighborSampler(dataset.graph, [2, 2], seed=3)
    loader = Loader(FeatureStore(dataset), sampler, dataset.split["test"], batch_size=64)
    model = make_model(2)
    assert len({evaluate.sampled_accuracy(model, loader, "test") for _ in range(3)}) == 1


@pytest.mark.parametrize("num_layers", [1, 3])
def test_exact_scores_without_kernels_are_those_of_the_kernels(
    dataset: Dataset, num_layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "BLOCK_ROWS", 64)
    model, store, nodes = make_model(num_layers), FeatureStore(dataset), dataset.split["test"]
    ours = evaluate.exact_scores(model, store, dataset.graph, nodes)
    monkeypatch.setattr(evaluate, "has_kernels", lambda x: False)
    plain = evaluate.exact_scores(model, store, dataset.graph, nodes)
    torch.testing.assert_close(plain, ours, rtol=1e-4, atol=1e-5)


def test_hidden_states_are_of_all_nodes() -> None:
    model = make_model(3)
    needed = evaluate.hidden_bytes(model, 1000)
    assert needed == 1000 * 2 * 16 * 4
