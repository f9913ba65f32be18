"""A data set's folder: what goes in comes out, and what is wrong with it is told."""

import errno
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_dataset import edit_meta
from torch_geometric.data import Data, HeteroData

from gnn_ibp import Dataset
from gnn_ibp.dataset_meta import FeatureInfo
from gnn_ibp.errors import FormatError

NUM_NODES, NUM_EDGES = 40, 150
RNG = np.random.default_rng(5)
X = RNG.standard_normal((NUM_NODES, 6)).astype(np.float32)
Y = RNG.integers(0, 4, NUM_NODES)
EDGES = RNG.integers(0, NUM_NODES, (2, NUM_EDGES))
SPLIT = {"train": np.arange(0, 20), "val": np.arange(20, 30), "test": np.arange(30, 40)}


def write(path: Path, **changes: Any) -> Dataset:
    return Dataset.from_arrays(path, **{"edge_index": EDGES, "x": X, "y": Y, "split": SPLIT, **changes})


def rows(dataset: Dataset, name: str = "x", raw: bool = False) -> torch.Tensor:
    with dataset.feature_file(name, raw) as file:
        out = file.row_type.empty(file.num_rows)
        file.read(np.arange(file.num_rows), out)
        return out


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


def test_blocks_of_different_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"a block has rows of float32 \(5,\), the first one has float32 \(6,\)"
    ):
        Dataset.from_arrays(tmp_path / "ds", x=iter([X, X[:, :5]]))
    assert not list(tmp_path.iterdir())


def test_graphs_without_features_edges_or_labels_are_legal(tmp_path: Path) -> None:
    bare = Dataset.from_arrays(tmp_path / "bare", num_nodes=3)
    assert (bare.num_nodes, bare.num_edges, bare.num_classes) == (3, 0, 0)
    assert bare.y is None and not bare.split and not bare.features
    assert bare.graph.indptr.tolist() == [0, 0, 0, 0]
    empty = Dataset.from_arrays(tmp_path / "empty", x=np.empty((0, 4), np.float32))
    assert empty.num_nodes == 0 and rows(empty).shape == (0, 4)


def test_statistics_count_finite_values_only_and_a_constant_column_has_scale_1(tmp_path: Path) -> None:
    x = RNG.standard_normal((1000, 4)) * [1, 1e-3, 0, 1] + [5, -1e4, 0.1, 0]
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


def test_float_labels_with_nan_become_minus_one(tmp_path: Path) -> None:
    y = Y.astype(np.float32)[:, None]
    y[35:] = np.nan
    labels = write(tmp_path / "ds", y=y).y
    assert labels is not None and labels.tolist() == [*Y[:35], *[-1] * 5]


