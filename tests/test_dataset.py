"""A data set's folder: what goes in comes out, wherever it is moved to."""

import errno
import pickle
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from array_dataset import EDGES, NUM_EDGES, NUM_NODES, SPLIT, X, Y, rows, write

from gnn_ibp import Dataset
from gnn_ibp.conversion.row_stream import IteratedRows
from gnn_ibp.errors import FormatError


def test_arrays_come_back_as_they_went_in(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    assert (dataset.num_nodes, dataset.num_edges, dataset.num_classes) == (NUM_NODES, NUM_EDGES, 4)
    np.testing.assert_array_equal(rows(dataset).numpy().view(np.uint32), X.view(np.uint32))
    assert dataset.y is not None and dataset.y.dtype == torch.int64
    np.testing.assert_array_equal(dataset.y.numpy(), Y)
    for name, ids in SPLIT.items():
        assert dataset.split[name].dtype == torch.int64
        np.testing.assert_array_equal(dataset.split[name].numpy(), ids)
    graph = dataset.graph
    targets = np.repeat(np.arange(NUM_NODES), np.diff(graph.indptr))
    assert sorted(zip(graph.indices, targets, strict=True)) == sorted(map(tuple, EDGES.T))


def test_torch_arrays_are_as_good_as_numpy_ones(tmp_path: Path) -> None:
    dataset = write(
        tmp_path / "ds",
        edge_index=torch.from_numpy(EDGES),
        x=torch.from_numpy(X).to(torch.bfloat16).requires_grad_(),
        y=torch.from_numpy(Y),
        split={"train": torch.arange(NUM_NODES) < 10},
    )
    assert torch.equal(rows(dataset), torch.from_numpy(X).to(torch.bfloat16))
    assert dataset.split["train"].tolist() == list(range(10))


def test_edge_attributes_follow_their_edges(tmp_path: Path) -> None:
    ids = np.arange(NUM_EDGES)
    dataset = write(tmp_path / "ds", edge_features={"edge_attr": ids[:, None]}, edge_arrays={"kind": ids})
    graph = dataset.graph
    targets = np.repeat(np.arange(NUM_NODES), np.diff(graph.indptr))
    source_of = rows(dataset, "edge_attr")[:, 0].numpy()
    np.testing.assert_array_equal(EDGES[:, source_of], [graph.indices, targets])
    np.testing.assert_array_equal(dataset.array("kind").numpy(), source_of)
    np.testing.assert_array_equal(graph.edge_perm, source_of)


def test_a_reverse_edge_has_the_attribute_of_the_edge_it_reverses(tmp_path: Path) -> None:
    edges = np.array([[0, 1, 2], [1, 2, 2]])
    dataset = Dataset.from_arrays(
        tmp_path / "ds", edge_index=edges, num_nodes=3, edge_features={"w": np.arange(3)}, undirected=True
    )
    targets = np.repeat(np.arange(3), np.diff(dataset.graph.indptr))
    found = dict(
        zip(zip(dataset.graph.indices, targets, strict=True), rows(dataset, "w").tolist(), strict=True)
    )
    assert found == {(0, 1): 0, (1, 0): 0, (1, 2): 1, (2, 1): 1, (2, 2): 2}
    assert dataset.undirected and dataset.features["w"].row_shape == ()


@pytest.mark.parametrize("block_rows", [1, 7, NUM_NODES])
def test_an_iterator_of_blocks_is_read_once_and_tells_the_number_of_nodes(
    tmp_path: Path, block_rows: int
) -> None:
    blocks = (X[first : first + block_rows] for first in range(0, NUM_NODES, block_rows))
    dataset = Dataset.from_arrays(tmp_path / "ds", x=blocks, edge_index=EDGES)
    np.testing.assert_array_equal(rows(dataset).numpy(), X)
    assert dataset.num_nodes == NUM_NODES
    assert next(blocks, None) is None


@pytest.mark.parametrize("torch_rows", [False, True])
def test_an_iterator_may_fill_the_same_memory_for_every_block(tmp_path: Path, torch_rows: bool) -> None:
    def blocks() -> Any:
        block = np.empty((8, 6), np.float32)
        for first in range(0, NUM_NODES, 8):
            block[:] = X[first : first + 8]
            yield torch.from_numpy(block) if torch_rows else block

    dataset = write(tmp_path / "ds", x=blocks())
    with dataset.feature_file() as file:
        rows = file.row_type.empty(NUM_NODES)
        file.read(np.arange(NUM_NODES), rows)
    np.testing.assert_array_equal(rows, X)


def test_a_mapped_block_is_read_in_little_memory(tmp_path: Path) -> None:
    num_rows, row_bytes = 1 << 20, 512
    rows = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(num_rows, row_bytes // 4))
    stream = IteratedRows([rows], "x")
    tracemalloc.start()
    try:
        assert len(stream.sample(0)) > 1000
        assert sum(len(block) for block in stream.blocks()) == num_rows
        assert tracemalloc.get_traced_memory()[1] < num_rows * row_bytes // 2
    finally:
        tracemalloc.stop()


def test_counts_may_be_of_any_integer_type(tmp_path: Path) -> None:
    dataset = Dataset.from_arrays(
        tmp_path / "ds", edge_index=EDGES, y=Y, num_nodes=np.int64(NUM_NODES), num_classes=torch.tensor(9)
    )
    assert (dataset.num_nodes, dataset.num_classes) == (NUM_NODES, 9)


def test_labels_may_be_of_half_precision(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    labels = np.where(np.arange(NUM_NODES) < 20, Y, np.nan).astype(np.float16)
    expected = np.where(np.arange(NUM_NODES) < 20, Y, -1)
    assert write(tmp_path / "ds", y=labels).y.tolist() == expected.tolist()
    assert not recwarn.list


def test_graphs_without_features_edges_or_labels_are_legal(tmp_path: Path) -> None:
    bare = Dataset.from_arrays(tmp_path / "bare", num_nodes=3)
    assert (bare.num_nodes, bare.num_edges, bare.num_classes) == (3, 0, 0)
    assert bare.y is None and not bare.split and not bare.features
    assert bare.graph.indptr.tolist() == [0, 0, 0, 0]
    empty = Dataset.from_arrays(tmp_path / "empty", x=np.empty((0, 4), np.float32))
    assert empty.num_nodes == 0 and rows(empty).shape == (0, 4)


def test_statistics_count_finite_values_only_and_a_constant_column_has_scale_1(tmp_path: Path) -> None:
    x = np.random.default_rng(5).standard_normal((1000, 4)) * [1, 1e-3, 0, 1] + [5, -1e4, 0.1, 0]
    x[3, 0], x[4, 0], x[:, 3] = np.nan, np.inf, np.nan
    statistics = Dataset.from_arrays(tmp_path / "ds", x=x).statistics("x")
    assert statistics is not None and statistics.mean.dtype == np.float32
    finite = np.delete(x[:, 0], [3, 4])
    np.testing.assert_allclose(statistics.mean, [finite.mean(), x[:, 1].mean(), 0.1, 0], rtol=1e-6)
    np.testing.assert_allclose(statistics.scale, [finite.std(), x[:, 1].std(), 1, 1], rtol=1e-4)


def test_statistics_are_of_floats_only_and_density_tells_sparse_rows(tmp_path: Path) -> None:
    sparse = np.zeros((NUM_NODES, 10), np.float32)
    sparse[:, 3] = 1
    dataset = write(tmp_path / "ds", features={"count": np.ones((NUM_NODES, 2), np.int8), "sparse": sparse})
    assert dataset.statistics("count") is None
    assert dataset.features["sparse"].density == pytest.approx(0.1)
    assert dataset.features["x"].is_dense_float
    assert not dataset.features["sparse"].is_dense_float and not dataset.features["count"].is_dense_float


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_labels_with_nan_become_minus_one(tmp_path: Path, dtype: type) -> None:
    y = Y.astype(dtype)[:, None]
    y[35:] = np.nan
    labels = write(tmp_path / "ds", y=y).y
    assert labels is not None and labels.tolist() == [*Y[:35], *[-1] * 5]


def test_it_can_be_moved_pickled_and_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / "ds")
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(tmp_path / "ds", moved)
    for path in (*moved.iterdir(), moved):
        path.chmod(0o555 if path.is_dir() else 0o444)
    dataset = pickle.loads(pickle.dumps(Dataset.open(moved)))
    np.testing.assert_array_equal(rows(dataset).numpy(), X)
    assert len(pickle.dumps(dataset)) < 1000


def test_the_raw_twin_holds_the_same_rows_none_encoded(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds", x=np.zeros((NUM_NODES, 6), np.float32))
    with dataset.feature_file(raw=True) as twin, dataset.feature_file() as encoded:
        assert twin.num_raw_rows == NUM_NODES > encoded.num_raw_rows
        assert twin.path.name == "x.raw.ibp"
    assert torch.equal(rows(dataset, raw=True), rows(dataset))
    assert Dataset.open(dataset.path).raw_twin().stat().st_mtime_ns == dataset.raw_twin().stat().st_mtime_ns


def test_a_raw_twin_that_cannot_be_written_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = write(tmp_path / "ds")

    def read_only(file: Any, path: Path) -> None:
        raise PermissionError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("gnn_ibp.dataset.write_raw_twin", read_only)
    with pytest.raises(
        OSError, match=r"x\.raw\.ibp cannot be written there, which is needed once; copy the data set"
    ):
        dataset.feature_file(raw=True)


def test_a_raw_twin_of_other_rows_is_refused(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    other = Dataset.from_arrays(tmp_path / "other", x=X[1:])
    shutil.copy(other.raw_twin(), dataset.path / "x.raw.ibp")
    with pytest.raises(FormatError, match="delete it, it is made again"):
        dataset.feature_file(raw=True)


def test_unknown_names_are_answered_with_the_nearest(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds", features={"degree": X}, arrays={"node_type": Y})
    with pytest.raises(KeyError, match="did you mean 'degree'"):
        dataset.feature_file("degre")
    with pytest.raises(KeyError, match="node_type"):
        dataset.array("edge_type")


def test_a_chunk_width_is_used_where_it_divides_the_row(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds", chunk_bits=32, features={"flag": Y > 2})
    assert dataset.feature_file("x").codec.unit == 4
    assert dataset.feature_file("flag").codec.unit == 1
    with pytest.raises(ValueError, match="divides the rows of no feature"):
        write(tmp_path / "other", chunk_bits=64, x=X[:, :3])
