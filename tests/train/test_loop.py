"""The loop gives a device its work without asking for results in between."""

from typing import Any

import pytest
import small_dataset
import torch
from simt_cuda import SimtCuda
from torch.utils._python_dispatch import TorchDispatchMode

from gnn_ibp import FeatureStore, Loader
from gnn_ibp.samplers import NeighborSampler
from gnn_ibp.train import loop
from gnn_ibp.train import model as model_module
from gnn_ibp.train.evaluate import sampled_accuracy
from gnn_ibp.train.loop import train_epoch
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.training import Training

READS = ("aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::masked_select")


class Reads(TorchDispatchMode):
    """Counts operators that wait for a device to tell a number or a size."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += operator.name().split(".")[0] in READS
        return operator(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    ds = small_dataset.make(tmp_path_factory.mktemp("data") / "ds")
    store = FeatureStore(ds, device=SimtCuda(), cache_bytes=0, host_bytes=0)
    return Loader(store, NeighborSampler(ds.graph, [4, 3]), ds.split["train"], batch_size=50)


@pytest.mark.parametrize(("look_every", "num_looks"), [(32, 1), (2, 3), (1, 6)])
def test_losses_alone_are_read_from_a_device_and_seldom(
    loader: Loader, look_every: int, num_looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_module, "has_kernels", lambda x: False)
    monkeypatch.setattr(loop, "look_every", lambda device: look_every)
    looks: list[int] = []
    stack = torch.stack
    monkeypatch.setattr(torch, "stack", lambda tensors: looks.append(len(tensors)) or stack(tensors))
    model = GraphSAGE(16, 8, 2, 5, dropout=0.5)
    with Reads() as reads:
        train_epoch(Training(model, torch.optim.SGD(model.parameters(), lr=0.1)), loader, seed=0)
    assert sum(looks) == len(loader) == 6
    assert len(looks) == num_looks
    assert reads.count == 0


def test_right_answers_are_read_once(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "has_kernels", lambda x: False)
    with Reads() as reads:
        sampled_accuracy(GraphSAGE(16, 8, 2, 5), loader, "test")
    assert reads.count == 1