@pytest.mark.parametrize(
    ("y", "num_classes", "message"),
    [
        (np.where(np.arange(NUM_NODES) % 7 == 5, np.nan, Y), None, r"3 of 20 training nodes .* node 5"),
        (np.where(np.arange(NUM_NODES) < 2, -3, Y), None, r"2 of 20 training nodes .* node 0"),
        (
            np.where(np.arange(NUM_NODES) == 8, 9, Y),
            4,
            r"1 labels are out of range, the first is 9 of node 8",
        ),
        (Y + 0.5, None, r"y of node 0 is .*\.5, classes are whole numbers"),
        (np.where(np.arange(NUM_NODES) == 2, np.inf, Y), None, r"y of node 2 is inf"),
        (Y[:-1], None, r"y has shape \(39,\), wanted one class number for each of 40 nodes"),
        (np.eye(4)[Y], None, r"y has shape \(40, 4\)"),
    ],
)
def test_bad_labels_are_told_with_count_and_node(
    tmp_path: Path, y: np.ndarray, num_classes: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "ds", y=y, num_classes=num_classes)
    assert not list(tmp_path.iterdir()), "a failed conversion leaves nothing"


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 40], IndexError, "split 'train' names node 40 at position 1, nodes are 0 to 39"),
        ([3, -1], IndexError, "names node -1 at position 1"),
        ([3, 5, 3], ValueError, "names node 3 more than once"),
        ([0.0, 1.0], TypeError, "has dtype float64"),
        (np.ones((40, 10), bool), ValueError, r"has shape \(40, 10\)"),
        (np.ones(39, bool), ValueError, "is a mask of 39 nodes, there are 40"),
    ],
)
def test_bad_splits_are_told(tmp_path: Path, ids: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        write(tmp_path / "ds", split={"train": np.asarray(ids)})


def test_an_edge_of_a_node_that_does_not_exist_is_told(tmp_path: Path) -> None:
    edges = EDGES.copy()
    edges[1, 77] = NUM_NODES
    with pytest.raises(IndexError, match="77"):
        write(tmp_path / "ds", edge_index=edges)
    assert not list(tmp_path.iterdir())


def test_features_of_another_number_of_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'w' has 39 rows, the graph has 40 nodes"):
        write(tmp_path / "ds", features={"w": X[1:]})
    with pytest.raises(ValueError, match="'w' has 39 rows, the graph has 40 nodes"):
        write(tmp_path / "ds", features={"w": iter([X[1:]])})
    with pytest.raises(ValueError, match="'w' has 149 rows, the graph has 150 edges"):
        write(tmp_path / "ds", edge_features={"w": EDGES[0, 1:]})


def test_labels_that_are_no_class_numbers_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"y of node 0 is 1000000000000, .* number the classes from 0"):
        write(tmp_path / "ds", y=np.where(np.arange(NUM_NODES) == 0, 10**12, 1), num_classes=None)


def test_splits_that_share_nodes_are_told(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match=r"2 nodes are in both splits 'train' and 'test', the first is node 3"
    ):
        Dataset.from_arrays(tmp_path / "ds", x=X, split={"train": np.arange(5), "test": np.arange(3, 9)})


def test_rows_that_cannot_be_stored_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="foreign byte order"):
        write(tmp_path / "ds", x=X.astype(">f4"))
    with pytest.raises(TypeError, match="rows cannot be of dtype"):
        write(tmp_path / "ds", x=np.full((NUM_NODES, 2), "a"))
    with pytest.raises(TypeError, match="x is a int"):
        write(tmp_path / "ds", x=3)
    with pytest.raises(ValueError, match=r"attribute '\.\./x'"):
        write(tmp_path / "ds", features={"../x": X})


def test_a_data_set_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    before = (write(tmp_path / "ds").path / "meta.json").read_bytes()
    with pytest.raises(FileExistsError, match="choose another folder, or remove it if"):
        write(tmp_path / "ds", y=Y * 0)
    assert (tmp_path / "ds" / "meta.json").read_bytes() == before


def test_a_data_set_that_is_being_made_is_left_to_its_maker(tmp_path: Path) -> None:
    leftover = tmp_path / ".ds.converting"
    (leftover / "data").mkdir(parents=True)
    (leftover / "data" / "x.ibp").write_bytes(b"half")
    other = tmp_path / ".other.converting"
    other.mkdir()

    def blocks() -> Any:
        with pytest.raises(
            RuntimeError, match=rf"ds is being made by another process, number {os.getpid()};"
        ):
            Dataset.from_arrays(tmp_path / "ds", num_nodes=1)
        yield X

    dataset = Dataset.from_arrays(tmp_path / "ds", features={"a": X, "b": blocks_when_asked(blocks)})
    assert dataset.num_nodes == NUM_NODES
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "ds"]


class blocks_when_asked:  # noqa: N801
    """An array whose rows come from a function, called when they are written."""

    num_rows = NUM_NODES

    def __init__(self, blocks: Any) -> None:
        from gnn_ibp.row_type import RowType

        self.blocks, self.row_type = blocks, RowType("float32", (6,))

    def sample(self, seed: int) -> np.ndarray:
        return X


