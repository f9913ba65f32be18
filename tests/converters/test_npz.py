""".npz files as a source: every row as it was, and what cannot be read is named."""

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_rows import feature_rows

from gnn_ibp.converters.npz import npz_parts
from gnn_ibp.converters.prepare import convert_source
from gnn_ibp.converters.zip_arrays import ZipArrays
from gnn_ibp.dataset import Dataset
from gnn_ibp.errors import FormatError

NUM_NODES, NUM_COLUMNS = 50, 8
RNG = np.random.default_rng(1)
DENSE = np.where(RNG.random((NUM_NODES, NUM_COLUMNS)) < 0.3, RNG.standard_normal((NUM_NODES, NUM_COLUMNS)), 0)
DENSE = DENSE.astype(np.float32)
GRAPH: dict[str, Any] = {
    "edge_index": RNG.integers(0, NUM_NODES, (2, 120)),
    "y": RNG.integers(-1, 3, NUM_NODES),
    "directed": np.bool_(True),
}
GRAPH["train_idx"] = np.flatnonzero(GRAPH["y"] >= 0)[:20]
GRAPH["test_idx"] = np.flatnonzero(GRAPH["y"] >= 0)[20:]


def csr(dense: np.ndarray) -> dict[str, Any]:
    rows, columns = dense.nonzero()
    return {
        "x_indptr": np.searchsorted(rows, np.arange(len(dense) + 1)),
        "x_indices": columns,
        "x_data": dense[rows, columns],
        "x_shape": np.array(dense.shape),
    }


def convert(tmp_path: Path, **settings: Any) -> Dataset:
    return Dataset.open(convert_source(f"npz:{tmp_path / 'graph.npz'}", tmp_path / "out", **settings))


def write_members(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


def npy(array: Any, version: tuple[int, int] | None = None) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), version)
    return out.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("features", [{"x": DENSE}, csr(DENSE)], ids=["dense", "sparse"])
def test_a_graph_comes_out_as_it_went_in(tmp_path: Path, save: Any, features: dict[str, Any]) -> None:
    save(tmp_path / "graph.npz", **GRAPH, **features)
    dataset = convert(tmp_path)
    np.testing.assert_array_equal(feature_rows(dataset).view(np.uint32), DENSE.view(np.uint32))
    assert dataset.y is not None
    np.testing.assert_array_equal(dataset.y.numpy(), GRAPH["y"])
    np.testing.assert_array_equal(dataset.split["train"].numpy(), GRAPH["train_idx"])
    np.testing.assert_array_equal(dataset.split["test"].numpy(), GRAPH["test_idx"])
    targets = np.repeat(np.arange(NUM_NODES), np.diff(dataset.graph.indptr))
    assert sorted(zip(dataset.graph.indices, targets, strict=True)) == sorted(
        map(tuple, GRAPH["edge_index"].T)
    )
    assert dataset.name == "graph" and dataset.meta.directed is True


def test_rows_are_streamed_in_blocks_and_sampled_from_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_ibp.conversion.row_stream.BLOCK_BYTES", 100)
    for features in ({"x": DENSE}, csr(DENSE)):
        np.savez(tmp_path / "graph.npz", **GRAPH, **features)
        rows = npz_parts(tmp_path / "graph.npz").features["x"]
        blocks = [np.asarray(block) for block in rows.blocks()]
        assert len(blocks) > 10 and max(block.nbytes for block in blocks) <= 100
        np.testing.assert_array_equal(np.concatenate(blocks), DENSE)
        np.testing.assert_array_equal(np.asarray(rows.sample(seed=0)), DENSE)
        monkeypatch.setattr("gnn_ibp.fit_sample.SAMPLE_ROWS", 7)
        sample = np.asarray(rows.sample(seed=0))
        monkeypatch.setattr("gnn_ibp.fit_sample.SAMPLE_ROWS", 32768)
        assert len(sample) == 7
        assert {row.tobytes() for row in sample} <= {row.tobytes() for row in DENSE}


