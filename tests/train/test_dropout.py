"""What is dropped is told by (seed, epoch, batch, layer, position), by the same numbers on every device."""

import copy
from itertools import product

import pytest
import small_dataset
import torch

from gnn_ibp import Dataset, FeatureStore, Loader, ops
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.samplers.reference import mix
from gnn_ibp.train import model as model_module
from gnn_ibp.train.dropout import dropout_keys, kept
from gnn_ibp.train.loop import train_epoch
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.training import Training

CPU = torch.device("cpu")
KEYS = [0, 5, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return small_dataset.make(tmp_path_factory.mktemp("data") / "ds")


def kept_by_kernel(key: int, drop: int, size: int) -> torch.Tensor:
    h = torch.ones(size)
    ops.relu_dropout(h, key, drop)
    return h != 0


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("drop", [1, 1 << 14, 1 << 15, 65535])
def test_torch_keeps_what_the_kernels_keep(key: int, drop: int) -> None:
    for size in (0, 1, 3, 4, 255, 257, 100_003):
        assert torch.equal(kept(key, drop, size, CPU), kept_by_kernel(key, drop, size))


@pytest.mark.parametrize("key", KEYS)
def test_draws_are_those_of_the_sampler_s_generator(key: int) -> None:
    draws = [mix(key, at // 4) >> 16 * (at % 4) & 0xFFFF for at in range(50)]
    for drop in (20_000, *sorted(draws)[:40:10]):
        wanted = [draw >= drop for draw in draws]
        assert kept(key, drop, 50, CPU).tolist() == wanted
        assert kept_by_kernel(key, drop, 50).tolist() == wanted


def test_keys_never_change() -> None:
    """A run that goes on after an update of the program drops what it would have dropped."""
    assert dropout_keys(0, 1, 0, 2) == [5836529245451711556, 8811601478698894690]
    assert dropout_keys(2**63 - 1, 7, 1000, 1) == [242620121609661924]


def test_keys_of_one_layer_do_not_depend_on_the_number_of_layers() -> None:
    assert dropout_keys(3, 2, 1, 4)[:2] == dropout_keys(3, 2, 1, 2)
    assert dropout_keys(3, 2, 1, 0) == []


def test_every_seed_epoch_batch_and_layer_has_its_key() -> None:
    keys = [key for place in product(range(6), range(6), range(6)) for key in dropout_keys(*place, 3)]
    assert len(set(keys)) == len(keys) == 6**3 * 3


@pytest.mark.parametrize("kernels", [True, False])
def test_an_epoch_drops_the_same_whatever_came_before(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, kernels: bool
) -> None:
    monkeypatch.setattr(model_module, "has_kernels", lambda x: kernels)
    store = FeatureStore(dataset)
    loader = Loader(store, NeighborSampler(dataset.graph, [4, 3]), dataset.split["train"], batch_size=50)
    torch.manual_seed(0)
    fresh = GraphSAGE(16, 8, 2, 5, dropout=0.5)

    def loss(number: int, seed: int = 3) -> float:
        model = copy.deepcopy(fresh)
        training = Training(model, torch.optim.SGD(model.parameters(), lr=0.1), epoch=number)
        return train_epoch(training, loader, seed).loss

    wanted = loss(2)
    loss(1)
    torch.manual_seed(99)
    assert loss(2) == wanted
    assert loss(2, seed=4) != wanted
