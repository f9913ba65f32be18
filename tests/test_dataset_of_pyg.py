"""Dataset.from_pyg: what a PyG Data holds becomes a data set, or is refused with the remedy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from array_dataset import EDGES, NUM_EDGES, NUM_NODES, X, Y, rows
from torch_geometric.data import Data, HeteroData

from gnn_ibp import Dataset


def test_pyg_data_becomes_a_data_set(tmp_path: Path) -> None:
    data = Data(
        x=torch.from_numpy(X),
        edge_index=torch.from_numpy(EDGES),
        y=torch.from_numpy(Y),
        edge_attr=torch.arange(NUM_EDGES, dtype=torch.float64),
        pos=torch.arange(NUM_NODES * 6, dtype=torch.int16).view(NUM_NODES, 2, 3),
        train_mask=torch.arange(NUM_NODES) < 20,
        val_mask=torch.arange(NUM_NODES) >= 30,
    )
    dataset = Dataset.from_pyg(data, tmp_path / "ds")
    assert {name: (info.kind, info.dtype, info.row_shape) for name, info in dataset.features.items()} == {
        "x": ("node", "float32", (6,)),
        "edge_attr": ("edge", "float64", ()),
        "pos": ("node", "int16", (2, 3)),
    }
    assert torch.equal(rows(dataset, "pos"), data.pos)
    source_of = rows(dataset, "edge_attr").long()
    targets = torch.repeat_interleave(
        torch.arange(NUM_NODES), torch.from_numpy(np.diff(dataset.graph.indptr))
    )
    assert torch.equal(
        data.edge_index[:, source_of], torch.stack([torch.from_numpy(dataset.graph.indices), targets])
    )
    assert {name: len(ids) for name, ids in dataset.split.items()} == {"train": 20, "val": 10}


def test_pyg_data_with_sparse_features_is_stored_as_dense_rows(tmp_path: Path) -> None:
    dense = torch.from_numpy(np.where(X > 1, X, 0))
    for number, x in enumerate((dense.to_sparse_csr(), dense.to_sparse_coo())):
        dataset = Dataset.from_pyg(Data(x=x, num_nodes=NUM_NODES), tmp_path / str(number))
        assert torch.equal(rows(dataset), dense)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.float16, torch.bool, torch.int64])
def test_sparse_features_of_any_dtype_are_stored_as_they_are(tmp_path: Path, dtype: torch.dtype) -> None:
    numbers = torch.arange(NUM_NODES * 4).view(NUM_NODES, 4) % 3
    sparse = numbers.to_sparse_csr()
    x = torch.sparse_csr_tensor(
        sparse.crow_indices(), sparse.col_indices(), sparse.values().to(dtype), numbers.shape
    )
    dataset = Dataset.from_pyg(Data(x=x, num_nodes=NUM_NODES), tmp_path / "ds")
    assert dataset.features["x"].dtype == str(dtype).removeprefix("torch.")
    assert torch.equal(rows(dataset).view(torch.uint8), numbers.to(dtype).view(torch.uint8))


def test_what_pyg_data_holds_beside_nodes_and_edges_is_left_out_with_a_warning(tmp_path: Path) -> None:
    data = Data(x=torch.from_numpy(X), title="a graph", train_mask=torch.tensor(True), whole=torch.ones(1, 3))
    with pytest.warns(
        UserWarning, match="left out, no tensors with a row per node or edge: title, train_mask, whole"
    ):
        dataset = Dataset.from_pyg(data, tmp_path / "ds")
    assert list(dataset.features) == ["x"]


def test_edges_may_be_an_empty_list(tmp_path: Path) -> None:
    data = Data(torch.from_numpy(X), torch.tensor([[], []]), num_nodes=torch.tensor(NUM_NODES))
    assert Dataset.from_pyg(data, tmp_path / "ds").num_edges == 0


def test_other_pyg_data_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"HeteroData.*to_homogeneous"):
        Dataset.from_pyg(HeteroData(), tmp_path / "ds")
    for name, value in (("x", X), ("edge_index", EDGES), ("y", Y.tolist())):
        with pytest.raises(TypeError, match=rf"data\.{name} is a .*, wanted a torch tensor.*as_tensor"):
            Dataset.from_pyg(Data(**{"x": torch.from_numpy(X), name: value}), tmp_path / "ds")
    edges, sparse = torch.from_numpy(EDGES), torch.eye(NUM_EDGES).to_sparse()
    with pytest.raises(TypeError, match=r"data\.edge_attr has layout torch\.sparse_coo.*to_dense"):
        Dataset.from_pyg(Data(torch.from_numpy(X), edges, edge_attr=sparse), tmp_path / "ds")
    with pytest.raises(ValueError, match=r"edge_index has shape \(150,\)"):
        Dataset.from_pyg(Data(torch.from_numpy(X), edges[0]), tmp_path / "ds")
    with pytest.raises(ValueError, match=r"y has shape \(\), wanted one class number for each of 40 nodes"):
        Dataset.from_pyg(Data(torch.from_numpy(X), y=torch.tensor(1)), tmp_path / "ds")
    for dtype in (torch.uint8, torch.float32):
        masks = Data(torch.from_numpy(X), val_mask=torch.ones(NUM_NODES, dtype=dtype))
        with pytest.raises(TypeError, match=r"val_mask has dtype torch\.\w+, .*val_mask\.bool\(\)"):
            Dataset.from_pyg(masks, tmp_path / "ds")
    masks = Data(x=torch.from_numpy(X), train_mask=torch.ones(NUM_NODES, 10, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"train_mask has shape \(40, 10\).*\[:, 0\]"):
        Dataset.from_pyg(masks, tmp_path / "ds")