def test_ctrl_c_while_converting_leaves_nothing(tmp_path: Path) -> None:
    def blocks() -> Any:
        yield X[:10]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Dataset.from_arrays(tmp_path / "ds", features={"x": blocks_when_asked(blocks)})
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("name", ["x.ibp", "indices.npy", "y.npy", "split_val.npy"])
@pytest.mark.parametrize("damage", ["missing", "cut short", "grown"])
def test_a_file_of_another_size_is_named_when_the_data_set_is_opened(
    tmp_path: Path, name: str, damage: str
) -> None:
    path = write(tmp_path / "ds").path / name
    if damage == "missing":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[:-1] if damage == "cut short" else content + b"\0")
    with pytest.raises(FormatError, match=rf"{name} .*{damage}"):
        Dataset.open(tmp_path / "ds")


def test_what_is_no_data_set_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gnn-ibp convert"):
        Dataset.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"no data set, it holds no meta\.json"):
        Dataset.open(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": "gnn_ibp dataset", "version": 1}', "\xff", "[" * 5000]
)
def test_a_damaged_meta_json_is_told(tmp_path: Path, text: str) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    meta.write_bytes(text.encode("latin1"))
    with pytest.raises(FormatError, match=r"meta\.json cannot be used"):
        Dataset.open(tmp_path / "ds")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("num_nodes",), NUM_NODES - 1),
        (("num_nodes",), str(NUM_NODES)),
        (("num_edges",), -1),
        (("num_classes",), None),
        (("has_labels",), "no"),
        (("splits",), []),
        (("splits", "other"), 3),
        (("source",), None),
        (("settings",), []),
        (("files",), {}),
        (("files", "y.npy", "num_bytes"), "many"),
        (("files", "y.npy", "xxh3"), None),
        (("version",), True),
        (("features", "x", "dtype"), "float31"),
        (("features", "x", "kind"), "hyperedge"),
        (("features", "x", "statistics"), {}),
        (("features", "x", "parts", 0, "file"), "../other/x.ibp"),
        (("files", "../other/x.ibp"), {"num_bytes": 0, "xxh3": ""}),
        (("features", "x", "statistics", "mean"), [10**400]),
        (("features", "x", "raw_bytes"), "many"),
        (("features", "x", "density"), "high"),
    ],
    ids=str,
)
def test_a_meta_json_that_was_edited_is_told(
    tmp_path: Path, place: tuple[str | int, ...], value: object
) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    fields = inner = json.loads(meta.read_text())
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    meta.write_text(json.dumps(fields))
    with pytest.raises(FormatError, match=r"meta\.json cannot be used"):
        Dataset.open(tmp_path / "ds")


def test_a_meta_json_that_makes_sense_but_was_changed_is_told(tmp_path: Path) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    text = meta.read_text()
    for changed in (text.replace('"name": "ds"', '"name": "dt"'), text + "\n", text.replace("  ", " ")):
        assert changed != text
        meta.write_text(changed)
        with pytest.raises(FormatError, match=r"meta\.json .*another checksum.*delete its last line"):
            Dataset.open(tmp_path / "ds")


def test_a_meta_json_without_a_checksum_is_of_an_older_program(tmp_path: Path) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    fields = json.loads(meta.read_text())
    del fields["xxh3"]
    meta.write_text(json.dumps(fields))
    assert Dataset.open(tmp_path / "ds").num_nodes == NUM_NODES


def test_a_feature_file_of_another_data_set_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    other = write(tmp_path / "other", x=np.roll(X, 1, axis=0))
    shutil.copy(other.path / "x.ibp", dataset.path / "x.ibp")
    size = (other.path / "x.ibp").stat().st_size  # mostly it is another
    edit_meta(dataset.path, lambda fields: fields["files"]["x.ibp"].update(num_bytes=size))
    with pytest.raises(FormatError, match="not the file that this data set was written with"):
        Dataset.open(dataset.path).feature_file()


