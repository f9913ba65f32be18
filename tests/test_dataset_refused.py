"""Parts of a data set that do not fit together are refused before anything is written."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from array_dataset import EDGES, NUM_NODES, X, Y, write

from gnn_ibp import Dataset
from gnn_ibp.errors import FormatError, SettingsError


def test_blocks_of_different_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"a block has rows of float32 \(5,\), the first one has float32 \(6,\)"
    ):
        Dataset.from_arrays(tmp_path / "ds", x=iter([X, X[:, :5]]))
    assert not list(tmp_path.iterdir())


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
        (Y[:-1], None, "'y' has 39 rows, the graph has 40 nodes"),
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
        ([3, 5, 3], ValueError, "names node 3 more than once$"),
        ([0, 1] * (NUM_NODES // 2), ValueError, "names node 0 more than once; a mask has to be one of bools"),
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
    for kind in ("edge_features", "edge_arrays", "arrays"):  # the loader would read rows of edges for nodes
        with pytest.raises(ValueError, match="'x': this name means features of nodes"):
            Dataset.from_arrays(
                tmp_path / "ds", edge_index=EDGES, num_nodes=NUM_NODES, **{kind: {"x": EDGES[0]}}
            )
    with pytest.raises(ValueError, match=r"feature 'x\.raw': names that end in \.raw"):
        write(tmp_path / "ds", features={"x.raw": X})
    with pytest.raises(TypeError, match=r"x is a torch\.sparse_coo tensor, .*: x\.to_dense\(\)"):
        write(tmp_path / "ds", x=torch.from_numpy(X).to_sparse())


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.full(NUM_NODES, "a"), TypeError, "group: rows cannot be of dtype 'str32'"),
        (np.zeros(NUM_NODES, "M8[D]"), TypeError, "group: rows cannot be of dtype 'datetime64"),
        (np.zeros(NUM_NODES, ">i4"), TypeError, "group is in foreign byte order"),
        (np.zeros(NUM_NODES, object), TypeError, "group: rows cannot be of dtype 'object'"),
        (np.array(3), ValueError, "group is a single number"),
        (torch.zeros(NUM_NODES, dtype=torch.bfloat16), TypeError, "group is a tensor of torch.bfloat16"),
    ],
)
def test_arrays_that_could_not_be_read_back_are_refused(
    tmp_path: Path, array: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        write(tmp_path / "ds", arrays={"group": array})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ({"num_nodes": 2.5}, TypeError, r"num_nodes is 2\.5, an int is wanted"),
        ({"num_nodes": -1}, ValueError, "num_nodes is -1, it must not be negative"),
        ({"num_classes": -1}, ValueError, "num_classes is -1, it must not be negative"),
        ({"seed": -1}, SettingsError, "seed is -1, it must not be negative"),
    ],
)
def test_counts_that_are_none_are_refused(
    tmp_path: Path, counts: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Dataset.from_arrays(tmp_path / "ds", x=X, **counts)
    assert not list(tmp_path.iterdir())


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
