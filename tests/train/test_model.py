"""GraphSAGE on bipartite layers: the same function, gradient and parameters as PyG's."""

import copy
import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from random_graphs import edge_index, full_layers, random_graph
from torch_geometric.nn.models import GraphSAGE as PyGGraphSAGE

from gnn_ibp import ops
from gnn_ibp.sample import Layer
from gnn_ibp.train.model import GraphSAGE
from gnn_ibp.train.normalize import Normalize


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """Kernels on so many threads."""
    before = ops.num_threads()
    ops.set_num_threads(num_threads)
    try:
        yield
    finally:
        ops.set_num_threads(before)


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


@pytest.mark.parametrize("hidden", [1, 16, 33, 130])
def test_step_does_not_depend_on_threads(hidden: int) -> None:
    torch.manual_seed(0)
    layers = full_layers(*random_graph(700, 6000, seed=3), 3)
    model, x = GraphSAGE(9, hidden, 3, 4, dropout=0.3), torch.randn(700, 9)

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        model(x, layers, [5, 6]).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    with threads(1):
        alone = gradients()
    with threads(4):
        together = gradients()
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_minibatches_of_changing_size_share_memory_without_harm() -> None:
    torch.manual_seed(0)
    model = GraphSAGE(6, 16, 2, 3)
    sizes = [60, 200, 30, 200]
    graphs = [full_layers(*random_graph(n, 5 * n, seed=n), 2) for n in sizes]
    xs = [torch.randn(n, 6) for n in sizes]
    fresh = []
    for layers, x in zip(graphs, xs, strict=True):
        fresh.append(copy.deepcopy(model)(x, layers))
    held = [model(x, layers) for layers, x in zip(graphs, xs, strict=True)]  # all at once
    assert all(torch.equal(a, b) for a, b in zip(held, fresh, strict=True))
    for scores in held:
        scores.sum().backward()


def test_model_can_be_copied() -> None:
    layers, x = full_layers(*random_graph(30, 90, seed=1), 2), torch.randn(30, 4)
    model = GraphSAGE(4, 8, 2, 3)
    scores = model(x, layers)
    assert torch.equal(copy.deepcopy(model)(x, layers), scores)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x, layers), scores)


def test_second_backward_is_an_error() -> None:
    layers = full_layers(*random_graph(30, 90, seed=1), 2)
    loss = GraphSAGE(4, 8, 2, 3)(torch.randn(30, 4), layers).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_gradient_of_the_mean_reaches_every_source() -> None:
    torch.manual_seed(0)
    indptr, indices = random_graph(30, 90, seed=4)
    indptr, indices = indptr[:21], indices[: int(indptr[20])]
    grad_out, grad_x = torch.randn(20, 10), torch.full((30, 5), torch.nan)
    ops.mean_and_own_grad(grad_out, indptr, indices, grad_x)
    adjacency = torch.zeros(20, 30)
    for i in range(20):
        for j in indices[indptr[i] : indptr[i + 1]]:
            adjacency[i, j] += 1 / (indptr[i + 1] - indptr[i])
    wanted = adjacency.T @ grad_out[:, :5]
    wanted[:20] += grad_out[:, 5:]
    torch.testing.assert_close(grad_x, wanted)


@pytest.mark.parametrize("index_type", [torch.int32, torch.int64])
def test_mean_of_no_neighbors_is_zero(index_type: torch.dtype) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    out = torch.full((3, 2), torch.nan)
    indices = torch.tensor([1, 0, 1]).to(index_type).numpy()
    ops.neighbor_mean(x, np.array([0, 1, 1, 3]), indices, out)
    assert torch.equal(out, torch.tensor([[3.0, 6.0], [0.0, 0.0], [2.0, 4.0]]))


def test_index_beyond_the_rows_is_refused() -> None:
    with pytest.raises(IndexError, match="indices go from 0 to 2, x has 2 rows"):
        ops.neighbor_mean(torch.zeros(2, 1), np.array([0, 2]), np.array([0, 2]), torch.zeros(1, 1))


def test_memory_whose_columns_stand_apart_is_refused() -> None:
    out = torch.zeros(3, 2).t()
    with pytest.raises(ValueError, match="back to back"):
        ops.neighbor_mean(torch.ones(2, 3), np.array([0, 1, 2]), np.array([0, 1]), out)
    assert not out.any()


def test_dropout_depends_on_key_and_position_alone() -> None:
    def dropped(key: int, size: int = 77_000) -> torch.Tensor:
        h = torch.ones(size)
        ops.relu_dropout(h, key, 1 << 15)
        return h

    with threads(1):
        alone = dropped(5)
    with threads(4):
        assert torch.equal(dropped(5), alone)
    assert torch.equal(dropped(5, 1001), alone[:1001])
    assert not torch.equal(dropped(6), alone)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(p: float) -> None:
    h = torch.ones(200_000)
    ops.relu_dropout(h, 2**64 - 1, round(p * 65536))
    assert abs(float((h == 0).double().mean()) - p) < 0.005
    assert abs(float(h.double().mean()) - 1) < 0.02
    assert len(h.unique()) == 2


@pytest.mark.parametrize("drop", [0, 1 << 14])
def test_relu_keeps_nan_and_drops_negatives(drop: int) -> None:
    special = [-1.0, -0.0, 0.0, 2.0, torch.inf, -torch.inf, torch.nan, -torch.nan, 1e-45, -1e-45]
    h = torch.tensor(special * 5000)
    before = h.clone()
    ops.relu_dropout(h, 3, drop)
    kept = (h != 0) & ~h.isnan() | h.isnan()
    wanted = torch.where(kept, before.relu() * (65536 / (65536 - drop)), 0.0)
    torch.testing.assert_close(h, wanted, rtol=0, atol=0, equal_nan=True)
    assert not h.signbit()[~h.isnan()].any()
    nan = before.isnan()
    share = float(h[nan].isnan().double().mean())
    assert abs(share - (1 - drop / 65536)) < 0.02


def test_gradient_passes_where_values_passed() -> None:
    torch.manual_seed(0)
    h, grad = torch.randn(1999), torch.randn(1999)
    ops.relu_dropout(h, 3, 1 << 14)
    passed = torch.empty(1999)
    ops.relu_dropout_grad(h, grad, 1 << 14, passed)
    torch.testing.assert_close(passed, torch.where(h > 0, grad * (4 / 3), 0.0))


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
