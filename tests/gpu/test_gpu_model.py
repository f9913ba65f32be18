"""The model on a GPU computes what it computes on the CPU, and the same every time."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from small_dataset import NUM_CLASSES, make
from torch import Tensor
from torch.nn.functional import cross_entropy

from gnn_ibp import Dataset, FeatureStore, Loader, MiniBatch
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train.evaluate import exact_scores, sampled_accuracy
from gnn_ibp.train.loop import train_epoch
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize
from gnn_ibp.train.training import Training


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch refuses operators whose results may differ from call to call."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make(tmp_path_factory.mktemp("data") / "ds")


def make_model(dropout: float = 0.0) -> GraphSAGE:
    torch.manual_seed(0)
    normalize = Normalize("standard", torch.full((16,), 0.5), torch.full((16,), 2.0))
    return GraphSAGE(16, 32, 2, NUM_CLASSES, dropout, normalize)


def make_loader(dataset: Dataset, device: Any) -> Loader:
    store = FeatureStore(dataset, device, cache_bytes="20KiB", host_bytes=0)
    return Loader(store, NeighborSampler(dataset.graph, [4, 3]), dataset.split["train"], batch_size=64)


def step(model: GraphSAGE, batch: MiniBatch) -> list[Tensor]:
    """Scores, loss and gradients, on the CPU."""
    scores = model(batch.x, batch.layers, [7])
    kept = scores.detach().cpu().clone()
    loss = cross_entropy(scores, batch.y)
    loss.backward()
    return [kept, loss.detach().cpu(), *(parameter.grad.cpu() for parameter in model.parameters())]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_scores_and_gradients_are_those_of_the_cpu(cuda: Any, dataset: Dataset, dropout: float):
    here, there = make_model(dropout), make_model(dropout).to(cuda.device)
    for ours, theirs in zip(make_loader(dataset, "cpu"), make_loader(dataset, cuda), strict=True):
        for one, other in zip(step(here, ours), step(there, theirs), strict=True):
            torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-5)


def test_what_is_dropped_depends_on_the_key_alone(cuda: Any, dataset: Dataset):
    batch, model = next(iter(make_loader(dataset, cuda))), make_model(0.5).to(cuda.device)
    first, again, other = (model(batch.x, batch.layers, [key]) for key in (7, 7, 8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_epochs_are_the_same_digit_for_digit(cuda: Any, dataset: Dataset):
    def losses() -> list[float]:
        model, loader = make_model(0.5).to(cuda.device), make_loader(dataset, cuda)
        training, found = Training(model, torch.optim.Adam(model.parameters())), []
        for _ in range(3):
            found.append(train_epoch(training, loader, seed=3).loss)
            training.next_epoch()
        return [*found, sampled_accuracy(model, loader, "test")]

    assert losses() == losses()


def test_exact_scores_are_those_of_the_cpu(cuda: Any, dataset: Dataset):
    model, nodes = make_model(), dataset.split["test"]
    wanted = exact_scores(copy.deepcopy(model), FeatureStore(dataset), dataset.graph, nodes)
    store = FeatureStore(dataset, cuda, cache_bytes="20KiB", host_bytes="1MiB")
    found = exact_scores(model.to(cuda.device), store, dataset.graph, nodes)
    assert found.device == cuda.device
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-3, atol=1e-5)
