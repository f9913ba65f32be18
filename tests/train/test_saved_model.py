"""A saved model predicts what it predicted, and damage is told."""

from pathlib import Path

import pytest
import torch
from random_graphs import full_layers, random_graph

from gnn_ibp.errors import FormatError
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize
from gnn_ibp.train.precision import Precision
from gnn_ibp.train.saved_model import load_model, save_model


def make_model(precision: Precision = "float32") -> GraphSAGE:
    torch.manual_seed(0)
    normalize = Normalize("standard", torch.ones(6), torch.full((6,), 3.0))
    return GraphSAGE(6, 8, 2, 3, dropout=0.5, normalize=normalize, precision=precision)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_loaded_model_gives_the_same_scores(tmp_path: Path, precision: Precision) -> None:
    model = make_model(precision).eval()
    save_model(tmp_path / "model.pt", model, {"lr": 0.1}, epoch=3)
    layers, x = full_layers(*random_graph(40, 200, seed=0), 2), torch.randn(40, 6)
    assert torch.equal(load_model(tmp_path / "model.pt")(x, layers), model(x, layers))
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    assert content["precision"] == precision
    assert content["settings"] == {"lr": 0.1}
    assert content["epoch"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_weights_of_any_device_are_saved_as_the_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of the CPU answers `cpu()` with itself: what is saved must be what `cpu()` gave."""
    moved: list[torch.Tensor] = []

    def cpu(tensor: torch.Tensor) -> torch.Tensor:
        moved.append(tensor.clone())
        return moved[-1]

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    written: list[dict[str, object]] = []
    monkeypatch.setattr(torch, "save", lambda content, file: written.append(content))
    save_model(tmp_path / "model.pt", make_model(), {})
    (content,) = written
    tensors = [*content["model"].values(), content["normalize"]["mean"], content["normalize"]["scale"]]
    assert len(tensors) == 8
    assert {id(tensor) for tensor in tensors} == {id(tensor) for tensor in moved}


def test_cut_model_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    save_model(path, make_model(), {})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FormatError, match=r"model\.pt is no model that"):
        load_model(path)


def test_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    save_model(path, make_model(), {})
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="No space left"):
        save_model(path, make_model(), {})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]
