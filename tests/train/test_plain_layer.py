"""The layer in torch's operators is the layer of our kernels: values, gradients, and what it drops."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from random_graphs import edge_index, full_layers, random_graph
from torch import Tensor
from torch_geometric.nn import SAGEConv as PyGSAGEConv
from torch_geometric.nn.models import GraphSAGE as PyGGraphSAGE

from gnn_ibp import ops
from gnn_ibp.sample import Layer
from gnn_ibp.train import model as model_module
from gnn_ibp.train.model import GraphSAGE, SAGEConv
from gnn_ibp.train.normalize import Affine, Normalize
from gnn_ibp.train.plain_layer import neighbor_mean, plain_layer, relu_dropout
from gnn_ibp.train.precision import Precision
from gnn_ibp.train.sage_layer import Activation, Memory, SageLayer

RELU = Activation(key=0, drop=0)
DROPOUT = Activation(key=5, drop=1 << 14)


@contextmanager
def deterministic() -> Iterator[None]:
    """Torch refuses operators whose result may differ from call to call."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models compute as they do on a device that our kernels do not serve."""
    monkeypatch.setattr(model_module, "has_kernels", lambda x: False)


def bipartite(num_src: int, num_dst: int, num_edges: int, seed: int) -> Layer:
    indptr, indices = random_graph(num_src, num_edges, seed)
    indptr = indptr[: num_dst + 1]
    return Layer(indptr, indices[: int(indptr[-1])], num_src, num_dst)


def weights(in_dim: int, out_dim: int) -> list[Tensor]:
    torch.manual_seed(7)
    shapes = (out_dim, in_dim), (out_dim,), (out_dim, in_dim)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def both_layers(
    x: Tensor,
    out_dim: int,
    layer: Layer,
    affine: Affine | None,
    activation: Activation | None,
    precision: Precision = "float32",
) -> list[list[Tensor]]:
    """Result and gradients, first of our kernels, then of torch's operators."""
    found = []
    for plain in (False, True):
        leaf = x.clone().requires_grad_(affine is None)
        given = weights(x.shape[1], out_dim)
        with deterministic():
            if plain:
                out = plain_layer(leaf, *given, layer, affine, activation, precision)
            else:
                out = SageLayer.apply(leaf, *given, layer, affine, activation, Memory(), precision)
            values = out.detach().clone()  # the kernels' backward works in this memory
            out.square().sum().backward()
        leaves = [*given, leaf] if affine is None else given
        found.append([values, *(leaf.grad for leaf in leaves)])
    return found


@pytest.mark.parametrize("activation", [None, RELU, DROPOUT])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("num_src", "num_dst", "num_edges"),
    [(300, 100, 2000), (300, 300, 900), (50, 20, 0), (1, 1, 3), (5000, 4500, 9000)],
)
def test_values_and_gradients_are_those_of_the_kernels(
    num_src: int, num_dst: int, num_edges: int, normalized: bool, activation: Activation | None
) -> None:
    torch.manual_seed(0)
    layer = bipartite(num_src, num_dst, num_edges, seed=1)
    x = torch.randn(num_src, 12) * 2 + 3
    affine = (torch.full((12,), 3.0), torch.rand(12) + 0.5) if normalized else None
    ours, plain = both_layers(x, 9, layer, affine, activation)
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_random_graphs_have_nodes_without_neighbors() -> None:
    assert (bipartite(300, 300, 900, seed=1).indptr.diff() == 0).any()


def test_nodes_without_neighbors_give_their_own_part_alone() -> None:
    x, (weight_l, bias, weight_r) = torch.randn(3, 4), weights(4, 2)
    layer = Layer(torch.tensor([0, 0, 2]), torch.tensor([2, 2]), 3, 2)
    shift, factor = torch.full((4,), 100.0), torch.full((4,), 2.0)
    out = plain_layer(x, weight_l, bias, weight_r, layer, (shift, factor), None, "float32")
    torch.testing.assert_close(out[0], (x[0] - 100) * 2 @ weight_r.T + bias)
    assert torch.equal(neighbor_mean(x, layer.indptr, layer.indices)[0], torch.zeros(4))


def test_no_destinations_give_no_rows_and_no_gradient() -> None:
    x, given = torch.randn(7, 4, requires_grad=True), weights(4, 2)
    layer = Layer(torch.tensor([0]), torch.empty(0, dtype=torch.int64), 7, 0)
    out = plain_layer(x, *given, layer, None, RELU, "float32")
    out.sum().backward()
    assert out.shape == (0, 2)
    assert not x.grad.any()