def test_types_and_names_are_kept(tmp_path: Path) -> None:
    node_type, edge_type = np.arange(NUM_NODES) // 20, np.arange(120) % 3
    names = {
        "node_type_names": np.array(["paper", "author", "venue"]),
        "class_names": np.array(["a", "b", "c", "d"]),
    }
    np.savez(tmp_path / "graph.npz", **GRAPH, x=DENSE, node_type=node_type, edge_type=edge_type, **names)
    dataset = convert(tmp_path)
    np.testing.assert_array_equal(dataset.array("node_type").numpy(), node_type)
    assert dataset.graph.edge_perm is not None
    np.testing.assert_array_equal(dataset.array("edge_type").numpy(), edge_type[dataset.graph.edge_perm])
    assert dataset.meta.names == {"class": ["a", "b", "c", "d"], "node_type": ["paper", "author", "venue"]}
    assert dataset.num_classes == 4


def test_a_graph_without_features_is_legal(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH)
    assert not convert(tmp_path).features


def test_what_has_no_meaning_is_left_out_with_the_nearest_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH, x=DENSE, valid_idx=[1])
    with pytest.warns(UserWarning, match="left out, unknown member 'valid_idx', did you mean 'val_idx'"):
        convert(tmp_path)


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("x", npy(np.asfortranarray(DENSE)), "is in Fortran order; save it as numpy.ascontiguousarray"),
        ("x", npy(DENSE.astype(">f4")), r"is in foreign byte order \(>f4\)"),
        ("x", DENSE.tobytes(), r"has no \.npy header"),
        ("x", npy(DENSE)[:-5], "is cut short: 1600 bytes of values announced, 1595 are there"),
        ("x", npy(DENSE) + b"abc", "is too long: 1600 bytes of values announced, 1603 are there"),
        ("x", npy(DENSE)[:60], r"x\.npy has a damaged \.npy header"),
        ("x", npy(DENSE, (3, 0)), r"has \.npy version \(3, 0\)"),
        ("x", npy(np.array([None] * NUM_NODES)), "holds Python objects"),
        ("x", npy(np.array(["a"] * NUM_NODES)), "rows cannot be of dtype"),
        ("x", npy(np.float32(3)), "is a single number"),
        (
            "edge_index",
            npy(GRAPH["edge_index"].T.copy()),
            r"edge_index is int64 \(120, 2\), wanted integers \(2, E\)",
        ),
        ("edge_index", npy(GRAPH["edge_index"] * 1.0), "edge_index is float64"),
    ],
)
def test_members_that_cannot_be_read_are_named_with_the_reason(
    tmp_path: Path, member: str, content: bytes, message: str
) -> None:
    members = {name: npy(array) for name, array in (GRAPH | {"x": DENSE}).items()}
    write_members(tmp_path / "graph.npz", members | {member: content})
    with pytest.raises(FormatError, match=message) as caught:
        convert(tmp_path)
    assert "graph.npz" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_whatever_byte_is_damaged_arrays_are_read_right_or_refused(tmp_path: Path, save: Any) -> None:
    path, array = tmp_path / "g.npz", np.arange(12.0).reshape(6, 2)
    save(path, x=array)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for byte in (ord("'"), 255):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            try:
                arrays = ZipArrays(path)
                for name in arrays.names:
                    assert arrays.read(name).tobytes() == array.tobytes(), (at, byte)
            except FormatError as error:
                assert str(path) in str(error)


def test_a_file_that_is_cut_or_damaged_or_missing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        convert(tmp_path)
    np.savez_compressed(path, **GRAPH, x=RNG.standard_normal((NUM_NODES, 400)))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FormatError, match="it is cut short"):
        convert(tmp_path)
    for at in range(len(content) // 2, len(content) // 2 + 3):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"x\.npy cannot be read"):
            convert(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["graph.npz"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x_indices": np.full(len(csr(DENSE)["x_indices"]), 8)},
            "row 0 names column 8, a row has 8 columns",
        ),
        ({"x_indptr": csr(DENSE)["x_indptr"][::-1].copy()}, "the row pointer must rise from 0"),
        ({"x_indptr": csr(DENSE)["x_indptr"][:-1]}, "do not make a matrix of 50 rows"),
        ({"x_data": csr(DENSE)["x_data"][:-1]}, "do not make a matrix"),
        ({"x_shape": np.array([NUM_NODES])}, "wanted two counts, "),
    ],
)
def test_a_sparse_matrix_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH, **(csr(DENSE) | changes))
    with pytest.raises(ValueError, match=message):
        convert(tmp_path)


