"""GraphSAGE on bipartite layers: the same function, gradient and parameters as PyG's."""

import pytest
import torch
from random_graphs import edge_index, full_layers, random_graph
from torch_geometric.nn.models import GraphSAGE as PyGGraphSAGE

from gnn_ibp import ops
from gnn_ibp.sample import Layer
from gnn_ibp.train.model import GraphSAGE, MeanAndOwn, ReLUDropout
from gnn_ibp.train.normalize import Normalize


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_saved_weights_load_into_pyg_and_give_the_same_scores(num_layers: int) -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(200, 1500, seed=1)
    x = torch.randn(200, 12)
    model = GraphSAGE(12, 16, num_layers, 5).eval()
    theirs = PyGGraphSAGE(12, 16, num_layers, 5).eval()
    theirs.load_state_dict(model.state_dict())
    ours = model(x, full_layers(indptr, indices, num_layers))
    torch.testing.assert_close(ours, theirs(x, edge_index(indptr, indices)), rtol=1e-5, atol=1e-6)


def test_gradients_are_pygs() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(200, 1500, seed=2)
    x, y = torch.randn(200, 12), torch.randint(0, 5, (200,))
    model = GraphSAGE(12, 40, 3, 5)
    theirs = PyGGraphSAGE(12, 40, 3, 5)
    theirs.load_state_dict(model.state_dict())
    torch.nn.functional.cross_entropy(model(x, full_layers(indptr, indices, 3)), y).backward()
    torch.nn.functional.cross_entropy(theirs(x, edge_index(indptr, indices)), y).backward()
    wanted = dict(theirs.named_parameters())
    assert wanted.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-4, atol=1e-6)


def test_layers_use_prefixes_of_the_nodes() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3)
    indptr, indices = torch.tensor([0, 1, 3]), torch.tensor([1, 2, 3])
    model = GraphSAGE(3, 8, 2, 2).eval()
    scores = model(x, [Layer(indptr, indices, 4, 2), Layer(indptr[:2], indices[:1], 2, 1)])
    first, second = model.convs

    def layer(conv: torch.nn.Module, own: torch.Tensor, neighbors: torch.Tensor) -> torch.Tensor:
        return conv.lin_l(neighbors.mean(0)) + conv.lin_r(own)

    h0 = layer(first, x[0], x[1:2]).relu()
    h1 = layer(first, x[1], x[2:4]).relu()
    torch.testing.assert_close(scores, layer(second, h0, h1[None])[None])


@pytest.mark.parametrize("dim", [1, 16, 33, 130])
def test_mean_and_its_gradient_do_not_depend_on_threads(dim: int) -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(700, 6000, seed=3)
    x, grad = torch.randn(700, dim), torch.randn(700, 2 * dim)
    layer = Layer(indptr, indices, 700, 700)
    results = []
    for threads in (1, 4):
        before = ops.num_threads()
        ops.set_num_threads(threads)
        try:
            leaf = x.clone().requires_grad_()
            out = MeanAndOwn.apply(leaf, layer, None)
            out.backward(grad)
            results.append((out.detach(), leaf.grad))
        finally:
            ops.set_num_threads(before)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def test_mean_and_own_is_differentiated_rightly() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(30, 90, seed=4)
    x = torch.randn(30, 5, requires_grad=True)
    layer = Layer(indptr[:21], indices[: int(indptr[20])], 30, 20)
    weight = torch.randn(20, 10)
    (MeanAndOwn.apply(x, layer, None) * weight).sum().backward()
    adjacency = torch.zeros(20, 30)
    for i in range(20):
        for j in indices[indptr[i] : indptr[i + 1]]:
            adjacency[i, j] += 1 / (indptr[i + 1] - indptr[i])
    wanted = adjacency.T @ weight[:, :5]
    wanted[:20] += weight[:, 5:]
    torch.testing.assert_close(x.grad, wanted)


def test_dropout_depends_on_its_key_alone() -> None:
    h = torch.ones(1000, 77)

    def dropped(key: int, threads: int) -> torch.Tensor:
        before = ops.num_threads()
        ops.set_num_threads(threads)
        try:
            return ReLUDropout.apply(h.clone(), key, 1 << 15)
        finally:
            ops.set_num_threads(before)

    assert torch.equal(dropped(5, 1), dropped(5, 4))
    assert not torch.equal(dropped(5, 1), dropped(6, 1))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(p: float) -> None:
    h = torch.ones(200_000)
    out = ReLUDropout.apply(h, 2**64 - 1, round(p * 65536))
    assert abs(float((out == 0).double().mean()) - p) < 0.005
    assert abs(float(out.double().mean()) - 1) < 0.02
    assert len(out.unique()) == 2


def test_dropout_passes_gradients_where_values_passed() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 31, requires_grad=True)
    out = ReLUDropout.apply(x * 1, 3, 1 << 14)
    out.backward(torch.ones_like(out))
    torch.testing.assert_close(x.grad, torch.where(out > 0, 4 / 3, 0.0))
    assert not (out[x <= 0] != 0).any()


def test_evaluation_drops_nothing() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(50, 200, seed=5)
    x, layers = torch.randn(50, 4), full_layers(indptr, indices, 2)
    model = GraphSAGE(4, 8, 2, 3, dropout=0.5)
    training = model(x, layers, [1])
    assert torch.equal(model.eval()(x, layers), model(x, layers))
    assert not torch.equal(training, model(x, layers))


def test_normalization_as_rows_are_read_is_the_normalization_before() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(80, 300, seed=6)
    x = torch.randn(80, 6) * 5 + 100
    layers = full_layers(indptr, indices, 2)
    normalize = Normalize("standard", x.mean(0), x.std(0))
    model = GraphSAGE(6, 8, 2, 3, normalize=normalize).eval()
    before = x.clone()
    scores = model(x, layers)
    assert torch.equal(x, before)
    model.normalize = Normalize()
    torch.testing.assert_close(scores, model((x - x.mean(0)) / x.std(0), layers), rtol=1e-4, atol=1e-4)


def test_rows_are_divided_by_their_l1_norm() -> None:
    x = torch.tensor([[1.0, -3.0], [0.0, 0.0]])
    assert torch.equal(Normalize("row")(x), torch.tensor([[0.25, -0.75], [0.0, 0.0]]))


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.bfloat16, torch.float64])
def test_features_of_any_dtype_and_shape_become_float32_rows(dtype: torch.dtype) -> None:
    x = torch.arange(24).reshape(2, 3, 4).to(dtype)
    rows = Normalize()(x)
    assert torch.equal(rows, torch.arange(24, dtype=torch.float32).reshape(2, 12))


def test_standard_needs_statistics() -> None:
    with pytest.raises(ValueError, match="needs mean and scale"):
        Normalize("standard")
    with pytest.raises(ValueError, match="takes no mean"):
        Normalize("none", torch.zeros(3), torch.ones(3))