@pytest.mark.parametrize("dim", [0, 1, 5])
def test_mean_of_no_edges_is_zero(dim: int) -> None:
    indptr, indices = torch.zeros(4, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    assert torch.equal(neighbor_mean(torch.ones(3, dim), indptr, indices), torch.zeros(3, dim))


def test_layer_is_pygs() -> None:
    torch.manual_seed(0)
    layer, x = bipartite(200, 80, 1500, seed=2), torch.randn(200, 12)
    theirs = PyGSAGEConv(12, 9)
    destinations = edge_index(layer.indptr, layer.indices)
    wanted = theirs((x, x[:80]), destinations, size=(200, 80))
    given = theirs.lin_l.weight, theirs.lin_l.bias, theirs.lin_r.weight
    torch.testing.assert_close(
        plain_layer(x, *given, layer, None, None, "float32"), wanted, rtol=1e-4, atol=1e-5
    )


@pytest.mark.usefixtures("no_kernels")
def test_model_and_its_gradients_are_pygs() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(200, 1500, seed=2)
    x, y = torch.randn(200, 12), torch.randint(0, 5, (200,))
    model, theirs = GraphSAGE(12, 40, 3, 5), PyGGraphSAGE(12, 40, 3, 5)
    theirs.load_state_dict(model.state_dict())
    with deterministic():
        loss = torch.nn.functional.cross_entropy(model(x, full_layers(indptr, indices, 3)), y)
        loss.backward()
    torch.nn.functional.cross_entropy(theirs(x, edge_index(indptr, indices)), y).backward()
    wanted = dict(theirs.named_parameters())
    assert wanted.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.float64])
@pytest.mark.parametrize("kind", ["standard", "row", "none"])
def test_model_takes_the_dtypes_and_normalizations_of_the_kernels(
    dtype: torch.dtype, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    x = (torch.randn(80, 2, 3) * 20).to(dtype)
    statistics = (torch.full((6,), 2.0), torch.full((6,), 20.0)) if kind == "standard" else ()
    model = GraphSAGE(6, 8, 2, 3, normalize=Normalize(kind, *statistics)).eval()
    layers = full_layers(*random_graph(80, 300, seed=6), 2)
    ours = model(x, layers)
    monkeypatch.setattr(model_module, "has_kernels", lambda x: False)
    torch.testing.assert_close(model(x, layers), ours, rtol=1e-4, atol=1e-4)


def test_tensors_outside_the_cpu_are_computed_by_torch() -> None:
    layers = full_layers(*random_graph(30, 90, seed=1), 2)
    there = [Layer(layer.indptr.to("meta"), layer.indices.to("meta"), 30, 30) for layer in layers]
    model = GraphSAGE(4, 8, 2, 3).to("meta")
    assert model(torch.empty(30, 4, device="meta"), there).shape == (30, 3)


def test_layer_has_the_parameters_of_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = bipartite(30, 20, 90, seed=1), torch.randn(30, 4)
    conv = SAGEConv(4, 8)
    ours = conv(x, layer)
    monkeypatch.setattr(model_module, "has_kernels", lambda x: False)
    torch.testing.assert_close(conv(x, layer), ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("drop", [1, 1 << 14, 1 << 15, 65535])
def test_relu_and_dropout_are_those_of_the_kernels(drop: int) -> None:
    torch.manual_seed(0)
    h = torch.randn(301, 17)
    wanted = h.clone()
    ops.relu_dropout(wanted, 2**64 - 3, drop)
    assert torch.equal(relu_dropout(h, Activation(2**64 - 3, drop)), wanted)


def test_gradient_passes_where_values_passed() -> None:
    torch.manual_seed(0)
    h = torch.randn(50, 40, requires_grad=True)
    out = relu_dropout(h, Activation(3, 1 << 14))
    out.sum().backward()
    torch.testing.assert_close(h.grad, torch.where(out > 0, 4 / 3, 0.0))


def test_relu_keeps_nan_so_that_it_is_found() -> None:
    h = torch.full((100, 10), torch.nan)
    assert relu_dropout(h, RELU).isnan().all()
    assert abs(float(relu_dropout(h, Activation(1, 1 << 15)).isnan().double().mean()) - 0.5) < 0.1
