"""bfloat16 rounds the operands of products and nothing else; how a processor does it changes little."""

from pathlib import Path

import pytest
import torch
from random_graphs import full_layers, random_graph
from torch import Tensor

from gnn_ibp.sample import Layer
from gnn_ibp.train import machine, precision
from gnn_ibp.train import model as model_module
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize


@pytest.fixture(params=[False, True], ids=["emulated", "instructions"])
def instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch multiplies bfloat16 on every processor, if slowly: both ways are tried on each."""
    monkeypatch.setattr(precision, "has_instructions", lambda: request.param)


def model_of(kind: precision.Precision, num_classes: int = 5) -> GraphSAGE:
    torch.manual_seed(0)
    normalize = Normalize("standard", torch.full((12,), 3.0), torch.full((12,), 2.0))
    return GraphSAGE(12, 16, 3, num_classes, 0.25, normalize, kind)


def graph(num_nodes: int = 300) -> tuple[Tensor, list[Layer]]:
    torch.manual_seed(1)
    layers = full_layers(*random_graph(num_nodes, 5 * num_nodes, seed=3), 3)
    return torch.randn(num_nodes, 12) * 2 + 3, layers


def scores_and_gradients(model: GraphSAGE) -> list[Tensor]:
    x, layers = graph()
    scores = model(x, layers, [5, 6])
    values = scores.detach().clone()
    scores.square().mean().backward()
    return [values, *(parameter.grad for parameter in model.parameters())]


def distance(found: list[Tensor], wanted: list[Tensor]) -> float:
    """The norm of the difference, in parts of the norm of `wanted`; of the tensor that differs most."""
    return max(float((a - b).norm() / b.norm()) for a, b in zip(found, wanted, strict=True))


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("kernels", [True, False])
def test_scores_and_gradients_are_those_of_float32_rounded(
    monkeypatch: pytest.MonkeyPatch, kernels: bool
) -> None:
    wanted = scores_and_gradients(model_of("float32"))
    monkeypatch.setattr(model_module, "has_kernels", lambda x: kernels)
    found = scores_and_gradients(model_of("bfloat16"))
    assert all(tensor.dtype == torch.float32 for tensor in found)
    assert 1e-4 < distance(found, wanted) < 4e-2


@pytest.mark.usefixtures("instructions")
def test_blocks_change_sums_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = scores_and_gradients(model_of("bfloat16"))
    monkeypatch.setattr(precision, "BLOCK_ROWS", 64)
    blocks = scores_and_gradients(model_of("bfloat16"))
    assert distance(blocks, whole) < 1e-2


def test_rounded_operands_have_exact_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_instructions", lambda: False)
    a, b = torch.tensor([[1 + 2**-9, 3.0]]), torch.tensor([[1.0], [2**-20]])
    out = torch.empty(1, 1)
    precision.put_product(out, a, b, torch.tensor([2**-8]), "bfloat16")
    assert out.item() == 1 + 3 * 2**-20 + 2**-8  # 2^-9 was rounded away, sums are float32
    assert precision.inner_product(a, a, "bfloat16").tolist() == [[1.0, 3.0], [3.0, 9.0]]


@pytest.mark.usefixtures("instructions")
def test_evaluation_rounds_as_training_does() -> None:
    conv = model_of("bfloat16").sage_convs[0]
    x, (layer, *_) = graph()
    own = layer.indptr * 0  # nobody has neighbors
    alone = Layer(own, layer.indices[:0], len(x), len(x))
    torch.testing.assert_close(conv.keep(x), conv(x, alone), rtol=0, atol=1e-6)
    rounded, weight = x.bfloat16().float(), conv.lin_l.weight.bfloat16().float()
    torch.testing.assert_close(conv.give(x), rounded @ weight.t(), rtol=1e-2, atol=1e-2)


def test_unknown_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="precision is 'float16', it must be one of float32, bfloat16"):
        model_of("float16")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("processor : 0\nflags\t\t: fpu avx512f avx512_bf16 sha_ni\n", True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", True),
        ("Features\t: fp asimd bf16 i8mm\n", True),
        ("flags\t\t: fpu avx2 avx512f\nbugs\t\t: bf16\n", False),
        ("", False),
    ],
)
def test_instructions_are_those_that_the_system_tells(tmp_path: Path, lines: str, found: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(lines)
    assert precision.has_instructions(path) is found
    assert not precision.has_instructions(tmp_path / "missing")


@pytest.mark.parametrize("there", [True, False])
def test_processor_without_instructions_is_told(
    there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "has_instructions", lambda: there)
    machine.warn_without_bfloat16()
    out = capsys.readouterr().out
    assert ("no instructions for bfloat16" in out) != there
    assert out.count("\n") == (not there)