def test_a_raw_twin_of_an_older_data_set_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    older = write(tmp_path / "older", x=np.roll(X, 1, axis=0))
    shutil.copy(older.raw_twin(), dataset.path)
    with pytest.raises(FormatError, match=r"other rows than .*x\.ibp; delete it, it is made again"):
        dataset.feature_file(raw=True)
    (dataset.path / "x.raw.ibp").unlink()
    dataset.feature_file(raw=True).close()


def test_a_split_with_nodes_that_do_not_exist_is_told(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds")
    path = dataset.path / "split_train.npy"
    ids = np.load(path)
    ids[-1] = NUM_NODES
    np.save(path, ids)
    with pytest.raises(FormatError, match=rf"split_train\.npy is damaged: it names node {NUM_NODES}"):
        _ = Dataset.open(dataset.path).split


def test_a_newer_version_and_more_parts_are_refused_with_the_reason(tmp_path: Path) -> None:
    meta = write(tmp_path / "ds").path / "meta.json"
    fields = json.loads(meta.read_text())
    meta.write_text(json.dumps(fields | {"version": 2}))
    with pytest.raises(FormatError, match="format version 2, this program reads version 1"):
        Dataset.open(tmp_path / "ds")
    fields["features"]["x"]["parts"] = [{"file": "a", "rows": [0, 20]}, {"file": "b", "rows": [20, 40]}]
    meta.write_text(json.dumps(fields))
    with pytest.raises(
        FormatError, match="'x' is stored in 2 parts; this program reads features of exactly one"
    ):
        Dataset.open(tmp_path / "ds")


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


def test_settings_reach_the_files_and_meta_json(tmp_path: Path) -> None:
    dataset = write(
        tmp_path / "ds", chunk_bits=8, layout="in-place", threshold="sweep", dedup=True, features={"id": Y}
    )
    file = dataset.feature_file()
    assert (file.layout, file.codec.unit) == ("in-place", 1)
    settings = dataset.meta.settings
    assert (
        settings["chunk_bits"] == 8 and settings["threshold"] == "sweep" and settings["layout"] == "in-place"
    )
    assert dataset.dedup and dataset.num_edges == len(set(map(tuple, EDGES.T)))
    assert write(tmp_path / "wide", chunk_bits=32, align=128).feature_file().align == 128


def test_a_chunk_width_is_used_where_it_divides_the_row(tmp_path: Path) -> None:
    dataset = write(tmp_path / "ds", chunk_bits=32, features={"flag": Y > 2})
    assert dataset.feature_file("x").codec.unit == 4
    assert dataset.feature_file("flag").codec.unit == 1
    with pytest.raises(ValueError, match="divides the rows of no feature"):
        write(tmp_path / "other", chunk_bits=64, x=X[:, :3])


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


def test_what_pyg_data_holds_beside_nodes_and_edges_is_left_out_with_a_warning(tmp_path: Path) -> None:
    data = Data(x=torch.from_numpy(X), title="a graph", whole=torch.ones(1, 3))
    with pytest.warns(UserWarning, match="left out, they have no row per node or edge: title, whole"):
        dataset = Dataset.from_pyg(data, tmp_path / "ds")
    assert list(dataset.features) == ["x"]


def test_other_pyg_data_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"HeteroData.*to_homogeneous"):
        Dataset.from_pyg(HeteroData(), tmp_path / "ds")
    masks = Data(x=torch.from_numpy(X), train_mask=torch.ones(NUM_NODES, 10, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"train_mask has shape \(40, 10\).*\[:, 0\]"):
        Dataset.from_pyg(masks, tmp_path / "ds")


def test_feature_info_survives_meta_json(tmp_path: Path) -> None:
    info = write(tmp_path / "ds").features["x"]
    again = FeatureInfo.from_json("x", json.loads(json.dumps(info.to_json())))
    assert again.statistics is not None and info.statistics is not None
    np.testing.assert_array_equal(again.statistics.mean, info.statistics.mean)
    np.testing.assert_array_equal(again.statistics.scale, info.statistics.scale)