def test_features_that_are_there_twice_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH, x=DENSE, **csr(DENSE))
    with pytest.raises(FormatError, match="features twice, as x and as x_indptr, x_indices, x_data, x_shape"):
        convert(tmp_path)


def test_a_missing_part_of_a_sparse_matrix_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH, x_data=csr(DENSE)["x_data"], x_indptr=csr(DENSE)["x_indptr"])
    with pytest.raises(FormatError, match="x_indices, x_shape is missing"):
        convert(tmp_path)


def test_members_of_an_unknown_number_of_nodes_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", edge_index=GRAPH["edge_index"])
    with pytest.raises(FormatError, match="its number of nodes is unknown"):
        convert(tmp_path)


@pytest.mark.slow
def test_a_sparse_matrix_is_never_in_memory_as_a_dense_one(tmp_path: Path) -> None:
    import tracemalloc

    num_rows, num_columns = 40_000, 4_000
    nnz = 10 * num_rows
    np.savez(
        tmp_path / "graph.npz",
        x_indptr=np.arange(num_rows + 1) * 10,
        x_indices=(np.arange(0, num_columns, 400) + RNG.integers(0, 400, (num_rows, 10))).reshape(-1),
        x_data=np.ones(nnz, np.float32),
        x_shape=np.array([num_rows, num_columns]),
    )
    tracemalloc.start()
    convert(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * num_rows * num_columns * 4


def test_the_real_graphs_come_out_bit_for_bit(tmp_path: Path, shared_data: Path) -> None:
    for name in ("cora", "tolokers"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = Dataset.open(convert_source(f"npz:{shared_data / name}.npz", tmp_path / name))
        source = np.load(shared_data / f"{name}.npz")
        assert dataset.num_edges == source["edge_index"].shape[1]
        x = feature_rows(dataset)
        if "x" in source:
            np.testing.assert_array_equal(x.view(np.uint32), source["x"].view(np.uint32))
        else:
            rows = np.repeat(np.arange(len(x)), np.diff(source["x_indptr"]))
            np.testing.assert_array_equal(x[rows, source["x_indices"]], source["x_data"])
            assert np.count_nonzero(x) == len(source["x_data"])


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("class_names", np.array("a"), "class_names is .*wanted strings"),
        ("class_names", np.array([["a", "b", "c"]]), "class_names is .*wanted strings"),
        ("directed", np.array([True, False]), "directed is .*wanted true or false"),
        ("directed", np.array("no"), "directed is .*wanted true or false"),
        ("node_type", np.array(1), "node_type is a single number"),
    ],
    ids=str,
)
def test_members_of_another_shape_are_named(tmp_path: Path, member: str, value: Any, message: str) -> None:
    np.savez(tmp_path / "graph.npz", **GRAPH | {"x": DENSE, member: value})
    with pytest.raises(FormatError, match=message):
        npz_parts(tmp_path / "graph.npz")


def test_a_column_that_is_named_twice_is_refused_and_unsorted_columns_are_not(tmp_path: Path) -> None:
    sparse = csr(DENSE)
    row = int(np.diff(sparse["x_indptr"]).argmax())
    first = slice(*sparse["x_indptr"][row : row + 2])
    sparse["x_indices"][first] = sparse["x_indices"][first][::-1].copy()
    sparse["x_data"][first] = sparse["x_data"][first][::-1].copy()
    np.savez(tmp_path / "graph.npz", **GRAPH, **sparse)
    np.testing.assert_array_equal(feature_rows(convert(tmp_path)), DENSE)
    sparse["x_indices"][first] = sparse["x_indices"][first.start]
    np.savez(tmp_path / "graph.npz", **GRAPH, **sparse)
    with pytest.raises(ValueError, match=rf"row {row} names column \d more than once; add them up"):
        convert_source(f"npz:{tmp_path / 'graph.npz'}", tmp_path / "other")
